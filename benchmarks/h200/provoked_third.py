"""The third series of faults made on purpose: programs of one's own and their questions, for provoked.py.

    PEERS=.peers OUT=FOLDER BUILD='copies|cuda-memcpy' ONLY=^third- bash benchmarks/h200/provoked.sh

`bench` is provoked_torch.py, `copies` provoked_copies.cu, `cuda-memcpy` of gpu-benches. Every question, verdict,
cause and key was written and committed before anything was measured. A healthy machine is ok; `unknown` counts as
well where an answer needs what the text does not say. Each faulty case has one fault: NCCL's variables are shown as
somebody would post them, or they are in the environment of a post that does not say so.
"""

from __future__ import annotations

from provoked_case import Case

PAIR = "{gpus}x {name} with NVLink (NV18)."
OK, FINE, SLOW, SLOW_OR_OPEN = ("ok",), ("ok", "unknown"), ("slow",), ("slow", "unknown")


def healthy(name: str, command: str, question: str, cause: str, verdict: tuple[str, ...] = FINE, *, gpus: int = 1,
            env: str = "") -> Case:  # fmt: skip
    """A case without a fault; `cause`: why it looks slow."""
    return Case(f"third-{name}", command, env, cause=f"none: {cause}", gpus=gpus, question=question, verdict=verdict)


def faulty(name: str, command: str, question: str, cause: str, keys: str, verdict: tuple[str, ...] = SLOW, *,
           gpus: int = 1, env: str = "", shown: bool = False) -> Case:  # fmt: skip
    """A case with one fault and the keys that name it."""
    return Case(f"third-{name}", command, env, shown=shown, cause=cause, gpus=gpus, question=question, verdict=verdict,
                keys=tuple(keys.split()))  # fmt: skip


