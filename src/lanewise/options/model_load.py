"""Options of `lanewise predict --load`: the size of a model, where its weights lie, which GPUs they go to, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lanewise.options.option import Options, option, with_unit, words


@dataclass(frozen=True, slots=True)
class ModelLoadOptions(Options):
    """A model that is loaded from storage to GPUs."""

    heading: ClassVar[str] = "The load of a model"
    load: float | None = option(
        None,
        "A model of this size, loaded from --from to --to: time and limit of each loader.",
        metavar="SIZE",
        unit="B",
        minimum=1024,
        parse=with_unit("B", "the size of the model's files: --load 140GB"),
    )
    from_: str | None = option(None, "With --load: the drive, volume or remote host that holds the weights, or the "
                               "rate of the storage, '1000 MiB/s'.", metavar="NAME|RATE")  # fmt: skip
    to: str | None = option(None, "With --load: GPUs of one host, a process each, or the host.", metavar="gpu[0-7]",
                            complete="gpus")  # fmt: skip
    loader: tuple[str, ...] = option((), "With --load: what loads, such as safetensors or direct.", metavar="NAMES",
                                     parse=words, default_text="all that are possible")  # fmt: skip
    warm: bool = option(False, "With --load: the files are in the page cache.")
    replicated: bool = option(False, "With --load: every GPU gets the whole model; else each gets its part.")
    spread: bool = option(False, "With --replicated: each GPU reads a part and passes it on to all others.")
    readers: int | None = option(None, "With --load: reading threads of a process.", metavar="N", minimum=1,
                                 default_text="the loader's")  # fmt: skip
    read_ahead: float | None = option(None, "With --load: what the kernel reads ahead of a file (read_ahead_kb).",
                                      metavar="SIZE", unit="B", default_text="128 KiB",
                                      parse=with_unit("B", "--read-ahead 4MiB"))  # fmt: skip
    read_latency: float | None = option(None, "With --load: time of one read from the storage.", metavar="TIME",
                                        unit="s", default_text="the drive's",
                                        parse=with_unit("s", "--read-latency 100us"))  # fmt: skip
