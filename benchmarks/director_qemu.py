"""The director over emulated servers: attach and detach rounds, and the moves of the study composable-server for real.

    python benchmarks/director_qemu.py [--rounds 50] [--seed 1] [--seconds 10]

Two QEMU servers and two boxes of four NVMe drives (system emulated-two-servers). A round attaches a drive to a server
and detaches one, both through the director. After each the director's pool, QEMU and `lanewise discover` in each guest
must name the same drives, with the same link and as many switches above them.

The moves: three drives of one box read at once, a fourth is attached meanwhile, then goes to the other server. Drives
are throttled to a tenth of what the link above the box carries by the model, as an emulated link carries anything: so
this shows that the director's predictions of sharing come true in a guest, and nothing of real links.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from director.qemu.emulated import drives, guest_drives, guest_kernel

from lanewise import api
from lanewise.director.drivers.qemu.driver import QemuDriver
from lanewise.director.engine import Director
from lanewise.director.errors import DeviceInUse
from lanewise.director.records import Task
from lanewise.director.store.database import Store
from lanewise.pool.model import CompositionRequest

SCALE = 0.1
SYSTEM = "emulated-two-servers"
SERVERS = {"alpha": "server0", "beta": "server1"}
_SETTLE = 3.0  # s


@contextlib.contextmanager
def laboratory(limit: float | None) -> Iterator[tuple[Director, QemuDriver]]:
    """A director over servers that run; `limit` is the B/s of data through each cable between a server and a box."""
    system = api.load_system(SYSTEM)
    limits = {} if limit is None else {name: limit for name in system.devices if "hba" in name}
    with tempfile.TemporaryDirectory(prefix="qemu") as folder, contextlib.ExitStack() as stack:
        driver = QemuDriver(system, Path(folder) / "q", kernel=guest_kernel(), limits=limits)
        stack.callback(driver.stop)
        driver.start()
        store = Store(Path(folder) / "director.sqlite")
        stack.callback(store.close)
        director = Director(store, driver)
        director.start()
        stack.callback(director.close)
        yield director, driver


def completed(task: Task) -> Task:
    """The task, which must not have failed."""
    assert task.ended, task
    assert task.problem is None, task.problem
    return task


def disagreements(director: Director, driver: QemuDriver) -> list[str]:
    """Where the director's pool, QEMU and the guests do not say the same."""
    system = director.view().pool.system
    found = []
    for server in SERVERS.values():
        pool, guest, fabric = drives(system, server, {}), guest_drives(driver, server), driver.observe(server)
        if pool != guest or {row[0] for row in pool} != fabric:
            found.append(f"{server}: director {sorted(pool)}, guest {sorted(guest)}, QEMU {sorted(fabric)}")
    return found


def rounds(count: int, seed: int) -> list[kept.Record]:
    """Attach one drive, detach one, and look at all sides after each."""
    chance, rows = random.Random(seed), []
    with laboratory(None) as (director, driver):
        for name, (server, first) in zip(SERVERS, zip(SERVERS.values(), ("ssd0", "ssd4"), strict=True), strict=True):
            completed(director.compose(CompositionRequest(blocks=(first,), server=server, name=name)))
        free, given = ["ssd1", "ssd2", "ssd3", "ssd5", "ssd6", "ssd7"], []
        for number in range(count):
            drive, name = free.pop(chance.randrange(len(free))), chance.choice(list(SERVERS))
            row: kept.Record = {"round": number, "attached": drive, "to": SERVERS[name]}
            row["attach_s"] = timed(partial(director.attach, name, drive))
            row["link"] = str(driver.link(drive))
            given.append((name, drive))
            row["faults"] = disagreements(director, driver)
            if len(free) < 2 or chance.random() < 0.8:
                owner, drive = given.pop(chance.randrange(len(given)))
                row |= {"detached": drive, "from": SERVERS[owner]}
                row["detach_s"] = timed(partial(director.detach, owner, drive))
                free.append(drive)
                row["faults"] += disagreements(director, driver)
            rows.append(row)
            print(row, flush=True)
    return rows


def timed(change: Callable[[], Task]) -> float:
    """The seconds a change took, which must have succeeded."""
    began = time.monotonic()
    completed(change())
    return time.monotonic() - began


class Load:
    """Readers of drives in the guests, and the rates that the guests' kernels count."""

    def __init__(self, driver: QemuDriver) -> None:
        self._driver = driver
        self._groups: dict[str, str] = {}

    def start(self, server: str, drive: str) -> None:
        """Read a drive again and again."""
        line = f"while dd if=/dev/{self._disk(server, drive)} of=/dev/null bs=256K iflag=direct; do :; done"
        self._groups[drive] = self._shell(server, f"setsid sh -c '{line}' >/dev/null 2>&1 & echo $!").strip()

    def stop(self, server: str, drive: str) -> None:
        """End the reader of a drive."""
        self._shell(server, f"kill -9 -{self._groups.pop(drive)}; sleep 1")

    def rates(self, places: dict[str, str], seconds: float) -> dict[str, float]:
        """B/s of each drive, by its server, over so many seconds."""
        time.sleep(_SETTLE)
        before = {drive: self._count(server, drive) for drive, server in places.items()}
        time.sleep(seconds)
        after = {drive: self._count(server, drive) for drive, server in places.items()}
        return {drive: (after[drive][1] - before[drive][1]) / (after[drive][0] - before[drive][0]) for drive in places}

    def _count(self, server: str, drive: str) -> tuple[float, int]:
        """The guest's time in s and the bytes read so far, by the block layer's statistics."""
        text = self._shell(server, f"cat /proc/uptime /sys/block/{self._disk(server, drive)}/stat").split("\n")
        return float(text[0].split()[0]), int(text[1].split()[2]) * 512

    def _disk(self, server: str, drive: str) -> str:
        machine = self._driver.machines[server]
        return str(machine.agent().execute("slot", {"slot": machine.tree.slots[drive].number})["disks"][0])

    def _shell(self, server: str, line: str) -> str:
        answer = self._driver.machines[server].agent().execute("run", {"argv": ["sh", "-c", line]})
        return str(answer["stdout"])


