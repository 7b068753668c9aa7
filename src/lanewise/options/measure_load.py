"""Options of `lanewise measure load`: safetensors files, where their tensors go, by which modes, how many readers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lanewise.errors import InputError, unknown_name
from lanewise.options.option import Options, argument, option, words
from lanewise.options.sampling import SamplingRule

LOAD_MODES = ("direct", "cached", "buffered", "bounce")
LOAD_LIBRARIES = ("safetensors", "fastsafetensors", "runai-streamer")
_PAGE = 4096
_MOST_IN_FLIGHT = 4096
_TARGET = re.compile(r"^(?:host(?:0)?|gpu(?P<gpu>\d{1,4}))$")


@dataclass(frozen=True, slots=True)
class MeasureLoadOptions(Options):
    """Files whose tensors are loaded to `to`, `io` bytes at a time with `depth` reads in flight for each reader.

    InputError or UnknownName for a wrong value.
    """

    files: tuple[str, ...] = argument("FILE...", "Safetensors files of one model.", repeat=True)
    to: tuple[str, ...] = option(
        ("host0",), "Where tensors go: GPUs, each its part, or host memory.", metavar="gpu0,gpu1|host0", parse=words
    )
    modes: tuple[str, ...] = option(
        (), "Modes: direct, cached, buffered, bounce; libraries: safetensors, fastsafetensors, runai-streamer.",
        metavar="MODES", parse=words, default_text="all modes, and the libraries that are installed",
    )  # fmt: skip
    replicated: bool = option(False, "Every GPU gets all tensors.")
    readers: int = option(8, "Reading threads.", metavar="N", minimum=1)
    depth: int = option(4, "Reads in flight for each reader.", metavar="N", minimum=1)
    io: int = option(4 << 20, "Size of one read.", metavar="SIZE", unit="B", minimum=_PAGE, maximum=1 << 30)
    runs: int = option(5, "Most runs of each mode; fewer if they agree within 2 %.", metavar="N", minimum=1)
    skip_verify: bool = option(False, "Do not compare the loaded tensors with the files.")

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if not self.files:
            raise InputError("no file is given", hint="name the safetensors files of a model")
        if self.io % _PAGE:
            raise InputError(f"a read of {self.io:,} bytes is no multiple of 4 KiB", hint="for example --io 4MiB")
        if self.readers * self.depth > _MOST_IN_FLIGHT:
            cause = f"{self.readers} readers with {self.depth} reads in flight each are not possible"
            raise InputError(cause, hint=f"together at most {_MOST_IN_FLIGHT:,}")
        for mode in self.modes:
            if mode not in (*LOAD_MODES, *LOAD_LIBRARIES):
                raise unknown_name("mode", mode, (*LOAD_MODES, *LOAD_LIBRARIES))
        if len(self.gpus) != len(self.to) and len(self.to) > 1:
            raise InputError("tensors go to GPUs or to host memory, not to both", hint="write --to gpu0,gpu1")
        if self.replicated and len(self.to) < 2:
            raise InputError("--replicated takes several GPUs", hint="write --to gpu0,gpu1 --replicated")

    @property
    def gpus(self) -> tuple[int, ...]:
        """The numbers of the GPUs; none for host memory. InputError for another name, or one named twice."""
        numbers = []
        for name in self.to:
            match = _TARGET.match(name)
            if match is None:
                raise InputError(f"'{name}' is no memory to load into", hint="use --to host0, or --to gpu0,gpu1")
            if match["gpu"] is not None:
                numbers.append(int(match["gpu"]))
        if len({*numbers}) < len(numbers) or not self.to:
            raise InputError(f"'{','.join(self.to)}' does not name each GPU once", hint="write --to gpu0,gpu1")
        return tuple(numbers)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The targets as flows write them."""
        return tuple(f"gpu{number}" for number in self.gpus) or ("host0",)

    @property
    def rule(self) -> SamplingRule:
        """When a mode has enough runs."""
        return SamplingRule(min(3, self.runs), self.runs, 0.02)
