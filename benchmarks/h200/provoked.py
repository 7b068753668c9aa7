"""Faults made on purpose on a healthy machine with NVLinks: does `lanewise check` see them in what the tools print?

    python benchmarks/h200/provoked.py run --tools FOLDER -o OUT [--seconds 240]  # on the machine, by provoked.sh
    python benchmarks/h200/provoked.py judge OUT                                  # anywhere: a table
    python benchmarks/check_blind.py OUT/expected.json              # cases with a question, PYTHONPATH=tests

FOLDER holds nvbandwidth, p2p (p2pBandwidthLatencyTest), bw (bandwidthTest), nccl/all_reduce_perf and the others that
CASES start. OUT gets one text for each case, as somebody would post it. What was done on purpose stands in the table
alone: `check` gets the text, once without and once with dumps of the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from provoked_case import Case
from provoked_fifth import FIFTH
from provoked_fourth import FOURTH
from provoked_third import THIRD

LOADS = {
    "memory": "import torch; torch.set_num_threads(64); a = torch.ones(2**28); b = torch.empty_like(a)\n"
              "while True: b.copy_(a)",
    "h2d": "import torch; a = torch.ones(2**28).pin_memory(); b = torch.empty_like(a, device='cuda:0')\n"
           "while True: b.copy_(a, non_blocking=True); torch.cuda.synchronize()",
    "d2h": "import torch; a = torch.ones(2**28, device='cuda:0'); b = torch.empty(2**28, pin_memory=True)\n"
           "while True: b.copy_(a, non_blocking=True); torch.cuda.synchronize()",
    "nvlink": "import torch; a = torch.ones(2**28, device='cuda:0'); b = torch.empty_like(a, device='cuda:1')\n"
              "while True: b.copy_(a, non_blocking=True); torch.cuda.synchronize()",
    "cpu": "import multiprocessing as m, os\ndef spin():\n    while True: pass\n"
           "for _ in range(2 * os.cpu_count()): m.get_context('fork').Process(target=spin, daemon=True).start()\n"
           "spin()",
    "device": "import torch; a = torch.ones(2**30, device='cuda:0'); b = torch.empty_like(a)\n"
              "while True: b.copy_(a); torch.cuda.synchronize()",
    "job": "import os, torch, torch.distributed as d, torch.multiprocessing as m\n"
           "def work(rank, ranks):\n"
           "    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29511'); torch.cuda.set_device(rank)\n"
           "    d.init_process_group('nccl', rank=rank, world_size=ranks); a = torch.ones(2**28, device='cuda')\n"
           "    while True: d.all_reduce(a); torch.cuda.synchronize()\n"
           "m.start_processes(work, (torch.cuda.device_count(),), torch.cuda.device_count(), start_method='fork')",
    "compute": "import torch; a = torch.ones(8192, 8192, device='cuda:0', dtype=torch.bfloat16)\n"
               "while True: a @ a; torch.cuda.synchronize()",
}  # fmt: skip
COPIES = "nvbandwidth -b 512 -i 3 -t"
HOST = f"{COPIES} host_to_device_memcpy_ce device_to_host_memcpy_ce host_to_device_bidirectional_memcpy_ce"
PEERS = f"{COPIES} device_to_device_memcpy_write_ce device_to_device_bidirectional_memcpy_write_ce"
NCCL = "-b 1M -e 1G -f 4 -n 10 -w 3 -g {gpus}"
SMALL = "nccl/all_reduce_perf -b 8 -e 256K -f 4 -n 50 -w 5 -g {gpus}"
GPU_COPY = "gpu_copy --size 1073741824 --num_warm_up 3 --num_loops 5 --dma_copy --sm_copy"
TORCH = "torch_all_reduce --payload_size_in_gib 1"


def nccl(name: str, operation: str = "all_reduce", env: str = "", *, beside: str = "", cause: str = "",
         shown: bool = False) -> Case:  # fmt: skip
    """A case of nccl-tests on all GPUs."""
    return Case(name, f"nccl/{operation}_perf {NCCL}", env, beside, shown, cause, gpus=2)


CASES = (
    Case("nvbandwidth-host", HOST),
    Case("nvbandwidth-host-beside-copies", HOST, beside="h2d", cause="another program copies to gpu0"),
    Case("nvbandwidth-host-memory-busy", HOST, beside="memory", cause="the CPUs use the memory"),
    Case("nvbandwidth-host-gpu-busy", HOST, beside="compute", cause="none: kernels do not slow copy engines"),
    Case("nvbandwidth-host-far", HOST + " --disableAffinity", env="FAR=1", cause="buffers on the far NUMA node"),
    Case("nvbandwidth-peers", PEERS),
    Case("nvbandwidth-peers-beside-copies", PEERS, beside="nvlink", cause="another program copies gpu0->gpu1"),
    Case("bandwidthTest-pinned", "bw --memory=pinned"),
    Case("bandwidthTest-pageable", "bw --memory=pageable", cause="pageable memory"),
    Case("p2p", "p2p"),
    Case("p2p-beside-copies", "p2p", beside="nvlink", cause="another program copies gpu0->gpu1"),
    nccl("all_reduce"),
    nccl("all_gather", "all_gather"),
    nccl("sendrecv", "sendrecv"),
    nccl("all_reduce-p2p-off", env="NCCL_P2P_DISABLE=1", cause="peer copies off"),
    nccl("all_reduce-p2p-off-shown", env="NCCL_P2P_DISABLE=1", cause="peer copies off", shown=True),
    nccl("all_reduce-p2p-off-log", env="NCCL_P2P_DISABLE=1 NCCL_DEBUG=INFO", cause="peer copies off"),
    nccl("all_gather-p2p-off", "all_gather", env="NCCL_P2P_DISABLE=1", cause="peer copies off"),
    nccl("sendrecv-p2p-off", "sendrecv", env="NCCL_P2P_DISABLE=1", cause="peer copies off"),
    nccl("all_reduce-sockets", env="NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1", cause="sockets"),
    nccl("all_reduce-sockets-log", env="NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_DEBUG=INFO", cause="sockets"),
    nccl("all_reduce-ll-shown", env="NCCL_PROTO=LL", cause="protocol LL", shown=True),
    nccl("all_reduce-ll", env="NCCL_PROTO=LL", cause="protocol LL"),
    nccl("all_reduce-one-channel-log", env="NCCL_MAX_NCHANNELS=1 NCCL_DEBUG=INFO", cause="one channel"),
    nccl("all_reduce-one-channel", env="NCCL_MAX_NCHANNELS=1", cause="one channel"),
    nccl("all_reduce-four-channels-shown", env="NCCL_MAX_NCHANNELS=4", cause="four channels", shown=True),
    nccl("all_reduce-beside-copies", beside="nvlink", cause="another program copies gpu0->gpu1"),
    Case("all_reduce-one-gpu", f"nccl/all_reduce_perf {NCCL.format(gpus=1)}", cause="one GPU alone: no transfer"),
    # Since 2026-11-27 17:00, for four GPUs: chosen before anything was measured.
    nccl("alltoall", "alltoall"),
    nccl("alltoall-p2p-off", "alltoall", env="NCCL_P2P_DISABLE=1", cause="peer copies off"),
    nccl("broadcast-p2p-off", "broadcast", env="NCCL_P2P_DISABLE=1", cause="peer copies off"),
    nccl("all_reduce-tree-shown", env="NCCL_ALGO=Tree", cause="a tree, if that is slower", shown=True),
    nccl("all_reduce-small-buffers-shown", env="NCCL_BUFFSIZE=65536", cause="small buffers", shown=True),
    nccl("all_gather-two-channels-shown", "all_gather", env="NCCL_MAX_NCHANNELS=2", cause="two channels", shown=True),
    nccl("reduce_scatter-ll128", "reduce_scatter", env="NCCL_PROTO=LL128", cause="none: LL128 carries nearly all"),
    Case("p2p-one-hidden", "p2p", env="CUDA_VISIBLE_DEVICES=0,1,2", cause="a GPU is hidden"),
    Case("nvbandwidth-one-hidden", HOST, env="CUDA_VISIBLE_DEVICES=0,1,2", cause="a GPU is hidden"),
    # Since 2026-11-27 18:50, for H100 and other tools: chosen before anything was measured.
    Case("nvbandwidth-small-buffers-shown", HOST.replace("-b 512", "-b 1"), cause="buffers of 1 MiB", shown=True),
    Case("nvbandwidth-kernels", "nvbandwidth -b 512 -i 3 -t host_to_device_memcpy_sm device_to_host_memcpy_sm"),
    Case("nvbandwidth-kernels-gpu-busy", "nvbandwidth -b 512 -i 3 -t host_to_device_memcpy_sm device_to_host_memcpy_sm",
         beside="compute", cause="other kernels run on gpu0, if that is slower"),
    Case("nvbandwidth-host-cpu-busy", HOST, beside="cpu", cause="none: copy engines need no CPU"),
    Case("nvbandwidth-latency", "nvbandwidth -t host_device_latency_sm"),
    Case("bandwidthTest-beside-copies", "bw --memory=pinned", beside="h2d", cause="another program copies to gpu0"),
    Case("bandwidthTest-memory-busy", "bw --memory=pinned", beside="memory", cause="the CPUs use the memory"),
    Case("bandwidthTest-pageable-cpu-busy", "bw --memory=pageable", beside="cpu", cause="the CPUs are busy"),
    Case("bandwidthTest-shmoo", "bw --memory=pinned --mode=shmoo"),
    Case("blog", "blog"),
    Case("blog-beside-copies", "blog", beside="h2d", cause="another program copies to gpu0"),
    Case("simpleMultiCopy", "simpleMultiCopy"),
    Case("simpleMultiCopy-beside-copies", "simpleMultiCopy", beside="h2d", cause="another program copies to gpu0"),
    Case("gpu-stream", "gpu-stream"),
    Case("gpu-stream-beside-copies", "gpu-stream", beside="device", cause="another program uses the GPU's memory"),
    Case("gpu_copy-host", f"{GPU_COPY} --htod --dtoh"),
    Case("gpu_copy-host-both-ways", f"{GPU_COPY} --htod --dtoh --bidirectional"),
    Case("gpu_copy-host-beside-copies", f"{GPU_COPY} --htod --dtoh", beside="h2d",
         cause="another program copies to gpu0"),
    Case("TransferBench-p2p", "transferbench p2p 256M"),
    Case("TransferBench-p2p-beside-copies", "transferbench p2p 256M", beside="h2d",
         cause="another program copies to gpu0"),
    Case("p2p-gpu-busy", "p2p", beside="compute", cause="kernels on gpu0, where they slow launches", gpus=2),
    Case("simpleP2P", "simpleP2P", gpus=2),
    Case("simpleP2P-beside-copies", "simpleP2P", beside="nvlink", cause="another program copies gpu0->gpu1", gpus=2),
    Case("gpu_copy-peers", f"{GPU_COPY} --dtod", gpus=2),
    Case("gpu_copy-peers-beside-copies", f"{GPU_COPY} --dtod", beside="nvlink",
         cause="another program copies gpu0->gpu1", gpus=2),
    Case("TransferBench-a2a", "transferbench a2a 64M", gpus=2),
    nccl("all_reduce-gpu-busy", beside="compute", cause="other kernels run on gpu0"),
    nccl("all_reduce-cpu-busy", beside="cpu", cause="the CPUs are busy, if that is slower"),
    nccl("all_reduce-beside-job", beside="job", cause="another job uses the same GPUs and links"),
    nccl("all_reduce-tcp-settings-shown", env="NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo", shown=True,
         cause="none: settings of a network that is not used"),
    nccl("all_reduce-level-shown", env="NCCL_P2P_LEVEL=NVL", shown=True, cause="none: the links are NVLinks"),
    nccl("all_reduce-no-shared-memory-shown", env="NCCL_SHM_DISABLE=1", shown=True, cause="none: peers are used"),
    nccl("all_reduce-few-threads-shown", env="NCCL_NTHREADS=64", shown=True, cause="few threads, if that is slower"),
    nccl("all_reduce-blocking-shown", env="CUDA_LAUNCH_BLOCKING=1", shown=True, cause="launches block, if slower"),
    Case("all_reduce-small", SMALL, gpus=2),
    Case("all_reduce-small-cpu-busy", SMALL, beside="cpu", cause="the CPUs are busy", gpus=2),
    Case("all_reduce-small-blocking-shown", SMALL, env="CUDA_LAUNCH_BLOCKING=1", cause="launches block", shown=True,
         gpus=2),
    Case("all_reduce-no-warm-up", "nccl/all_reduce_perf -b 1M -e 1G -f 4 -n 1 -w 0 -g {gpus}", gpus=2,
         cause="one iteration without a warm-up (the head of the table says so)"),
    Case("torch_all_reduce", TORCH, gpus=2),
    Case("torch_all_reduce-table", "torch_all_reduce", gpus=2),
    Case("torch_all_reduce-p2p-off", TORCH, env="NCCL_P2P_DISABLE=1", cause="peer copies off", gpus=2),
    # Since 2026-11-27 20:10: what the rules that the cases above taught were not made from.
    Case("later-nvbandwidth-host-beside-d2h", HOST, beside="d2h", cause="another program copies from gpu0"),
    Case("later-nvbandwidth-host-beside-both", HOST, beside="h2d d2h", cause="other programs copy from and to gpu0"),
    Case("later-nvbandwidth-kernels-beside-copies",
         "nvbandwidth -b 512 -i 3 -t host_to_device_memcpy_sm device_to_host_memcpy_sm", beside="h2d",
         cause="another program copies to gpu0"),
    Case("later-bandwidthTest-beside-d2h", "bw --memory=pinned", beside="d2h",
         cause="another program copies from gpu0"),
    Case("later-bandwidthTest-beside-two", "bw --memory=pinned", beside="h2d h2d",
         cause="two other programs copy to gpu0"),
    Case("later-bandwidthTest-pageable-memory-busy", "bw --memory=pageable", beside="memory",
         cause="the CPUs use the memory"),
    Case("later-bandwidthTest-gpu-busy", "bw --memory=pinned", beside="compute", cause="none for host copies"),
    Case("later-bandwidthTest-shmoo-pageable", "bw --memory=pageable --mode=shmoo"),
    Case("later-gpu_copy-host-beside-d2h", f"{GPU_COPY} --htod --dtoh", beside="d2h",
         cause="another program copies from gpu0"),
    Case("later-blog-memory-busy", "blog", beside="memory", cause="the CPUs use the memory"),
    Case("later-TransferBench-p2p-memory-busy", "transferbench p2p 256M", beside="memory",
         cause="the CPUs use the memory"),
    Case("torch_all_reduce-gpu-busy", TORCH, beside="compute", cause="other kernels run on gpu0", gpus=2),
    *THIRD,
    *FOURTH,
    *FIFTH,
)  # fmt: skip


def far_cpus() -> set[int]:
    """CPUs of the last NUMA node, none if there is one node."""
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    if len(nodes) < 2:
        return set()
    ranges = (nodes[-1] / "cpulist").read_text().strip().split(",")
    ends = [[int(end) for end in part.split("-")] for part in ranges]
    return {cpu for each in ends for cpu in range(each[0], each[-1] + 1)}


@contextlib.contextmanager
def load(name: str) -> Iterator[None]:
    """Whatever runs beside a case, until it is done: one load or several."""
    commands = [[sys.executable, "-c", LOADS[each]] for each in name.split()]
    processes = [subprocess.Popen(command, start_new_session=True) for command in commands]
    time.sleep(8 if processes else 0)  # torch starts
    try:
        yield
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(tools: Path, out: Path, seconds: float, only: str) -> None:
    """Each case in turn; one that would begin too late is left out."""
    begun, names = time.monotonic(), re.findall(r"^GPU \d+: (.*?) \(", _output(["nvidia-smi", "-L"]), re.MULTILINE)
    gpus, done = len(names), {}
    for case in (case for case in CASES if re.search(only, case.name)):
        if time.monotonic() - begun > seconds:
            print("left out:", case.name)
            continue
        if gpus < case.gpus:
            continue
        if "FAR" in case.env and not far_cpus():
            print("one NUMA node:", case.name)
            continue
        command = case.command.format(gpus=gpus)
        if not (tools / command.split()[0]).exists():
            print("not built:", case.name)
            continue
        settings = dict(part.split("=", 1) for part in case.env.split())
        far = far_cpus() if settings.pop("FAR", "") else None
        with load(case.beside):
            printed = _output([str(tools / command.split()[0]), *command.split()[1:]], settings, far)
        done[case] = case.post(printed, names)
        (out / f"{case.name}.txt").write_text(done[case])
        print(f"{time.monotonic() - begun:6.1f} s {case.name}: {len(printed)} characters {printed[-99:]!r}", flush=True)
        asked = {case.name: case.expected(text) for case, text in done.items() if case.question}
        (out / "expected.json").write_text(json.dumps(asked, indent=1) + "\n")


def _output(command: list[str], env: dict[str, str] | None = None, cpus: set[int] | None = None) -> str:
    def bind() -> None:
        if cpus:
            os.sched_setaffinity(0, cpus)

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})},
                              preexec_fn=bind, check=False)  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return late.stdout.decode() if isinstance(late.stdout, bytes) else (late.stdout or "")
    return done.stdout + done.stderr


def judge(out: Path) -> None:
    """What check says of each text: without a description, and with the machine's dumps."""
    print("| case | made | check alone: exit, slow of rows; first causes | with the dumps |\n|---|---|---|---|")
    for case in CASES:
        text = out / f"{case.name}.txt"
        if text.exists():
            dumps = ["--from", str(out / "dumps.txt")] if (out / "dumps.txt").exists() else []
            alone, described = verdict([str(text)]), verdict(["--from", str(text), *dumps])
            print(f"| {case.name} | {case.cause or 'healthy'} | {alone} | {described} |")


def verdict(arguments: list[str]) -> str:
    """Exit code, the last line with the numbers of verdicts, each finding and its first two causes."""
    wide = {**os.environ, "COLUMNS": "300"}
    done = subprocess.run(["lanewise", "check", *arguments], capture_output=True, text=True, check=False, env=wide)
    counts = re.search(r"^\d+ rows: .*$", done.stdout, re.MULTILINE)
    found = re.findall(r"^(?:slow|fault|unknown|fast): .*$|^  cause [12] .*$", done.stdout, re.MULTILINE)
    said = "; ".join(re.sub(r"\s+", " ", line.strip())[:110] for line in found)
    return f"{done.returncode}: {counts[0] if counts else done.stderr.strip()[:160]}; {said}".replace("|", "/")


def main() -> None:
    """Run or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "judge"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--tools", type=Path)
    parser.add_argument("-o", type=Path, dest="out")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--only", default="", help="a regular expression of cases")
    arguments = parser.parse_args()
    if arguments.what == "judge":
        judge(arguments.folder)
    else:
        arguments.out.mkdir(parents=True, exist_ok=True)
        run(arguments.tools, arguments.out, arguments.seconds, arguments.only)


if __name__ == "__main__":
    main()
