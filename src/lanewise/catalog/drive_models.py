"""From a drive's model, as the OS or a shop prints it, to the part of the catalogue that stands for its series."""

from __future__ import annotations

import re
from functools import lru_cache

# The first that matches counts. Vendors' part numbers name the series: MZQLB is a PM983, SSDPE2KX of the eighth
# generation a P4510 (the vendors' ordering guides).
_MODELS = tuple(
    (re.compile(pattern, re.IGNORECASE), part)
    for pattern, part in (
        (r"\b990[ _-]PRO\b", "samsung-990-pro"), (r"\b980[ _-]PRO\b", "samsung-980-pro"),
        (r"\bSSD[ _]980\b", "samsung-980"), (r"\b970[ _-]EVO[ _-]Plus\b", "samsung-970-evo-plus"),
        (r"\b970[ _-]EVO\b", "samsung-970-evo"), (r"\b970[ _-]PRO\b", "samsung-970-pro"),
        (r"\b960[ _-]EVO\b", "samsung-960-evo"), (r"\b960[ _-]PRO\b", "samsung-960-pro"),
        (r"\bPM9A1\b|\bMZVL2\w", "samsung-pm9a1"), (r"\bPM9A3\b|\bMZQL2\w", "samsung-pm9a3"),
        (r"\bPM991a?\b|\bMZALQ\w", "samsung-pm991"), (r"\bPM981a?\b|\bMZVLB\w", "samsung-pm981"),
        (r"\bPM983\b|\bMZQLB\w", "samsung-pm983"), (r"\bMZWLL\w", "samsung-pm1725"),
        (r"\bPM1733a?\b|\bMZWL[JR]\w", "samsung-pm1733"), (r"\bPM1735a?\b|\bMZPLJ\w", "samsung-pm1735"),
        (r"\bPM1743\b|\bMZWLO\w", "samsung-pm1743"),
        (r"\bP3600\b|\bSSDPE2ME\w", "intel-p3600"), (r"\bP3700\b|\bSSDPE2MD\w", "intel-p3700"),
        (r"\bP4510\b|\bSSDPE2KX\w{3,4}8", "intel-p4510"), (r"\bP4600\b|\bSSDPE2KE\w{3,4}7", "intel-p4600"),
        (r"\bP4610\b|\bSSDPE2KE\w{3,4}8", "intel-p4610"), (r"\bP4800X\b|\bSSDPE21K\w", "intel-p4800x"),
        (r"\b905P\b|\bSSDPE21D(?:480|960|015)", "intel-optane-905p"), (r"\bP5800X\b|\bSSDPF21Q\w", "intel-p5800x"),
        (r"\bP5510\b|\bSSDPF2KX\w{4}Z\b", "intel-p5510"), (r"\bP5520\b|\bSSDPF2KX\w{4}1", "solidigm-p5520"),
        (r"\bP5316\b|\bSSDPF2NV\w", "solidigm-p5316"), (r"\bP5336\b|\bSBFPF2BV\w", "solidigm-p5336"),
        (r"\bPS1010\b|\bSB5PH27X\w", "solidigm-ps1010"),
        (r"\bMicron[ _]7300", "micron-7300"), (r"\bMicron[ _]7400", "micron-7400"),
        (r"\bMicron[ _]7450", "micron-7450"), (r"\bMicron[ _]9300", "micron-9300"),
        (r"\bMicron[ _]9400", "micron-9400"),
        (r"\bKCM6\w|\bCM6-[RV]", "kioxia-cm6"), (r"\bKCM7\w|\bCM7-[RV]", "kioxia-cm7"),
        (r"\bKCD6\w|\bCD6-[RV]", "kioxia-cd6"), (r"\bKCD8\w|\bCD8-[RV]", "kioxia-cd8"),
        (r"\bKXG60\w|\bXG6\b", "kioxia-xg6"),
        (r"\bSN640\b|\bWUS4BB\w", "wd-sn640"),
        (r"\bSN850X\b", "wd-sn850x"), (r"\bSN850\b", "wd-sn850"), (r"\bSN750\b", "wd-sn750"),
        (r"\bCT\d+P5PSSD|\bP5 Plus\b", "crucial-p5-plus"), (r"\bCT\d+T700SSD|\bCrucial T700\b", "crucial-t700"),
        (r"\bPlatinum[ _]P41\b|\bSHPP41\b", "skhynix-p41"),
        (r"\bFireCuda[ _]530\b|\bZP\d+GM30\w", "seagate-firecuda-530"),
        (r"\bSKC3000\w|\bKC3000\b", "kingston-kc3000"),
    )
)  # fmt: skip
_LONGEST = 300


@lru_cache(maxsize=1024)
def drive_series(model: str) -> str | None:
    """The name of the part for a drive's model, None if no rule knows it.

    >>> drive_series("INTEL SSDPE2KX080T8")
    'intel-p4510'
    """
    text = model[:_LONGEST]
    return next((part for pattern, part in _MODELS if pattern.search(text)), None)
