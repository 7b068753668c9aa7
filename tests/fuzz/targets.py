"""What is fuzzed: a function for each family of files that users name, and the files that its inputs start from."""

from __future__ import annotations

import io
import random
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path

import zstandard

from fuzz.frontends import frontend_sessions, read_frontend
from fuzz.nodes import node_messages, read_message
from fuzz.peers import read_session, sessions
from lanewise import api
from lanewise.catalog import builtin, read_parts
from lanewise.cli import terminal
from lanewise.discovery.build import discover
from lanewise.discovery.capture import Capture, read_tar
from lanewise.discovery.dumps import read_capture, read_dump
from lanewise.loadtest import detail_log, training
from lanewise.planning.answer import read_plan
from lanewise.readers.kinds import read_plain, read_results
from lanewise.report.html import report_html
from lanewise.report.text.check import render_checkup
from lanewise.report.text.run import render_run
from lanewise.results.codec import run_from_json, run_to_json
from lanewise.serving.workload import read_workloads
from lanewise.studies.reading import read_study
from lanewise.topology.read import read_system

TESTS = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A family of readers: `read` an input, and `seeds` to start from; both must leave with LanewiseError alone."""

    read: Callable[[bytes], object]
    seeds: Callable[[], Iterator[bytes]]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _read_results(data: bytes) -> object:
    return read_results(_text(data), "f")


def _read_plain(data: bytes) -> object:
    """A text as one of no known tool: its figures, and what else it states."""
    return read_plain(_text(data), "f")


def _read_dump(data: bytes) -> object:
    return discover(read_dump(data, "f"), builtin()).text()


def _read_captured(data: bytes) -> object:
    """A capture whose files are mutated, not the tar around them: `path NUL content` by path, parted by NUL NUL."""
    texts: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for piece in data.split(b"\0\0\n"):
        path, _, content = piece.partition(b"\0=")
        name = path.decode("utf-8", "replace")
        if name.startswith("->"):
            links[name[2:]] = content.decode("utf-8", "replace")
        else:
            texts[name] = content
    return discover(read_capture(Capture("f", texts, links)), builtin()).text()


def _read_checked(data: bytes) -> object:
    """What `lanewise check --from` makes of a text, on the terminal, as JSON and for Prometheus."""
    with tempfile.NamedTemporaryFile(prefix="lanewise-fuzz-") as stream:
        stream.write(data)
        stream.flush()
        checkup = api.check([stream.name])
    return render_checkup(checkup), terminal.json_text(api.check_data(checkup)), api.check_metrics(checkup)


def _read_log(data: bytes) -> object:
    """A detail log of LoadGen, or the log of a training."""
    if b"epoch" in data:
        return list(training.as_samples(training.read(_text(data), "f", 1e5), "f"))
    log = detail_log.parse(_text(data), "f")
    return log.valid, log.latency, log.reasons, log.rate, log.queries, log.late, log.has_end(False)


def _read_shown(data: bytes) -> object:
    """A run file as text and as a page."""
    run = run_from_json(_text(data), "f")
    return render_run(run, rows=True), report_html(run)


def _read_run(data: bytes) -> object:
    return run_to_json(run_from_json(_text(data), "f"))


def _read_yaml(data: bytes) -> object:
    """A text as each of the kinds of YAML files; the first bytes say which keys it has, so one reader takes most."""
    text = _text(data)
    if "\nparts:" in text or text.startswith("parts:"):
        return read_parts(text, "f", builtin())
    if "tables:" in text:
        return read_study(text, "f")
    if "bytes_in" in text:
        return read_workloads(text, "f")
    if "services:" in text:
        return read_plan(text, "f")
    return read_system(text, "f")


def _files(*folders: str) -> Iterator[bytes]:
    for folder in folders:
        for path in sorted((TESTS / folder).iterdir()):
            if path.is_file() and path.stat().st_size < 100_000:
                yield path.read_bytes()


def _posted(typed: bool) -> Iterator[bytes]:
    """What people posted of their machines, in the formats of all tools; `typed`: the figures typed in as well."""
    for path in sorted((TESTS / "checking/threads").glob("*.yaml")):
        _, _, below = path.read_bytes().partition(b"\nrows: |")
        text = re.split(rb"\n(?=\S)", below.partition(b"\n")[2])[0].replace(b"\n  ", b"\n")[2:]
        if len(text) < 20_000 and text.startswith(b"lanewise-rows") <= typed:
            yield text


def _captured() -> Iterator[bytes]:
    for path in sorted((TESTS / "discovery/data").glob("*.tar.zst")):
        capture = read_tar(path.read_bytes(), path.name)
        pieces = [name.encode() + b"\0=" + content for name, content in capture.texts.items()]
        pieces += [b"->" + name.encode() + b"\0=" + to.encode() for name, to in capture.links.items()]
        yield b"\0\0\n".join(pieces)


def _tars() -> Iterator[bytes]:
    """The captures unpacked, so that a changed byte is one of a header; and as GNU tar and pax write them."""
    for path in sorted((TESTS / "discovery/data").glob("*.tar.zst")):
        yield zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as archive:
            member = tarfile.TarInfo("top/" * 40 + "sys/devices/pci0000:00/0000:00:01.0/class")
            member.size, member.linkname = 9, "x" * 200
            archive.addfile(member, io.BytesIO(b"0x030200\n"))
        yield out.getvalue()


def _yaml() -> Iterator[bytes]:
    for folder in ("parts", "studies", "systems", "workloads"):
        for file in sorted((resources.files("lanewise") / "data" / folder).iterdir(), key=lambda file: file.name):
            text = file.read_bytes()
            if file.name.endswith(".yaml") and len(text) < 12_000:
                yield text
    yield b"lanewise: 1\nservices:\n  a: {workload: resnet50, qps: 1000, host: host0}\nflows: gpu0->gpu1\n"


def _runs() -> Iterator[bytes]:
    from fuzz.small_run import small_run

    yield run_to_json(small_run()).encode()


def _logs() -> Iterator[bytes]:
    used = re.compile(rb'"key": "(loadgen_v|sut_name|result_|effective_server|num_errors|power_end)|"is_\w+": true')
    for path in sorted((TESTS / "loadtest/logs").rglob("*.txt")):
        yield b"".join(line for line in path.read_bytes().splitlines(keepends=True) if used.search(line))
    event = ':::MLLOG {"key": "%s", "value": %s, "time_ms": %d, "metadata": {"epoch_num": %d}}\n'
    texts = [event % ("train_samples", "1000", 0, 0)]
    for epoch in range(1, 4):
        times = (("epoch_start", epoch * 1000), ("epoch_stop", epoch * 1000 + 900))
        texts += [event % (key, "null", time, epoch) for key, time in times]
    yield "".join(texts).encode()


TARGETS = {
    "results": Target(_read_results, lambda: chain(_files("readers/data"), _posted(typed=False))),
    "posts": Target(_read_plain, lambda: _posted(typed=False)),
    "dumps": Target(_read_dump, lambda: (data for data in _files("discovery/data") if not data.startswith(b"\x28"))),
    "tars": Target(_read_dump, _tars),
    "captures": Target(_read_captured, _captured),
    "yaml": Target(_read_yaml, _yaml),
    "runs": Target(_read_run, _runs),
    "pages": Target(_read_shown, _runs),
    "checks": Target(_read_checked, lambda: chain(_files("readers/data", "discovery/data"), _posted(typed=True))),
    "logs": Target(_read_log, _logs),
    "peers": Target(read_session, sessions),
    "nodes": Target(read_message, node_messages),
    "frontends": Target(read_frontend, frontend_sessions),
}


@cache
def corpus(family: str) -> tuple[bytes, ...]:
    """The inputs that a family starts from: what its tests hold, and what once failed."""
    kept = sorted((CORPUS / family).glob("*")) if (CORPUS / family).is_dir() else []
    return (*TARGETS[family].seeds(), *(path.read_bytes() for path in kept))


# Words that have broken readers before.
WORDS = (
    b"NaN", b"Infinity", b"true",
    b"0", b"-1", b"1e999", b"nan", b"-inf", b"9" * 30, b"9" * 5000, b"1_0", b"3.0.0", b"null", b"[]", b"{}", b"",
    b"N/A", b"\0", b"\x1b[2J", b"\xff", "\u00b2".encode(), "\u202e".encode(), b"\n", b"\n\n\n\n", b"\t", b"    ",
    b"{", b"}", b"[", b"]", b":", b",", b'"', b"'", b"&a ", b"*a", b"- ", b"<!--", b"-->", b"0x", b"gpu0",
    b"gpu[0-3]", b"{gpus}", b"\\ud800",
)  # fmt: skip


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One to four changes: bytes, words, lines and numbers replaced, doubled, moved or taken away."""
    for _ in range(chance.randint(1, 4)):
        data = chance.choice(_CHANGES)(data, chance)[:200_000]
    return data