def moves(seconds: float) -> list[kept.Record]:
    """Compose three, add a fourth under load, move it to the other server."""
    with laboratory(_link_rate() * SCALE) as (director, driver):
        load, rows, places = Load(driver), [], dict.fromkeys(("ssd0", "ssd1", "ssd2"), "server0")
        first = CompositionRequest(blocks=tuple(places), server="server0", name="alpha")
        took = timed(lambda: director.compose(first))
        for drive, server in places.items():
            load.start(server, drive)
        rows.append(_step("three drives of box0 on server0", director, driver, load, places, seconds, took))
        took = timed(lambda: director.attach("alpha", "ssd3"))
        places["ssd3"] = "server0"
        load.start("server0", "ssd3")
        rows.append(_step("a fourth is attached while they read", director, driver, load, places, seconds, took))
        refusal = ""
        try:
            task = director.detach("alpha", "ssd3")
            refusal = task.problem.cause if task.problem else ""
        except DeviceInUse as error:
            refusal = error.cause
        assert refusal, "a drive that is read was taken away"
        load.stop("server0", "ssd3")
        took = timed(lambda: director.detach("alpha", "ssd3"))
        took += timed(lambda: director.compose(CompositionRequest(blocks=("ssd3",), server="server1", name="beta")))
        places["ssd3"] = "server1"
        load.start("server1", "ssd3")
        rows.append(_step("the fourth goes to server1", director, driver, load, places, seconds, took))
        rows[-1]["refused_before"] = refusal
    return rows


def _link_rate() -> float:
    """What one link of the fabric carries by the model, in B/s."""
    system = api.attach(api.load_system(SYSTEM), "ssd0", "server0")
    return api.predict(system, "ssd0->a_cpu").rates[0].rate


def _step(
    what: str, director: Director, driver: QemuDriver, load: Load, places: dict[str, str], seconds: float, took: float
) -> kept.Record:
    """Predicted and measured rates of every drive, and what the guests say of their links."""
    cpus = {"server0": "a_cpu", "server1": "b_cpu"}
    flows = ", ".join(f"{drive}->{cpus[server]}" for drive, server in places.items())
    rates = api.predict(director.view().pool.system, flows).rates
    predicted = {drive: rate.rate * SCALE for drive, rate in zip(places, rates, strict=True)}
    measured = load.rates(places, seconds)
    links = {drive: str(driver.link(drive)) for drive in places}
    row = {"step": what, "change_s": took, "places": dict(places), "predicted": predicted, "measured": measured}
    row |= {"links": links, "faults": disagreements(director, driver)}
    print(row, flush=True)
    return row


def page(record: kept.Record) -> str:
    """Times and faults of the rounds, rates of the moves."""
    rows, steps = record["rounds"], record["moves"]
    lines = kept.heading("The director over emulated servers", record)
    faults = list(itertools.chain.from_iterable(row["faults"] for row in [*rows, *steps]))
    attach, detach = ([row[key] for row in rows if key in row] for key in ("attach_s", "detach_s"))
    lines += [
        f"{record['qemu']}, guests with {record['kernel']}, instructions emulated (TCG); {len(rows)} rounds with "
        f"{len(attach)} attached and {len(detach)} detached, seed {record['seed']}.", "",
        "| | median, s | slowest, s |", "|---|---:|---:|", _times("attach", attach), _times("detach", detach), "",
        "Director, QEMU and the guests' own `lanewise discover` compared "
        f"{len(attach) + len(detach) + len(steps)} times: {len(faults)} disagreements.",
        *(f"- {fault}" for fault in faults), "",
        f"Links as the guests say: {', '.join(sorted({row['link'] for row in rows}))}.", "",
        f"## Moves, drives throttled to {SCALE:g} of a link's rate", "",
        "| step | drive | on | predicted, MB/s | measured, MB/s | difference |", "|---|---|---|---:|---:|---:|",
    ]  # fmt: skip
    for step in steps:
        for drive, server in step["places"].items():
            predicted, measured = step["predicted"][drive] / 1e6, step["measured"][drive] / 1e6
            change = f"{100 * (measured / predicted - 1):+.1f} %"
            lines.append(f"| {step['step']} | {drive} | {server} | {predicted:.2f} | {measured:.2f} | {change} |")
    refusal = next(step["refused_before"] for step in steps if "refused_before" in step)
    return "\n".join(
        [*lines, "", f"Before the last step, detaching the drive that was read: refused, '{refusal}'.", ""]
    )


def _times(what: str, values: list[float]) -> str:
    middle = sorted(values)[len(values) // 2]
    return f"| {what} | {middle:.2f} | {max(values):.2f} |"


def main() -> None:
    """Run and keep both."""
    parser = kept.options(__doc__, "director-qemu")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a measurement of rates")
    asked = parser.parse_args()
    record = kept.begin(asked)
    kernel = guest_kernel()
    record |= {
        "seed": asked.seed, "qemu": kept.first_line("qemu-system-x86_64", "--version"),
        "kernel": kernel.name if kernel else "the kernel of this machine",
    }  # fmt: skip
    record["moves"] = moves(asked.seconds)
    record["rounds"] = rounds(asked.rounds, asked.seed)
    kept.keep(record, page, asked.out)
    assert not any(row["faults"] for row in [*record["rounds"], *record["moves"]])


if __name__ == "__main__":
    main()
