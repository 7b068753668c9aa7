"""GPUs by what people write of several: 2x 4090, 8 x A100 SXM4, DGX H100."""

from __future__ import annotations

from lanewise import late_re as re
from lanewise.catalog.gpu_names import LONGEST, driver_name
from lanewise.readers.words.machines import only_machine

_COUNT = re.compile(
    r"^\(?\d{1,3}\)? ?[x×*] ?(?=\D|\d{4}\b)|^[2-9] (?=[A-Z])|^(?:(?:a )?pair of|two|dual|three|four|quad|six|eight) |"
    r"(?<!\w)[ ,]*[x×*] ?\d{1,3}$|[ ,]*\((?:[x×*] ?)?\d{1,2} ?(?:gpus?|cards?)?\)$",
    re.I,
)


def gpu_name(text: str) -> str:
    """The name, as its driver prints it, of each of the GPUs that a text counts or whose machine it names."""
    if len(text) > LONGEST:
        return text
    name = _COUNT.sub("", " ".join(text.split())).strip(" ,-")
    machine = only_machine(name)
    return driver_name(name) if machine is None else machine.gpu
