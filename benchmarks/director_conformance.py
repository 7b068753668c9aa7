"""DMTF's validators, and two third-party clients, against a director with the `sim` driver over TLS on loopback.

    python benchmarks/director_conformance.py [--short] [--schemas DIRECTORY]

The service validator runs before a composition, while one is half made, with one composed, and after its release; the
protocol validator, the use-case checkers (accounts, query parameters) and the interop validator with the project's own
profile run with one composed. The pool is that of the ready system `composable-pool`, where one server has two GPUs
from the start. sushy and redfishtool read systems and resource blocks. `--short` runs the service validator once, the
use-case checkers and the interop validator, keeps nothing, and is what continuous integration runs.

It needs DMTF's schemas: csdl-2025.4.tgz, or its folder, in --schemas (default: $LANEWISE_REDFISH, else
../shared/redfish beside the repository), and `pip install redfish_service_validator redfish_protocol_validator
redfish_use_case_checkers redfish_interop_validator redfishtool sushy`. Without them it says so and ends with 0.
A failure or warning ends it with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import kept

PASSWORD = "Conformance-7-horses"
PROFILE = kept.ROOT / "src/lanewise/data/redfish/LanewiseDirector.v1_0_0.json"
TOOLS = (
    "redfish_service_validator",
    "redfish_protocol_validator",
    "redfish_use_case_checkers",
    "redfish_interop_validator",
)
BLOCKS = "/redfish/v1/CompositionService/ResourceBlocks"
SYSTEM = "composable-pool"
_TABLE = re.compile(r"\|\s*(\d+)\s*\|\s*(\d+)\s*\|\s*(\d+)\s*\|\s*(\d+)\s*\|")
_SUMMARY = re.compile(r"PASS: (\d+), WARN: (\d+), FAIL: (\d+), NOT_TESTED: (\d+)")


@dataclass(frozen=True)
class Conformance:
    """What one tool said of the director in one state; None where it gives no count."""

    tool: str
    version: str
    state: str
    passed: int | None
    warned: int | None
    failed: int
    not_tested: int | None
    seconds: float
    said: str = ""


def serve(folder: Path) -> None:
    """A director until it is ended: `ready` holds its address, and operations wait while there is a file `hold`."""
    from lanewise.api.loading import load_system
    from lanewise.director.drivers.sim import SimDriver
    from lanewise.director.engine import Director
    from lanewise.director.redfish.passwords import PasswordVerifier
    from lanewise.director.redfish.server import ListeningService, serve
    from lanewise.director.redfish.settings import ServiceSettings
    from lanewise.director.store.accounts import AccountRecord
    from lanewise.director.store.database import Store

    def wait(point: str) -> None:
        while (folder / "hold").exists():
            time.sleep(0.01)

    def ready(service: ListeningService) -> None:
        (folder / "ready.part").write_text(service.url, encoding="utf-8")
        (folder / "ready.part").replace(folder / "ready")

    store = Store(folder / "director.db")
    director = Director(store, SimDriver(load_system(SYSTEM), crash=wait))
    director.start()
    store.put_account(AccountRecord("admin", PasswordVerifier().hash(PASSWORD), "Administrator"), 0)
    serve(director, store, ServiceSettings(folder, port=0), ready)
    director.close()
    store.close()


@contextmanager
def director(folder: Path) -> Iterator[str]:
    """The address of a director in a process of its own."""
    command = [sys.executable, __file__, "--serve", str(folder)]
    with (
        (folder / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as child,
    ):
        try:
            for _ in range(600):
                if (folder / "ready").exists() or child.poll() is not None:
                    break
                time.sleep(0.1)
            if not (folder / "ready").exists():
                raise SystemExit(f"the director did not start: {(folder / 'log').read_text()[-2000:]}")
            yield (folder / "ready").read_text(encoding="utf-8")
        finally:
            (folder / "hold").unlink(missing_ok=True)
            child.terminate()
            child.wait(60)


class Rounds:
    """Runs the tools against one director."""

    def __init__(self, url: str, folder: Path, schemas: Path) -> None:
        import ssl

        import httpx

        self.url, self.folder, self.schemas = url, folder, schemas
        self.certificate = folder / "certificate.pem"
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        self.http = httpx.Client(base_url=url, auth=("admin", PASSWORD), verify=trusted, timeout=120, trust_env=False)
        self.rows: list[Conformance] = []
        self._environment = {
            name: value for name, value in os.environ.items() if name not in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
        }
        own = self.http.get("/redfish/v1/Schemas/LanewiseOem_v1.xml").raise_for_status().content
        (schemas / "LanewiseOem_v1.xml").write_bytes(own)

    def run(self, tool: str, state: str, *arguments: str, package: str = "") -> None:
        """One tool with these arguments."""
        began = time.monotonic()
        logs = self.folder / "logs" / f"{tool}-{len(self.rows)}"
        command = [str(Path(sys.executable).parent / tool), *(each.replace("LOGS", str(logs)) for each in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=self._environment, check=False, timeout=1800)
        text = done.stdout + done.stderr
        found = list(_TABLE.finditer(text)) or list(_SUMMARY.finditer(text))
        counts: list[int | None] = [None, None, 1, None]
        if found:
            counts = [int(each) for each in found[-1].groups()]
        row = Conformance(
            tool, _version(package or tool), state, counts[0], counts[1], counts[2] or 0, counts[3],
            time.monotonic() - began, "" if found else text[-1500:],
        )  # fmt: skip
        self.add(row)

    def add(self, row: Conformance) -> None:
        """Keep a row and show it."""
        self.rows.append(row)
        counts = f"{row.passed} passed, {row.warned} warnings, {row.failed} failed, {row.not_tested} not tested"
        print(f"{row.tool} {row.version}, {row.state}: {counts}, {row.seconds:.0f} s {row.said}", flush=True)

    def service(self, state: str) -> None:
        """The service validator."""
        self.run("rf_service_validator", state, *self._login(), "--authtype", "Basic", "--schema_directory",
                 str(self.schemas), "--skipschema", "--logdir", "LOGS",
                 package="redfish_service_validator")  # fmt: skip

    def protocol(self, state: str) -> None:
        """The protocol validator, over TLS."""
        self.run("rf_protocol_validator", state, *self._login(), "--ca-bundle", str(self.certificate),
                 "--avoid-http-redirect", "--report-dir", "LOGS", package="redfish_protocol_validator")  # fmt: skip

    def use_cases(self, state: str) -> None:
        """The use-case checkers of accounts and query parameters."""
        self.run("rf_use_case_checkers", state, *self._login(), "--test-list", "AccountManagement", "QueryParameters",
                 "--report-dir", "LOGS", package="redfish_use_case_checkers")  # fmt: skip

    def interop(self, state: str) -> None:
        """The interop validator with the profile that the project publishes."""
        self.run("rf_interop_validator", state, str(PROFILE), *self._login(), "--authtype", "Basic", "--logdir", "LOGS",
                 package="redfish_interop_validator")  # fmt: skip

    def clients(self, state: str) -> None:
        """sushy and redfishtool read what is there."""
        self.client("sushy", state, self._sushy)
        self.client("redfishtool", state, self._redfishtool)

    def client(self, name: str, state: str, read: Callable[[], str]) -> None:
        """One client: what it read, or why it failed."""
        began = time.monotonic()
        try:
            said, failed = read(), 0
        except Exception as error:
            said, failed = f"{type(error).__name__}: {error}", 1
        self.add(Conformance(name, _version(name), state, 1 - failed, 0, failed, 0, time.monotonic() - began, said))

    def _sushy(self) -> str:
        sushy = import_module("sushy")
        root = sushy.Sushy(self.url, username="admin", password=PASSWORD, verify=str(self.certificate))
        systems = [one.identity for one in root.get_system_collection().get_members()]
        gpus = [cpu.identity for cpu in root.get_system(f"{self.url}/redfish/v1/Systems/job").processors.get_members()]
        # CompositionService.resource_blocks of sushy 5.14 passes a method where an address belongs.
        collection = import_module("sushy.resources.compositionservice.resourceblock").ResourceBlockCollection
        blocks = collection(
            root._conn, root.get_composition_service().json["ResourceBlocks"]["@odata.id"]
        ).get_members()
        states = sorted({str(one.composition_status.composition_state) for one in blocks})
        return f"systems {systems}, processors of job {gpus}, {len(blocks)} blocks in states {states}"

    def _redfishtool(self) -> str:
        host = self.url.removeprefix("https://")
        command = [
            str(Path(sys.executable).parent / "redfishtool"),
            "-r",
            host,
            "-u",
            "admin",
            "-p",
            PASSWORD,
            "-S",
            "Always",
        ]
        done = subprocess.run(
            [*command, "Systems", "-I", "job"],
            capture_output=True,
            text=True,
            check=True,
            env=self._environment,
            timeout=120,
        )
        body = json.loads(done.stdout)
        return f"Systems -I job: {body['SystemType']}, {len(body['Links']['ResourceBlocks'])} resource blocks"

    def _login(self) -> tuple[str, ...]:
        return ("-r", self.url, "-u", "admin", "-p", PASSWORD)

    # --- what the director is made to do ---

    def compose(self) -> None:
        """A system of a server, three GPUs with a least rate, a drive and a network card."""
        names = ("host1", "gpu4", "gpu5", "gpu6", "ssd2", "nic1")
        links = {"ResourceBlocks": [{"@odata.id": f"{BLOCKS}/{name}"} for name in names]}
        needs = {"Lanewise": {"Paths": [{"DeviceType": "GPU", "MinimumGBps": 5}]}}
        body = {"Name": "job", "Links": links, "Oem": needs}
        headers = {"Prefer": "respond-async"} if (self.folder / "hold").exists() else {}
        reply = self.http.post("/redfish/v1/Systems", json=body, headers=headers)
        if reply.status_code not in (201, 202):
            raise SystemExit(f"composing failed: {reply.text}")

    def measured(self) -> None:
        """A measured rate of one of its paths."""
        actions = self.http.get("/redfish/v1/TelemetryService").json()["Actions"]["Oem"]
        system = {"@odata.id": "/redfish/v1/Systems/job"}
        body = {"ComputerSystem": system, "Rates": [{"Device": "gpu4", "RateGBps": 8.5}]}
        self.http.post(actions["#LanewiseOem.SubmitMeasuredRates"]["target"], json=body).raise_for_status()

    def reserve(self) -> None:
        """A reservation by PreviewReserve."""
        need = {"Oem": {"Lanewise": {"Paths": [{"DeviceType": "GPU", "Count": 2}], "Server": "host2"}}}
        stanza = {"StanzaType": "ComposeSystem", "StanzaId": "1", "Request": need}
        body = {"RequestFormat": "Manifest", "RequestType": "PreviewReserve", "Manifest": {"Stanzas": [stanza]}}
        action = "/redfish/v1/CompositionService/Actions/CompositionService.Compose"
        self.http.post(action, json=body).raise_for_status()

    def proceed(self) -> None:
        """Let the operations that were held go on until the system is composed."""
        (self.folder / "hold").unlink()
        for _ in range(600):
            state = self.http.get("/redfish/v1/Systems/job").json()["Status"]["State"]
            if state == "Enabled":
                return
            time.sleep(0.1)
        raise SystemExit(f"the system stays {state}")

    def release(self) -> None:
        """Everything given back."""
        self.http.delete("/redfish/v1/Systems/job").raise_for_status()
        reservations = "/redfish/v1/CompositionService/CompositionReservations"
        for one in self.http.get(reservations).json()["Members"]:
            self.http.delete(one["@odata.id"]).raise_for_status()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def whole(rounds: Rounds) -> None:
    """All tools, in all states of the director."""
    rounds.service("before")
    (rounds.folder / "hold").touch()
    rounds.compose()
    rounds.service("while composing")
    rounds.proceed()
    rounds.measured()
    rounds.reserve()
    for each in (rounds.service, rounds.protocol, rounds.use_cases, rounds.interop, rounds.clients):
        each("composed")
    rounds.release()
    rounds.service("after")


def short(rounds: Rounds) -> None:
    """What continuous integration runs."""
    rounds.compose()
    rounds.measured()
    rounds.reserve()
    for each in (rounds.service, rounds.use_cases, rounds.interop):
        each("composed")


def missing(schemas: Path) -> str:
    """Why nothing can be run, '' if it can."""
    if find_spec("starlette") is None or find_spec("argon2") is None:
        return "lanewise[director] is not installed"
    absent = [name for name in TOOLS if find_spec(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    if not (schemas / "csdl-2025.4.tgz").exists() and not list(schemas.glob("ServiceRoot_v1.xml")):
        return f"DMTF's schemas are not in {schemas.name}"
    return ""


def unpacked(schemas: Path, folder: Path) -> Path:
    """A copy of the schemas, to which the director's own can be added."""
    target = folder / "csdl"
    if (schemas / "csdl-2025.4.tgz").exists():
        with tarfile.open(schemas / "csdl-2025.4.tgz") as archive:
            archive.extractall(folder, filter="data")
    else:
        shutil.copytree(schemas, target)
    return target


