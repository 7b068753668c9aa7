"""From a drive's model, as the OS or a shop prints it, to the part of the catalogue that stands for its series."""

from __future__ import annotations

import re
from functools import lru_cache

# The first that matches counts. The series' own names are those of the part's source. What a vendor's part number
# stands for is as listings of the OS pair it with a name; only the Micron 9200's is from a document.
_MODELS = tuple(
    (re.compile(pattern, re.IGNORECASE), part)
    for pattern, part in (
        (r"\b990[ _-]PRO\b", "samsung-990-pro"), (r"\b980[ _-]PRO\b", "samsung-980-pro"),
        (r"\bSSD[ _]980\b", "samsung-980"), (r"\b970[ _-]EVO[ _-]Plus\b", "samsung-970-evo-plus"),
        (r"\b970[ _-]EVO\b", "samsung-970-evo"), (r"\b970[ _-]PRO\b", "samsung-970-pro"),
        (r"\b960[ _-]EVO\b", "samsung-960-evo"), (r"\b960[ _-]PRO\b", "samsung-960-pro"),
        (r"\bPM9A3\b|\bMZQL2\w", "samsung-pm9a3"),
        (r"\bPM9D3a\b.*(?:\b960 ?GB|\bM\.2)|\bMZVL6960H", "samsung-pm9d3a-m2"),
        (r"\bPM9D3a\b|\bMZWL615THB", "samsung-pm9d3a"),
        (r"\bPM981a\b", "samsung-pm981a"), (r"\bPM981\b|\bMZVLB\w", "samsung-pm981"),
        (r"\bMZWLL\w", "samsung-pm1725"),
        (r"\bPM1733a?\b|\bMZWL[JR]\w", "samsung-pm1733"), (r"\bPM1735a?\b|\bMZPLJ\w", "samsung-pm1735"),
        (r"\bPM1743\b|\bMZWLO\w", "samsung-pm1743"),
        (r"\bP3600\b|\bSSDPE2ME\w", "intel-p3600"), (r"\bP3700\b|\bSSDPE2MD\w", "intel-p3700"),
        (r"\bP4500\b", "intel-p4500"), (r"\bP4510\b|\bSSDPE2KX\w{3,4}8", "intel-p4510"),
        (r"\bP4800X\b|\bSSDPE21K\w", "intel-p4800x"),
        (r"\bP5[56]00\b", "intel-p5500"), (r"\bP5510\b", "intel-p5510"), (r"\bP5800X\b|\bSSDPF21Q\w", "intel-p5800x"),
        (r"\bP5316\b|\bSSDPF2NV\w", "solidigm-p5316"), (r"\bPS10[13]0\b", "solidigm-ps1010"),
        (r"\bP5810\b", "solidigm-p5810"), (r"\bP5336\b|\bSBFPF2BV\w", "solidigm-p5336"),
        (r"\bMicron[ _]7300", "micron-7300"), (r"\bMicron[ _]7400", "micron-7400"),
        (r"\bMicron[ _]7450", "micron-7450"), (r"\bMicron[ _]9200|\bMTFDHAL\w+TC[TUW]\b", "micron-9200"),
        (r"\bMicron[ _]9300", "micron-9300"),
        (r"\bMicron[ _]9400", "micron-9400"),
        (r"\bKCM6\w|\bCM6-[RV]|\bkioxia[ _]CM6\b", "kioxia-cm6"),
        (r"\bKCM7\w|\bCM7-[RV]|\bkioxia[ _]CM7\b", "kioxia-cm7"),
        (r"\bKCD6\w|\bCD6-[RV]|\bkioxia[ _]CD6\b", "kioxia-cd6"), (r"\bCD7\b", "kioxia-cd7"),
        (r"\bKCD8\w|\bCD8-[RV]|\bkioxia[ _]CD8\b", "kioxia-cd8"),
        (r"\bKXG60\w|\bXG6\b", "kioxia-xg6"),
        (r"\bSN770\b", "wd-sn770"), (r"\bFireCuda[ _]540\b", "seagate-firecuda-540"),
        (r"\bSN850X\b", "wd-sn850x"), (r"\bSN850\b", "wd-sn850"), (r"\bSN750\b", "wd-sn750"),
        (r"\bCT\d+P5PSSD|\bP5 Plus\b", "crucial-p5-plus"), (r"\bCT\d+T700SSD|\bCrucial T700\b", "crucial-t700"),
        (r"\bCT\d+T705SSD|\bCrucial T705\b", "crucial-t705"),
        (r"\bPlatinum[ _]P41\b|\bSHPP41\b", "skhynix-p41"),
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