ONE_GPU = (
    healthy("write-combined", "copies combined",
            "I moved our upload buffers on {name} (PCIe Gen5 x16) to write-combined memory, as the programming guide "
            "promises up to 40 % more. There is no gain at all. Is something holding the link back?",
            "the plain buffer reaches what the link carries already", OK),
    faulty("upload", "copies uploads",
           "{name}, PCIe Gen5 x16. Our loader uploads a 512 MB weight block. I expected about 55 GB/s:",
           "the CPU copies into a pinned buffer of 4 MB, then the copy engine takes it, in turns",
           "staged software requests pageable"),
    faulty("table", "copies rows",
           "Uploading a column block of a table in pinned memory to {name}: 1048576 rows of 32 bytes. nvbandwidth "
           "shows 55 GB/s H2D on the same box, my program does not get near:",
           "cudaMemcpy2D of rows of 32 bytes out of a pitch of 512", "requests software"),
    healthy("reads-resident", "copies resident",
            "Kernel that reads a cudaMallocManaged array on {name}. The memory should do more than 3 TB/s, and I get "
            "less than that:",
            "managed memory that already lies in the GPU's memory, read at its usual share"),
    faulty("reads-paged", "copies managed",
           "My kernel reads a 512 MB array on {name} and is slow in each pass. I expected something near the 3 TB/s "
           "of the memory. The CPU fills the array before each pass:",
           "managed memory pages in on faults", "requests software pageable"),
    healthy("mapped-a", "copies mapped",
            "{name} on PCIe Gen5 x16. A kernel reads a pinned host array directly, without a copy. The GPU's memory "
            "does 3 TB/s, this is far below:",
            "the link limits reads of host memory"),
    faulty("mapped-b", "copies few",
           "{name} on PCIe Gen5 x16. A kernel reads a pinned host array directly, without a copy. I expected 50 GB/s "
           "or so:",
           "one block of 256 threads has too few reads outstanding", "requests software"),
    faulty("blocks", "copies pieces",
           "We copy a 256 MB pinned buffer to {name} (Gen5 x16) in blocks of 64 KB, as the blocks belong to "
           "sequences. nvbandwidth: 55 GB/s. We:",
           "a synchronise after each piece of 64 KB", "requests software"),
    faulty("fresh", "copies buffers",
           "Copy of 256 MB pinned memory to {name}, Gen5 x16 link, idle machine. Why not 55 GB/s?",
           "a pinned buffer is allocated and freed for every copy, in the time", "software counting"),
    healthy("cuda-memcpy", "cuda-memcpy",
            "cuda-memcpy of gpu-benches on a {name}, PCIe Gen5 x16: the first row is poor. A bad link?",
            "small copies wait for their launch and the synchronise", env="CUDA_VISIBLE_DEVICES=0"),
    healthy("duplex-a", "bench two_streams",
            "Upload and download at once on {name}, PCIe Gen5 x16. Each direction alone gives 55 GB/s, so I expected "
            "110:",
            "both directions together do not reach twice one"),
    faulty("duplex-b", "bench one_stream",
           "Upload and download at once on {name}, PCIe Gen5 x16, pinned, both non_blocking. Each direction alone "
           "gives 55 GB/s, so I expected 90 or more in sum:",
           "both copies are on one stream and take turns", "software one-direction"),
    healthy("sizes", "bench sizes",
            "H2D by size on {name} (pinned, Gen5 x16). Why are the small ones so slow, is that the driver?",
            "small copies cost their launch", OK),
    healthy("iterations", "bench passes",
            "Pinned 256 MB copies to {name}, PCIe Gen5 x16, by torch. Is the first one a fault of the link?",
            "the first copy is cold"),
    healthy("copy-kernel", "bench within",
            "torch copy_ of a 2 GB tensor within {name}. The data sheet promises more than 3 TB/s. Is half of the HBM"
            " gone?",
            "each byte is read and written, the program counts it once"),
    faulty("tensor", "bench to_gpu",
           "Moving tensors to {name} with .to(), PCIe Gen5 x16. The link should do 55 GB/s:",
           "pageable memory", "pageable"),
    faulty("loader", "bench batches",
           "Training on {name} (Gen5 x16): batches come from a DataLoader, and the copy to the GPU takes long even "
           "though non_blocking=True. 50 GB/s expected:",
           "the DataLoader does not pin: pageable memory", "pageable"),
    faulty("features", "bench columns",
           "A quarter of the features of a pinned table goes to {name}, Gen5 x16. Pinned should give 55 GB/s:",
           "the slice is not contiguous: the CPU gathers it into pageable memory first", "software pageable requests"),
    faulty("checkpoint", "bench weights",
           "Loading a weights file into {name} (Gen5 x16, file in the page cache, machine idle):",
           "the file is mapped: pageable memory", "pageable software"),
    faulty("prefetch", "bench prefetched",
           "A prefetch thread feeds {name} (PCIe Gen5 x16) with pinned blocks while the main thread prepares the next"
           " step. I counted on 40 GB/s at least:",
           "the thread waits for the interpreter, which the main thread keeps busy", "host software requests"),
    faulty("instant", "bench unfinished",
           "Ten pinned copies of 256 MB to {name}. Is the link of PCIe Gen5 x16 really that fast?",
           "the clock stops before the copies are done", "counting", ("fast",)),
)  # fmt: skip
SEVERAL = (
    faulty("pair-copy-b", "copies peers",
           f"{PAIR} Copies from one to the other, nvidia-smi nvlink -s shows all links up:",
           "peer access is not enabled: the driver stages through host memory", "peers staged software", gpus=2),
    healthy("pair-copy-a", "bench direct",
            f"{PAIR} The data sheet says 900 GB/s. One tensor copied to the neighbour gives:",
            "900 GB/s counts both directions", OK, gpus=2),
    faulty("pair-copy-c", "bench over_host",
           f"{PAIR} A tensor of 1 GB handed from cuda:0 to cuda:1 in our pipeline. Expected over 300 GB/s:",
           "the program takes .cpu() and .to(): pageable host memory between",
           "staged pageable software peers", gpus=2),
    faulty("pair-kernel", "copies peer-few",
           f"{PAIR} A kernel on one GPU reads the memory of the other. The links should give over 300 GB/s:",
           "four blocks have too few reads outstanding", "requests software", gpus=2),
    healthy("two-kinds", "bench two_kinds",
            f"{PAIR} torch.distributed, nccl. reduce_scatter takes half as long as all_reduce, but its busbw is no "
            "better. Are the NVLinks at fault?",
            "all_reduce moves twice as much, and busbw counts that", gpus=2),
    healthy("gather", "bench all_gather",
            f"{PAIR} all_gather by torch. busbw is lower than algbw, which one is the link?",
            "busbw is algbw times (n - 1) / n", gpus=2),
    healthy("exchange-a", "bench all_to_all",
            f"{PAIR} all_to_all of our MoE layer by torch. NVLink promises 900 GB/s, I see:",
            "900 GB/s counts both directions, and each rank keeps its own part", gpus=2),
    healthy("ring-a", "bench sendrecv",
            f"{PAIR} Every rank sends to the next one and receives from the last. Half of 900 GB/s expected:",
            "sends of NCCL reach less than the raw rate of the links", gpus=2),
    faulty("ring-b", "bench sendrecv",
           f"{PAIR} Every rank sends to the next one and receives from the last, as in pipeline parallel. I expected "
           "over 250 GB/s:",
           "NCCL_MAX_NCHANNELS=1 in the environment", "setting software", gpus=2, env="NCCL_MAX_NCHANNELS=1"),
    faulty("reduce-a", "bench all_reduce",
           f"{PAIR} A bare all_reduce in torch, nothing else runs. It was above 250 GB/s in another container:",
           "NCCL_P2P_DISABLE=1 in the environment of the container", "peers setting staged transport", gpus=2,
           env="NCCL_P2P_DISABLE=1"),
    faulty("reduce-b", "bench gloo", f"{PAIR} all_reduce of CUDA tensors by torch.distributed, all ranks on one host:",
           "the backend is gloo: through host memory and sockets", "transport software setting staged", gpus=2),
    faulty("gather-ll", "bench all_gather",
           f"{PAIR} all_gather in torch. The cluster's profile sets something for latency. Why so slow at 256 MB?",
           "NCCL_PROTO=LL, shown", "setting algorithm", gpus=2, env="NCCL_PROTO=LL", shown=True),
    faulty("exchange-level", "bench all_to_all",
           f"{PAIR} all_to_all in torch after we took over another site's settings:",
           "NCCL_P2P_LEVEL=LOC, shown: no peer copies", "peers setting staged transport", gpus=2,
           env="NCCL_P2P_LEVEL=LOC", shown=True),
    faulty("gradients", "bench gradients",
           f"{PAIR} Data parallel by hand: we all_reduce the gradients after backward. 250 GB/s expected:",
           "an all_reduce for each gradient of 256 KB", "requests software", SLOW_OR_OPEN, gpus=2),
    faulty("steps", "bench one_core",
           f"{PAIR} all_reduce of 64 KiB in each decoding step. I expected about 30 us a step:",
           "all ranks are bound to one core, if that is slower", "host requests software", SLOW_OR_OPEN, gpus=2),
)  # fmt: skip
THIRD = ONE_GPU + SEVERAL
