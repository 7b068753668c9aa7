"""The models of drives that lists of tools name: nvme list, lsblk with a column MODEL, smartctl and nvme id-ctrl.

lsblk says as well what joins a drive and whether it turns (TRAN and ROTA, lsblk's manual page); smartctl's "SATA
Version" and "Rotation Rate" say the same. Both become words of the model: "Samsung SSD 870 EVO 2TB, SATA SSD".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from lanewise import late_re as re

_NumberedLine: TypeAlias = tuple[int, str]
# nvme list, with or without the generic device.
_LISTED = re.compile(r"\s*/dev/(nvme\d{1,4})n\d{1,4}\s+(?:/dev/ng\S{1,20}\s+)?\S{1,40}\s+(\S.{2,60}?)\s{2,}")
# smartctl and nvme id-ctrl of a device that the text names once; the command above says which.
_MODEL = re.compile(r"\s*(?:Model Number|Device Model|Product)\s*: *(\S.{2,60}?)\s*$")
_COMMAND = re.compile(r"\b(?:smartctl|id-ctrl)\b.*/dev/(sd[a-z]{1,2}|nvme\d{1,4})")
_SATA, _TURNS = re.compile(r"\s*SATA Version is: "), re.compile(r"\s*Rotation Rate: +(Solid State|\d{4,5} rpm)")
_HEADS = re.compile(r"\s*NAME\b(?=.* MODEL\b)[A-Z:%# -]{5,200}$")
_NAME = re.compile(r"(?:/dev/)?(sd[a-z]{1,2}|[vx]vd[a-z]|hd[a-z]|nvme\d{1,4}n\d{1,4})(?=\s)")
# Columns whose cells stand to the right: numbers.
_RIGHT = ("SIZE", "ROTA", "RO", "RM", "RA", "PHY-SEC", "LOG-SEC", "MIN-IO", "OPT-IO", "RQ-SIZE", "DISC-GRAN")
# A text has no more drives than this.
_MOST = 64


def listed_drives(lines: Sequence[_NumberedLine]) -> dict[str, str]:
    """The models of drives by their names, NVMe's without the namespace; of a drive that is not named, "nvme"."""
    drives = {match[1]: match[2] for _, line in lines if (match := _LISTED.match(line))}
    drives |= dict([*_of_lsblk(lines)][:_MOST])
    if drives:
        return drives
    models = {match[1] for _, line in lines if (match := _MODEL.match(line))}
    names = {match[1] for _, line in lines if (match := _COMMAND.search(line))}
    if len(models) != 1 or len(names) > 1:
        return {}
    return {next(iter(names), "nvme"): f"{models.pop()}{_kind(*_of_smartctl(lines))}"}


def _of_lsblk(lines: Sequence[_NumberedLine]) -> Iterator[tuple[str, str]]:
    heads: list[tuple[str, int, int]] = []
    for _, line in lines:
        if _HEADS.match(line):
            heads = [(match[0], *match.span()) for match in re.finditer(r"\S+", line)]
        elif heads and (match := _NAME.match(line.strip() + " ")):
            cells = {name: _cell(line, heads, at) for at, (name, _, _) in enumerate(heads)}
            if model := cells["MODEL"].replace("_", " "):
                turns = cells.get("ROTA", "") == "1" and cells.get("TRAN", "") in ("sata", "sas", "ata")
                still = cells.get("ROTA", "") == "0"
                yield re.sub(r"n\d+$", "", match[1]), model + _kind(cells.get("TRAN") == "sata", still, turns)


def _cell(line: str, heads: Sequence[tuple[str, int, int]], at: int) -> str:
    """The cell of a line below a head: from where the one before ends to where the next begins."""
    name, start, end = heads[at]
    if name in _RIGHT:
        return next(iter(line[:end].split()[-1:]), "")
    following = heads[at + 1] if at + 1 < len(heads) else ("", len(line), len(line))
    if following[0] in _RIGHT:
        return line[start : following[2]].rpartition(" ")[0].strip()
    return line[start : following[1]].strip()


def _of_smartctl(lines: Sequence[_NumberedLine]) -> tuple[bool, bool, bool]:
    sata = any(_SATA.match(line) for _, line in lines)
    rates = [match[1] for _, line in lines if (match := _TURNS.match(line))]
    return sata, "Solid State" in rates, any("rpm" in rate for rate in rates)


def _kind(sata: bool, still: bool, turns: bool) -> str:
    """What follows a model: the kind of drive that its bus and its plates make it."""
    return ", hard disk" if turns else ", SATA SSD" if sata and still else ""