def page(record: kept.Record) -> str:
    """One row a tool and state."""
    lines = [
        "| tool | version | director | passed | warnings | failed | not tested | s |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in record["rows"]:
        cells = [row[name] for name in ("tool", "version", "state", "passed", "warned", "failed", "not_tested")]
        lines.append(f"| {' | '.join(map(str, cells))} | {row['seconds']:.0f} |")
    said = [f"{row['tool']}: {row['said']}." for row in record["rows"] if row["said"]]
    about = (
        "Schemas: DMTF's CSDL 2025.4 with the project's own. `not tested`: properties that the director does not have."
    )
    head = kept.heading("DMTF's validators against a director", record)
    return "\n".join([*head, about, "", *lines, "", *said, ""])


def main() -> int:
    """Runs the tools, and keeps what they said."""
    parser = kept.options(__doc__, "director-conformance")
    parser.add_argument("--short", action="store_true", help="a short round, nothing kept")
    parser.add_argument("--schemas", type=Path, help="the folder of DMTF's schemas")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve)
        return 0
    schemas = asked.schemas or Path(os.environ.get("LANEWISE_REDFISH", kept.ROOT.parent / "shared/redfish"))
    if reason := missing(schemas):
        print(f"skipped: {reason}")
        return 0
    record = kept.begin(asked)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with director(folder) as url:
            rounds = Rounds(url, folder, unpacked(schemas, folder))
            (short if asked.short else whole)(rounds)
    record["rows"] = [asdict(row) for row in rounds.rows]
    if not asked.short:
        kept.keep(record, page, asked.out)
    return int(any(row.failed or row.warned for row in rounds.rows))


if __name__ == "__main__":
    sys.exit(main())
