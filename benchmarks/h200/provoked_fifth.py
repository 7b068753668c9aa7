"""The fifth series of faults made on purpose: what people's own scripts and notebooks print, for provoked.py.

    PEERS=.peers OUT=FOLDER BUILD=none ONLY=^fifth- bash benchmarks/h200/provoked.sh

`notebooks` is provoked_notebooks.py with the forms of provoked_prints.py; nothing has to be built. Every question,
verdict, cause and key was written and committed before anything was measured. A healthy machine is ok; `unknown`
counts as well where an answer needs what the text does not say. Each faulty case has one fault.
"""

from __future__ import annotations

from provoked_case import Case

PAIR = "{gpus}x {name} with NVLink (NV18)."
OK, FINE, SLOW, SLOW_OR_OPEN = ("ok",), ("ok", "unknown"), ("slow",), ("slow", "unknown")


def healthy(name: str, program: str, question: str, cause: str, verdict: tuple[str, ...] = FINE, *,
            gpus: int = 1) -> Case:  # fmt: skip
    """A case without a fault; `cause`: why it looks slow."""
    return Case(f"fifth-{name}", f"notebooks {program}", cause=f"none: {cause}", gpus=gpus, question=question,
                verdict=verdict)  # fmt: skip


def faulty(name: str, program: str, question: str, cause: str, keys: str, verdict: tuple[str, ...] = SLOW, *,
           gpus: int = 1, env: str = "", shown: bool = False) -> Case:  # fmt: skip
    """A case with one fault and the keys that name it."""
    return Case(f"fifth-{name}", f"notebooks {program}", env, shown=shown, cause=cause, gpus=gpus, question=question,
                verdict=verdict, keys=tuple(keys.split()))  # fmt: skip


