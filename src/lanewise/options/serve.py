"""Options of `lanewise serve`: what an Accelerator node runs, and where it listens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError
from lanewise.options.loadtest import CPU, ModelOptions
from lanewise.options.option import option

GPU_MEMORY = (OFF, AUTO, ON) = ("off", "auto", "on")


@dataclass(frozen=True, slots=True)
class ServeOptions(ModelOptions):
    """An Accelerator node. Samples come from its Frontend, so the library is none of its options."""

    library: int = 1
    listen: str = option("", "Where to listen.", metavar="[ADDRESS][:PORT]", default_text="127.0.0.1:7000")
    name: str = option("", "Name of this node in results.", metavar="NAME", default_text="the host's name and port")
    device: str | None = option(None, "verbs only: this node's RDMA device.", metavar="NAME", default_text="all")
    gid_index: int | None = option(None, "verbs only: this node's GID.", metavar="N", minimum=0, maximum=255)
    gpu_memory: str = option(
        OFF, "verbs only: let samples arrive in the GPU's memory, registered by dma-buf; auto does so where driver, "
        "libibverbs and NIC can. Never run on RDMA hardware.", metavar="|".join(GPU_MEMORY), choices=GPU_MEMORY,
    )  # fmt: skip
    once: bool = option(False, "End after one Frontend.")
    secret_file: Path | None = option(
        None, "File with the secret that Frontends share.", metavar="FILE",
        default_text="LANEWISE_SECRET; else a new one is shown",
    )  # fmt: skip
    tls_certificate: Path | None = option(
        None, "Speak TLS with this certificate (PEM).", metavar="FILE", default_text="no TLS"
    )
    tls_key: Path | None = option(None, "Private key of --tls-certificate (PEM).", metavar="FILE",
                                  default_text="in the same file")  # fmt: skip

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        if self.name and not re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", self.name):
            raise InputError(f"--name is '{self.name}'", hint="take up to 64 letters, digits and . _ : -")
        if self.gpu_memory == ON and (len(self.devices) != 1 or self.devices[0] == CPU):
            cause = f"--gpu-memory on is for one GPU, --devices names {', '.join(self.devices)}"
            raise InputError(cause, hint="serve each GPU by a node of its own: --devices gpu0 --listen :7000")
        if self.gpu_memory != OFF and self.copy not in ("auto", "kernel"):
            cause = f"--gpu-memory {self.gpu_memory}: a kernel gathers samples in GPU memory, not --copy {self.copy}"
            raise InputError(cause, hint="leave --copy out")
