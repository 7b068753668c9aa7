"""What a host is by the name of its CPU alone: its PCIe generation, and whether all of its memory is near."""

from __future__ import annotations

import re

from lanewise.catalog import Catalog
from lanewise.results.posted import PostedFacts

# PCIe generation of a CPU's lanes by series, for names that the catalogue does not have (the vendors' data sheets).
_SERIES = (
    (r"core.* i[3579][- ]1[2-9]\d{3}|core.* ultra", 5), (r"core.* i[3579][- ]11\d{3}", 4),
    (r"core.* i[3579][- ](?:[3-9]|10)\d{3}|core.* i[3579][- ](?:[3-9]|10)\d\d", 3), (r"core.* i[3579][- ]2\d{3}", 2),
    (r"ryzen [3579] [12]\d{3}|threadripper 1\d{3}", 3), (r"xeon.* [ew]3?[- ]?[23]1\d\d|xeon.* w-?[23][12]\d\d", 3),
    (r"xeon.* e[35]-[124]\d{3}l?(?: v[234])|xeon.* e5-[124]\d{3}", 3), (r"xeon.* [xlew]5[56]\d\d", 2),
    (r"power ?9", 4), (r"power ?8", 3), (r"xeon.* e-2[12]\d\d|ryzen.* [2-5][2-7]\d\dge?\b", 3),
    (r"xeon.* e-23\d\d|ampere altra|kunpeng 920", 4),
    # Names of generations, and numbers that people write without the series.
    (r"\b(?:genoa|bergamo|siena|turin|sapphire rapids|emerald rapids|granite rapids|sierra forest)\b|xeon 6\b", 5),
    (r"\b(?:rome|milan|ice ?lake)\b|wrx80|trx40", 4), (r"\b(?:naples|cascade ?lake|skylake|broadwell|haswell)\b", 3),
    # Intel's Core X of those numbers are of 2014 to 2019: i7-5960X, i9-7900X, i9-9900X.
    (r"\bi[79][- ][5679]\d{2}0x\b", 3), (r"\bi[3579][- ]1[2-9]\d{3}|\b1[2-4]\d00kf?s?\b", 5),
    (r"\b[79][79]\d0x(?:3d)?\b", 5), (r"\b5[5-9]\d0x(?:3d)?\b", 4),
)  # fmt: skip
# The best that hosts of cards have: no CPU with lanes of Gen6 is sold (vendors' data sheets, 2026).
HOST_GENERATION = 5
# One socket and one NUMA node: no memory of theirs is far.
_DESKTOP = re.compile(
    r"core.* i[3579]\b|core.* ultra|ryzen|celeron|pentium|athlon|xeon.* (?:e3|e5-1|w-?[1-3])", re.IGNORECASE
)
_SERVER = re.compile(r"epyc|xeon|power ?\d|threadripper|opteron|ampere|grace", re.IGNORECASE)
# Names of GPUs that people put into desktops.
_CONSUMER = re.compile(r"GeForce|\b[GR]TX [1-5]\d{2,3}\b|Radeon (?:RX|VII|Pro)|TITAN|Arc ", re.IGNORECASE)


def host_generation(cpu: str, catalog: Catalog) -> int | None:
    """The PCIe generation of a CPU by its name, None where nobody knows it."""
    if cpu in catalog and (gen := catalog.get(cpu).number("pcie.gen")):
        return int(gen)
    plain = re.sub(r"\((?:r|tm)\)|\bcpu\b", " ", cpu, flags=re.IGNORECASE)
    return next((gen for pattern, gen in _SERIES if re.search(pattern, " ".join(plain.split()), re.IGNORECASE)), None)


def one_memory(posted: PostedFacts, gpu: str, gpus: int) -> bool:
    """Whether the host is a desktop, all of whose memory is near: by its CPU, else by one or two consumer GPUs."""
    cpus = [statement.value for statement in posted.stated("cpu")]
    if cpus:
        return any(_DESKTOP.search(cpu) and not re.search(r"epyc|gold|silver|platinum", cpu, re.I) for cpu in cpus)
    return gpus <= 2 and bool(_CONSUMER.search(posted.title(gpu))) and not _SERVER.search(posted.title(gpu))
