"""How long a GET takes at a director of 1,000 devices and 64 servers while 32 clients send without a pause.

    python benchmarks/director_http.py [--clients 32] [--seconds 8]

The director runs over a simulated fabric in a process of its own, with TLS, on loopback; the clients are one process
that keeps a connection each. Rows: single resources of every kind, drawn at random; the same with basic credentials
instead of a token; the same while another client composes and releases systems all the time, so that what is kept in
memory is worth nothing soon; collections of 1,000 members; such a collection with every member expanded. CPU time is
the director's own, over all of its threads.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import http.client
import json
import random
import select
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kept
from pool_systems import large_pool

PASSWORD = "Benchmark-7-horses"
ROOT = "/redfish/v1"
BLOCKS = f"{ROOT}/CompositionService/ResourceBlocks"
TICKS = 100  # of /proc/PID/stat in a second


def serve(folder: Path) -> None:
    """A director until it is ended; `ready` holds its port."""
    from lanewise.director.drivers.sim import SimDriver
    from lanewise.director.engine import Director
    from lanewise.director.redfish.passwords import PasswordVerifier
    from lanewise.director.redfish.server import ListeningService, serve
    from lanewise.director.redfish.settings import ServiceSettings
    from lanewise.director.store.accounts import AccountRecord
    from lanewise.director.store.database import Store

    def ready(service: ListeningService) -> None:
        (folder / "ready.part").write_text(service.url.rpartition(":")[2], encoding="utf-8")
        (folder / "ready.part").replace(folder / "ready")

    store = Store(folder / "director.db")
    director = Director(store, SimDriver(large_pool()))
    director.start()
    store.put_account(AccountRecord("admin", PasswordVerifier().hash(PASSWORD), "Administrator"), 0)
    serve(director, store, ServiceSettings(folder, port=0), ready)
    director.close()
    store.close()


@contextmanager
def director(folder: Path) -> Iterator[tuple[int, int]]:
    """Port and process id of a director."""
    with subprocess.Popen([sys.executable, __file__, "--serve", str(folder)]) as child:
        try:
            for _ in range(1200):
                if (folder / "ready").exists() or child.poll() is not None:
                    break
                time.sleep(0.1)
            yield int((folder / "ready").read_text(encoding="utf-8")), child.pid
        finally:
            child.terminate()
            child.wait(60)


class Clients:
    """Sends requests to one director."""

    def __init__(self, port: int, pid: int, folder: Path, count: int, seconds: float) -> None:
        self.port, self.pid, self.folder, self.count, self.seconds = port, pid, folder, count, seconds
        self.tls = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
        login = {"UserName": "admin", "Password": PASSWORD}
        self.token = self.call("POST", f"{ROOT}/SessionService/Sessions", login)[1]["x-auth-token"]
        basic = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        self.by_token, self.by_password = f"X-Auth-Token: {self.token}", f"Authorization: Basic {basic}"

    def call(self, method: str, path: str, body: Any = None) -> tuple[Any, dict[str, str]]:
        """One request on a connection of its own: the body, the headers in lower case."""
        link = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=300)
        headers = {"X-Auth-Token": self.token} if hasattr(self, "token") else {}
        link.request(method, path, None if body is None else json.dumps(body), headers)
        reply = link.getresponse()
        content = reply.read()
        link.close()
        if reply.status >= 400:
            raise SystemExit(f"{method} {path}: {reply.status} {content[:500]!r}")
        found = {name.lower(): value for name, value in reply.getheaders()}
        return (json.loads(content) if content else {}), found

    def members(self, path: str) -> list[str]:
        """The members of a collection."""
        return [one["@odata.id"] for one in self.call("GET", path)[0]["Members"]]

    def row(self, name: str, paths: list[str], header: str | None = None) -> kept.Record:
        """All clients at once for some seconds."""
        asyncio.run(self._all(paths, header or self.by_token, 0.5))
        before = self._cpu()
        times = sorted(asyncio.run(self._all(paths, header or self.by_token, self.seconds)))
        used = self._cpu() - before
        row = {
            "name": name, "clients": self.count, "requests": len(times), "requests_per_s": len(times) / self.seconds,
            "p50_ms": 1e3 * statistics.median(times), "p99_ms": 1e3 * times[int(0.99 * len(times))],
            "largest_ms": 1e3 * times[-1], "cpu_us": 1e6 * used / len(times),
        }  # fmt: skip
        print(
            f"{name}: {row['requests_per_s']:.0f}/s, p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms", flush=True
        )
        return row

    async def _all(self, paths: list[str], header: str, seconds: float) -> list[float]:
        end = time.perf_counter() + seconds
        found = await asyncio.gather(*(self._one(number, paths, header, end) for number in range(self.count)))
        return [moment for times in found for moment in times]

    async def _one(self, number: int, paths: list[str], header: str, end: float) -> list[float]:
        chance, times = random.Random(number), []
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls, limit=1 << 24)
        while (began := time.perf_counter()) < end:
            writer.write(f"GET {chance.choice(paths)} HTTP/1.1\r\nHost: director\r\n{header}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            times.append(time.perf_counter() - began)
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"not 200: {head!r}")
        writer.close()
        return times

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @contextmanager
    def composing(self) -> Iterator[list[int]]:
        """Systems composed and released all the time, by one client more in its own process; how many."""
        done: list[int] = []
        command = [sys.executable, __file__, "--compose", str(self.port), str(self.folder), self.token]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            yield done
            done.append(int(child.communicate("end\n")[0]))


def compose(port: int, folder: Path, token: str) -> None:
    """Compose and release systems until a line comes in; print how many."""
    tls = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    link = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=300)
    chance, count, headers = random.Random(1), 0, {"X-Auth-Token": token, "Content-Type": "application/json"}
    while not select.select([sys.stdin], [], [], 0)[0]:
        names = [f"host{chance.randrange(64)}", *(f"gpu{number}" for number in chance.sample(range(640), 4))]
        body = {"Links": {"ResourceBlocks": [{"@odata.id": f"{BLOCKS}/{name}"} for name in names]}}
        link.request("POST", f"{ROOT}/Systems", json.dumps(body), headers)
        reply = link.getresponse()
        content = reply.read()
        if reply.status != 201:
            raise SystemExit(f"not composed: {content!r}")
        link.request("DELETE", str(reply.getheader("location")), headers=headers)
        link.getresponse().read()
        count += 1
        if count == 1:
            print("begun", flush=True)
    print(count)


def measure(clients: Clients) -> list[kept.Record]:
    """All rows."""
    blocks = clients.members(BLOCKS)
    fabric = f"{ROOT}/Fabrics/PCIe"
    boxes = clients.members(f"{ROOT}/Chassis")
    single = [*blocks, *clients.members(f"{fabric}/Endpoints"), *clients.members(f"{ROOT}/Systems"), *boxes]
    for box in boxes[-8:]:
        single += clients.members(f"{box}/PCIeDevices")
        single += clients.members(f"{fabric}/Switches/{box.rpartition('/')[2]}/Ports")
    rows = [
        clients.row("single resources", single),
        clients.row("single resources, basic credentials", single, clients.by_password),
    ]
    with clients.composing() as done:
        row = clients.row("single resources while systems are composed", single)
    rows.append(row | {"composed": done[0]})
    rows.append(clients.row("collections of 1,000 members", [BLOCKS, f"{fabric}/Endpoints"]))
    expanded = Clients.__new__(Clients)
    expanded.__dict__ |= clients.__dict__ | {"count": 4}
    rows.append(expanded.row("1,000 resource blocks expanded", [f"{BLOCKS}?$expand=."]))
    return rows


def page(record: kept.Record) -> str:
    """One line a row."""
    lines = [
        "| GET of | clients | requests/s | p50 ms | p99 ms | largest ms | director's CPU us a request |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in record["rows"]:
        times = " | ".join(f"{row[name]:.1f}" for name in ("p50_ms", "p99_ms", "largest_ms"))
        more = f" ({row['composed']} meanwhile)" if "composed" in row else ""
        lines.append(
            f"| {row['name']}{more} | {row['clients']} | {row['requests_per_s']:.0f} | {times} | {row['cpu_us']:.0f} |"
        )
    about = "1,000 devices, 64 servers, TLS, no pause between a client's requests; all clients are one process."
    return "\n".join([*kept.heading("Reading from a director over Redfish", record), about, "", *lines, ""])


def main() -> None:
    """Measures, and keeps the figures."""
    parser = kept.options(__doc__, "director-http")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=8.0, help="of every row")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--compose", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve)
        return
    if asked.compose:
        compose(int(asked.compose[0]), Path(asked.compose[1]), asked.compose[2])
        return
    record = kept.begin(asked)
    with tempfile.TemporaryDirectory() as name, director(Path(name)) as (port, pid):
        record["rows"] = measure(Clients(port, pid, Path(name), asked.clients, asked.seconds))
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