ONE_GPU = (
    healthy("tuple", "pinned_pair",
            "{name}, PCIe 5.0 x16, pinned tensors. Wikipedia has 128 GB/s for this slot and I get less than half. Is "
            "it running at Gen4?",
            "128 GB/s counts both directions", OK),
    healthy("grid", "pinned_grid",
            "Pinned copies of torch on {name} (PCIe Gen5 x16). Should I be concerned about the upper rows of this "
            "table?",
            "small copies cost their launch", OK),
    healthy("kernels", "memory_kernels",
            "I ported STREAM to torch to accept a new {name}. The figures stay below the memory bandwidth of the data "
            "sheet. Return the card?",
            "kernels reach some 90 % of the figure of a data sheet"),
    healthy("above", "downloads",
            "Checkpoints leave {name} over PCIe Gen5 x16, buffer allocated once and page-locked. I calculated 17 ms "
            "for each of these (64 GB/s), what is eating the rest?",
            "64 GB/s is before the heads of packets", OK),
    healthy("block", "one_value",
            "hi all, my loop fetch the loss with .item() from {name} in each step. pci express 5.0 x16, so should be "
            "60 GB/s but it show me this?? driver problem?",
            "four bytes take the latency of a call"),
    faulty("notebook", "activations",
           "Jupyter on a box with {name}, PCIe Gen5 x16, nothing else running. Somebody here claimed that results "
           "come back at 50 GB/s. Mine:",
           "the result goes to new, pageable memory", "pageable"),
    faulty("profile", "profiled",
           "Training on {name} (PCIe Gen5 x16). The profiler says that the step waits for the data, although I pass "
           "non_blocking=True. I had planned with 50 GB/s to the GPU. What do I change?",
           "pageable memory", "pageable"),
    faulty("lines", "rows_by_line",
           "Vector cache on {name}, PCIe Gen5 x16. upload() fills 4096 rows of 32 KiB from a page-locked table (128 "
           "MiB in all). By bandwidth this is 2.5 ms. line_profiler:",
           "rows of 32 KiB, each waited for", "requests software"),
    faulty("pair", "converted",
           "We send half precision to {name} now (page-locked source, PCIe Gen5 x16), one call: "
           "x.to(\"cuda\", torch.float16, non_blocking=True). Half the bytes, and it got slower?!",
           "the CPU converts before the copy, into pageable memory", "software pageable host requests"),
    faulty("rich", "pinned_each_time",
           "Input pipeline of {name} on PCIe Gen5 x16, page-locked and non_blocking as the tutorial has it. "
           "nvbandwidth reads 55 GB/s on the same host, the time below is from numpy to GPU:",
           "each batch is first copied to a pinned buffer by the CPU, within the time",
           "software pageable staged counting host"),
    faulty("words", "column",
           "Analytics kernel: sum of one feature of a row-major float32 table with 64 features, all of it in the "
           "memory of {name}. I expected 80 % of the HBM bandwidth and get",
           "4 bytes of each 256 are used, the memory reads whole sectors", "requests software", SLOW_OR_OPEN),
    faulty("commas", "counted_as_float",
           "Does {name} compress data on PCIe (Gen5 x16)? Half precision tensor, page-locked:",
           "float16 counted as 4 bytes an element", "counting", ("fast",)),
)  # fmt: skip
SEVERAL = (
    healthy("matrix", "all_pairs",
            f"{PAIR} Measured with copy_ for each pair. Why are the corners so uneven, is the link between 0 and 1 "
            "broken? The vendor talks of 900.",
            "copies within a GPU use its memory, the others NVLink; 900 GB/s counts both directions", gpus=2),
    healthy("arrows", "peer_sizes",
            f"{PAIR} Tensor from cuda:0 to cuda:1 by size. At the beginning it is slower than Ethernet, what is going "
            "on?",
            "small copies cost their launch", gpus=2),
    healthy("info", "traced_reduce",
            f"{PAIR} Bindings of NCCL, all_reduce of float32. 18 links with 25 GB/s are 450 each way, we log less, "
            "above all for 16 MiB. Which setting do we miss?",
            "all_reduce does not reach the raw rate of the links, and less so for smaller sizes", gpus=2),
    healthy("upright", "broadcast",
            f"{PAIR} Rank 0 reads the weights and broadcasts them to rank 1. Is this an acceptable rate, given 450 "
            "GB/s per direction?",
            "a broadcast of NCCL does not reach the raw rate of the links", gpus=2),
    healthy("layers", "layers",
            f"{PAIR} Tensor parallel, 80 layers with two all_reduce each. 160 x 16 KiB is 2.6 MB, over NVLink that "
            "should be done in 0.01 ms per token:",
            "small messages take the latency of a call", gpus=2),
    faulty("sent", "by_buffer",
           f"{PAIR} PCIe Gen5 x16 to the host. Our stage 0 on cuda:0 gives its activations to stage 1 on cuda:1. It "
           "was supposed to take 3 ms (350 GB/s):",
           "the program copies to a pinned buffer of the host, and from there to the other GPU",
           "staged software peers", gpus=2),
    faulty("pages", "moved_pages",
           f"{PAIR} Disaggregated serving, KV pages of 64 KiB migrate from one GPU to the other. Sized for 200 GB/s. "
           "Output of the migration tool:",
           "a wait after each page of 64 KiB", "requests software", gpus=2),
    faulty("params", "gradients",
           f"{PAIR} Model in bf16, gradients all-reduced as one flat buffer. nccl-tests has more than 300 GB/s busbw "
           "between these two. My log:",
           "the gradients are float32, the script counts 2 bytes a parameter", "counting software", SLOW_OR_OPEN,
           gpus=2),
    faulty("sync", "objects",
           f"{PAIR} RLHF, the trainer's rank 0 passes its weights (all on the GPU, nccl process group) on to rank 1 "
           "after each update. Over NVLink I would have guessed 1 ms:",
           "broadcast_object_list: pickled, through the CPUs and host memory",
           "software staged host requests transport pageable", gpus=2),
    faulty("each", "scatter_by_gpu",
           f"{PAIR} reduce_scatter of torch is a lot below the 300 GB/s of the other team. Same hardware:",
           "NCCL_PROTO=LL, shown", "setting algorithm", gpus=2, env="NCCL_PROTO=LL", shown=True),
    faulty("describe", "gather_described",
           f"{PAIR} all_gather by torch in our production container, 40 runs. The acceptance test on bare metal had "
           "around 300 for the same size:",
           "NCCL_MAX_NCHANNELS=1 in the environment of the container", "setting software", gpus=2,
           env="NCCL_MAX_NCHANNELS=1"),
    faulty("plain", "reduce_bits",
           f"{PAIR} two gpus and the allreduce is slower than my old pc with one 100G network card, please help",
           "NCCL_P2P_DISABLE=1 and NCCL_SHM_DISABLE=1 in the environment: sockets",
           "transport setting peers staged software", gpus=2, env="NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1"),
)  # fmt: skip
FIFTH = ONE_GPU + SEVERAL
