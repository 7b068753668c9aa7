"""What GPUs a machine has, as nvidia-smi, rocm-smi and deviceQuery list them beside somebody's figures."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re

_QUICK = ("UUID", "GPU[", "Device ", "Product Name", "|")
_LISTED = (
    re.compile(r"\s{0,8}GPU \d{1,3}: (\S.{2,80}?) \(UUID"),  # nvidia-smi -L
    re.compile(  # nvidia-smi
        r"\|\s{1,6}\d{1,3}\s{1,6}((?:NVIDIA|Tesla|GeForce|Quadro|TITAN) [^|]{2,40}?)\s{1,20}(?:On|Off|WDDM|TCC|N/A)"
        r"\s{0,9}\|"
    ),
    re.compile(r"\s{1,12}Product Name\s{1,40}: (\S.{2,80}?)\s*$"),  # nvidia-smi -q
    re.compile(r"\s{0,8}GPU\[\d{1,3}\]\s{0,20}: Card [sS]eries:\s{0,20}(\S.{2,80}?)\s*$"),  # rocm-smi --showproductname
    re.compile(r'\s{0,8}Device \d{1,3}: "(\S.{2,80}?)"'),  # deviceQuery
)


def listed_gpu(lines: Sequence[str]) -> str:
    """The name of all GPUs of such lists, empty where they differ: tools number different GPUs in orders of their own.

    nvidia-smi's table cuts long names: one that ends in dots counts as a name only where no other list has it whole.
    """
    names = {
        match[1]
        for line in lines
        if any(word in line for word in _QUICK)
        for pattern in _LISTED
        if (match := pattern.match(line))
    }
    whole = {name for name in names if not name.endswith("...")}
    if len(whole) != 1:
        return ""
    cut = {name for name in names - whole if not any(each.startswith(name[:-3]) for each in whole)}
    return "" if cut else whole.pop()
