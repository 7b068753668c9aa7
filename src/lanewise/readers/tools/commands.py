"""The options of commands that people paste above what a tool printed."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re

_OPTION = re.compile(r"--?[A-Za-z][\w-]*")
_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kmgt]?)(?:i?b)?", re.IGNORECASE)
_LONGEST, _LONGEST_NODE = 600, 4
_NUMACTL = re.compile(r"\bnumactl\s+-")
_OF_MEMORY, _OF_CPUS = ("-m", "--membind"), ("-N", "--cpunodebind", "--cpubind")


def options_of(lines: Sequence[str], tool: str) -> dict[str, str]:
    """The options of the last command of a tool in some lines, each with its value; flags have none."""
    pattern = re.compile(rf"(?:^|[\s/$#]){tool}\s+(-.{{1,{_LONGEST}}})")
    commands = [match[1] for line in lines if (match := pattern.search(line))]
    return _options(commands[-1]) if commands else {}


def _options(text: str) -> dict[str, str]:
    """The options of the words behind a command's name: '-b 300M', '-b300M', '--rate=200m'."""
    found: dict[str, str] = {}
    last = ""
    for word in text.split():
        name, equals, value = word.partition("=")
        if _OPTION.fullmatch(name):
            short = not name.startswith("--") and len(name) > 2 and name[2].isdigit()
            last = name[:2] if short else name
            found[last] = name[2:] if short else value if equals else ""
        elif last:
            found[last] = found[last] or word
            last = ""
    return found


def memory_node(lines: Sequence[str]) -> str:
    """The NUMA node of a program's memory by the last numactl command in some lines; empty if none says it."""
    return _node(lines, (*_OF_MEMORY, *_OF_CPUS))


def cpu_node(lines: Sequence[str]) -> str:
    """The NUMA node of a program's threads by the last numactl command in some lines; empty if none says it."""
    return _node(lines, _OF_CPUS)


def _node(lines: Sequence[str], names: Sequence[str]) -> str:
    """The first of these options of the last numactl command that is one node."""
    options = options_of([line for line in lines if _NUMACTL.search(line)][-1:], "numactl")
    near = (options.get(name, "") for name in names)
    return next((node for node in near if node.isdecimal() and len(node) < _LONGEST_NODE), "")


def scaled(text: str, kilo: int) -> float:
    """A number with a letter for its power of `kilo`; 0 for what is none."""
    match = _NUMBER.fullmatch(text)
    return float(match[1]) * kilo ** " kmgt".index(match[2].lower() or " ") if match else 0.0
