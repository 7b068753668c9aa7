"""The fourth series of faults made on purpose: each script prints in another form, for provoked.py.

    PEERS=.peers OUT=FOLDER BUILD='copies|nvbandwidth' ONLY=^fourth- bash benchmarks/h200/provoked.sh

`scripts` is provoked_scripts.py with the forms of provoked_forms.py, `copies` provoked_copies.cu. Every question,
verdict, cause and key was written and committed before anything was measured. A healthy machine is ok; `unknown`
counts as well where an answer needs what the text does not say. Each faulty case has one fault.
"""

from __future__ import annotations

from provoked_case import Case

PAIR = "{gpus}x {name} with NVLink (NV18)."
OK, FINE, SLOW, SLOW_OR_OPEN = ("ok",), ("ok", "unknown"), ("slow",), ("slow", "unknown")


def healthy(name: str, command: str, question: str, cause: str, verdict: tuple[str, ...] = FINE, *,
            gpus: int = 1) -> Case:  # fmt: skip
    """A case without a fault; `cause`: why it looks slow."""
    return Case(f"fourth-{name}", command, cause=f"none: {cause}", gpus=gpus, question=question, verdict=verdict)


def faulty(name: str, command: str, question: str, cause: str, keys: str, verdict: tuple[str, ...] = SLOW, *,
           gpus: int = 1, env: str = "", shown: bool = False) -> Case:  # fmt: skip
    """A case with one fault and the keys that name it."""
    return Case(f"fourth-{name}", command, env, shown=shown, cause=cause, gpus=gpus, question=question,
                verdict=verdict, keys=tuple(keys.split()))  # fmt: skip


