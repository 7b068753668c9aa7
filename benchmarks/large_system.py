"""CPU time of predictions and routes in a system with 1,000 GPUs behind 125 switches.

    python benchmarks/large_system.py [--out benchmarks/runs/DATE-large-system.json]

25 sockets, each with 5 switches of 8 GPUs; flows go between GPUs of one switch. CPU seconds, so that other work on the
machine counts little: of this process for the functions, of the child for the command.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kept

import lanewise

HOSTS, SWITCHES, GPUS = 25, 5, 8


def description() -> str:
    """A system file: cpuN, its switches and their GPUs, for each host."""
    lines = ["lanewise: 1", "system: thousand-gpus", "devices:"]
    lines += [f'  "cpu[0-{HOSTS - 1}]": {{cpu: emerald-rapids}}']
    lines += [f'  "sw[0-{HOSTS * SWITCHES - 1}]": {{switch: null}}']
    lines += [f'  "gpu[0-{HOSTS * SWITCHES * GPUS - 1}]": {{gpu: l40s}}', "links:"]
    for switch in range(HOSTS * SWITCHES):
        first = switch * GPUS
        lines.append(f"  - {{from: cpu{switch // SWITCHES}, to: sw{switch}, pcie: gen5 x16}}")
        lines.append(f'  - {{from: sw{switch}, to: "gpu[{first}-{first + GPUS - 1}]", pcie: gen4 x16}}')
    return "\n".join(lines) + "\n"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Time each of the three, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "system.yaml"
        path.write_text(description(), encoding="utf-8")
        begun = time.process_time()
        system = lanewise.load_system(path)
        seconds = {"load the system": time.process_time() - begun}
        command = [str(Path(sys.executable).with_name("lanewise")), "route", str(path), "gpu0", "gpu9"]
        begun = _children()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds["lanewise route, one pair"] = _children() - begun
    count = HOSTS * SWITCHES * GPUS
    flows = ", ".join(f"gpu{gpu}->gpu{gpu // GPUS * GPUS + (gpu + 1) % GPUS}" for gpu in range(count))
    for name in ("predict 1,000 flows", "predict 1,000 flows again"):
        begun = time.process_time()
        prediction = lanewise.predict(system, flows)
        seconds[name] = time.process_time() - begun
    for name, value in seconds.items():
        print(f"{name:28} {value:6.2f} s of CPU")
    print(f"all flows together {prediction.total / 1e9:,.0f} GB/s")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps({"machine": kept.machine(), "cpu_seconds": seconds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
