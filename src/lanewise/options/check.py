"""Options of `lanewise check`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import FormatError
from lanewise.options.collective import LAUNCHES
from lanewise.options.option import Options, argument, option, parts_option, settings

MODEL = "model"


def devices(pairs: Iterable[str]) -> dict[str, str]:
    """'data.bin=vol0' as a mapping; FormatError for a pair that names no device."""
    mapping = {}
    for pair in pairs:
        word, equals, device = pair.partition("=")
        if not (word and equals and device):
            raise FormatError(f"'{pair}' names no device", hint="write --as WORD=DEVICE, such as --as data.bin=vol0")
        mapping[word.strip().removeprefix("/dev/")] = device.strip()  # results name a drive nvme0n1
    return mapping


@dataclass(frozen=True, slots=True)
class CheckOptions(Options):
    """What is checked against what."""

    more: tuple[Path, ...] = argument("FILE", "Results or dumps, as with --from.", (), repeat=True)
    from_: tuple[Path, ...] = option(
        (), "Results (nvbandwidth, p2pBandwidthLatencyTest, nccl-tests, fio, a run, ...) or a dump; repeatable. "
        "Without any, this machine is measured.", metavar="FILE", repeat=True,
    )  # fmt: skip
    system: str | None = option(None, "What the machine should be: a built-in system or a description file.",
                                metavar="SYSTEM", complete="systems")  # fmt: skip
    expect: tuple[str, ...] = option(
        (MODEL,), "Expected values: those of the model, of an earlier run, or of a class of machines (three or more "
        "runs); repeatable.", metavar="model|RUN.json", repeat=True,
    )  # fmt: skip
    tolerance: float | None = option(
        None, "How far from its expected value every row is fine.", metavar="10%", unit="1", minimum=0, maximum=1,
        default_text="the interval and a tolerance by basis",
    )  # fmt: skip
    devices: dict[str, str] = option(dict, "Device that a word in the results means: data.bin=vol0; repeatable.",
                                     "--as", metavar="WORD=DEVICE", repeat=True, parse=devices)  # fmt: skip
    nccl: str = option("", "The version of NCCL of collectives whose text has none, such as 2.27.7.", metavar="VERSION",
                       default_text="the newest known")  # fmt: skip
    launch: str | None = option(None, "Who issued collectives whose text does not say.", metavar="|".join(LAUNCHES),
                                choices=LAUNCHES, default_text="nccl-tests")  # fmt: skip
    name: str = option("", "Name of the machine in --json and --prometheus.", metavar="NAME")
    prometheus: Path | None = option(None, "Write metrics for node_exporter's textfile collector.",
                                     metavar="FILE.prom")  # fmt: skip
    output: Path | None = option(None, "Write the measured rows as a run.", "-o --output", metavar="RUN.json")
    settings: dict[str, int] = option(dict, "Set a parameter of --system; repeatable.", "--set", metavar="NAME=NUMBER",
                                      repeat=True, parse=settings)  # fmt: skip
    parts: tuple[Path, ...] = parts_option()