def _byte(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _span(data: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + int(chance.expovariate(0.1)))


def _take_out(data: bytes, chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + data[end:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:end] + data[start:end] * chance.choice((1, 2, 50)) + data[end:]


def _word(data: bytes, chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + chance.choice(WORDS) + data[chance.choice((start, end)) :]


def _number(data: bytes, chance: random.Random) -> bytes:
    places = [digit.start() for digit in re.finditer(rb"[0-9]", data)]
    if not places:
        return _word(data, chance)
    start = chance.choice(places)
    end = start
    of_figure = chance.choice((b"0123456789", b"0123456789."))  # a run of digits, or a figure with its fraction
    while data[end : end + 1] and data[end] in of_figure:
        end += 1
    return data[:start] + chance.choice(WORDS) + data[end:]


def _value(data: bytes, chance: random.Random) -> bytes:
    """What stands behind a colon or an equals sign."""
    places = [sign.start() for sign in re.finditer(rb"[:=]", data)]
    if not places:
        return _word(data, chance)
    start = chance.choice(places) + 1
    end = start
    while end < len(data) and data[end] not in b",\n}]>":
        end += 1
    return data[:start] + b" " + chance.choice(WORDS) + data[end:]


def _lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(3)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


_CHANGES = (_byte, _cut, _take_out, _repeat, _word, _number, _number, _value, _value, _lines)