ONE_GPU = (
    healthy("log", "scripts pinned_both_ways",
            "PCIe Gen5 x16, {name}. One direction alone logs 51 GiB/s, so in both at once I'd expect about 102. Our "
            "service logs less, what limits it?",
            "both directions together do not reach twice one"),
    healthy("columns", "scripts by_size",
            "I am new to GPUs. This is how long pinned tensors take to my {name} (Gen5 x16). Why is the throughput of "
            "the first lines so tiny, is the card in a wrong slot?",
            "small copies cost their launch", OK),
    healthy("runs", "scripts runs",
            "Ten pinned uploads of the same buffer to {name} (PCIe Gen5 x16). The minimum worries me, does the link "
            "drop out now and then?",
            "the first run allocates the GPU's memory as well"),
    healthy("values", "scripts within",
            "b.copy_(a) on {name}, both tensors in its memory. The vendor says more than 3 TB/s. What have I lost?",
            "each byte is read and written, the program counts it once"),
    healthy("reads", "copies read-time",
            "A zero-copy kernel on {name}, PCIe Gen5 x16, walks over a pinned array once. Memory of this GPU does "
            "some 3 TB/s, so I thought it would take 0.1 ms:",
            "the link limits reads of host memory"),
    faulty("took", "scripts weights",
           "hello, i have {name} in pci 5.0 x16 slot and the copying is so slow, in forum they say it must be 50 GB/s "
           "or more. what is wrong with my computer??",
           "pageable memory", "pageable"),
    faulty("bar", "scripts images",
           "Feeding {name} (Gen5 x16) with float32 batches of 64x3x224x224. Augmentation is done before this loop, it "
           "only moves the batches, with non_blocking=True. Budget was 50 GB/s.",
           "batches from numpy: pageable memory", "pageable"),
    faulty("json", "scripts rows_of_ids",
           "Embedding cache: rows go from a pinned table to {name} over PCIe Gen5 x16. Our capacity plan has 50 GB/s "
           "for this step, production logs have this instead:",
           "rows of 64 kB, each waited for", "requests software"),
    faulty("shard", "scripts shard",
           "Cold start of an inference pod: {name}, PCIe Gen5 x16, nothing else on the host, file already read into "
           "memory. With 55 GB/s I would expect 0.07 s, yet",
           "pageable memory", "pageable"),
    faulty("directions", "scripts directions",
           "We qualify servers with {name} on PCIe Gen5 x16. The acceptance script gave these, the limit in the "
           "contract is 400 Gb/s. Send it back?",
           "the script prints GB/s and calls it Gb/s", "counting software", SLOW_OR_OPEN),
    faulty("csv", "scripts features",
           "Feature tensors (float32, pinned, made with numpy) to {name}, Gen5 x16. nvbandwidth has 55 GB/s H2D on "
           "this machine. My CSV:",
           "the arrays are float64, the script counts 4 bytes an element", "counting software"),
    faulty("summary", "scripts transfer",
           "Nice surprise or a bug? {name} with PCIe Gen5 x16:",
           "each byte is counted twice, as read and as written", "counting", ("fast",)),
)  # fmt: skip
SEVERAL = (
    healthy("gather", "scripts gather_of_ranks",
            f"{PAIR} FSDP gathers parameters. busbw is half of algbw on both ranks, are half of the links down?",
            "busbw is algbw times (n - 1) / n", gpus=2),
    healthy("trace", "scripts logged_reduce",
            f"{PAIR} ZeRO-2, verbose communication log. I read of 7200 Gbps (900 GB/s) for these GPUs. Should I worry?",
            "900 GB/s counts both directions, and busbw is half of algbw with two ranks", gpus=2),
    healthy("hop", "scripts hop",
            f"{PAIR} Tensor from the one GPU to the other and back, measured with a loop of ten. The brochure has 900:",
            "900 GB/s counts both directions, and the script prints GiB/s", gpus=2),
    healthy("devices", "scripts each_gpu",
            f"{PAIR} PCIe Gen5 x16 to the host. NVLink is 900 GB/s, so why does my pinned data crawl to the GPUs?",
            "data from the host comes over PCIe, and at its rate", gpus=2),
    healthy("times", "scripts each_reduce",
            f"{PAIR} First all_reduce of the job is awful, see the list. Something must be renegotiating. The NVLinks?",
            "NCCL sets up in the first call", gpus=2),
    healthy("experts", "scripts experts",
            f"{PAIR} Expert parallel, dispatch by all_to_all_single. I had hoped for busbw near 450:",
            "each rank keeps its own part, and busbw counts what leaves alone", gpus=2),
    healthy("frame", "scripts small_reduces",
            f"{PAIR} tensor parallel decode do small all_reduce. busbw is almost zero, card have 900. why so bad?",
            "small messages take the latency of a call", gpus=2),
    faulty("with", "scripts two_programs",
           f"{PAIR} Pipeline stage hands its output of 1 GB to the next one. Two programs, two worlds:",
           "the program takes .cpu() and .to(): pageable host memory between", "staged pageable software peers",
           gpus=2),
    faulty("metrics", "scripts reduce_by_metrics",
           f"{PAIR} torch.distributed, both ranks in one pod, tensors of 64 MiB on the GPUs. Our dashboard scrapes "
           "this; on the old cluster it was above 1e11:",
           "the backend is gloo: through host memory and sockets", "transport software setting staged", gpus=2),
    faulty("results", "scripts kept_results",
           f"{PAIR} all_reduce, launched as in our wiki. A colleague has 300 GB/s on the same model of server:",
           "NCCL_MAX_NCHANNELS=2, shown", "setting software", gpus=2, env="NCCL_MAX_NCHANNELS=2", shown=True),
    faulty("boxed", "scripts boxed_gather",
           f"{PAIR} all_gather by torch since we moved to the new image. nvidia-smi nvlink -s: 18 links, all up.",
           "NCCL_P2P_DISABLE=1 in the environment of the image", "peers setting staged transport", gpus=2,
           env="NCCL_P2P_DISABLE=1"),
    faulty("trainer", "scripts trainer",
           f"{PAIR} Own data-parallel trainer. 256 MB of gradients should be through in 1 ms or so by NVLink:",
           "an all_reduce for each gradient of 64 kB", "requests software", SLOW_OR_OPEN, gpus=2),
    faulty("loaders", "scripts loaders",
           f"{PAIR} PCIe Gen5 x16 for each GPU. Each rank uploads pinned blocks, alone a rank has 55 GB/s. Both:",
           "both ranks upload to cuda:0, over the one link", "shared software common", gpus=2),
    faulty("peer-read", "copies peer-time",
           f"{PAIR} A kernel on GPU 1 adds up an array of GPU 0, peer access is on. I designed for 3e11 B/s:",
           "two blocks have too few reads outstanding", "requests software", gpus=2),
    faulty("shards", "scripts shards",
           f"{PAIR} PCIe Gen5 x16 each. Tensor-parallel loading: each GPU gets its half of a pinned float32 matrix "
           "(64000 x 2000, by columns). At 50 GB/s this is 10 ms, timed:",
           "the slices are not contiguous: the CPU gathers them into pageable memory first",
           "software pageable requests", gpus=2),
    faulty("swap", "scripts exchange",
           f"{PAIR} Both GPUs swap a tensor of 512 MB, non_blocking. NVLink works in both directions at once, so the "
           "sum ought to be above 600000 MB/s:",
           "the copies are on the default streams, and each waits for the other", "software one-direction", gpus=2),
)  # fmt: skip
FOURTH = ONE_GPU + SEVERAL
