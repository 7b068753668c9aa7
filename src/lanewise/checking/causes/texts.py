"""Causes of slow figures of plain text: what their own words state first, then what is commonest on such a path.

Of 184 kept slow questions without a GPU whose cause is known 142 had one in software, 31 in a link, 23 in the size or
number of requests, 21 in a virtual machine and 13 in a setting (`tests/checking/threads`, November 2026).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise import late_re as re
from lanewise.checking.cause import Cause
from lanewise.checking.causes.commonest import LINK, REQUESTS
from lanewise.checking.causes.conditions import (
    AWAY,
    CONDITIONS,
    FAR_DEVICE,
    LESSER_LINK,
    NVLINK,
    OWN_CONDITIONS,
    SETTING,
    SHARED,
)
from lanewise.checking.causes.stated_words import own_words, stated_conditions
from lanewise.checking.references.texts import OF_STRIPED_DRIVES, of_plain_text, version_differs, words_of
from lanewise.checking.symptom import RowSymptom, line_of, value_text
from lanewise.checking.verdict import Verdict
from lanewise.results.observation import Observation

_LINK = re.compile(
    r"\bpcie?\b|\bslot\b|\blanes?\b|\bx(?:1|2|4|8|16)\b|\bgen ?[1-6]\b|\bcables?\b|\busb ?[23]?(?:\.\d)?\b|\briser\b|"
    r"\badapter\b|\bthunderbolt\b|\bfpga\b|\bxdma\b|\bcapture card\b|\bhub\b", re.I,
)  # fmt: skip
# Drives that were faster when new, empty, cool or just begun to be written.
_WORN = re.compile(
    r"\bf?s?trim\b|\bdiscard|\bmonths?\b|\bweeks?\b|\b"
    r"after (?:\d+ ?(?:s|sec\w*|min\w*|[gt]b)\b|a while|some|much|writing)|"
    r"\blater\b|\bat first\b|\bcache (?:is )?full|\bsustained|\bfalls?\b|\bfell\b|\bdrops?\b|\bsteady", re.I,
)  # fmt: skip
_GPU = re.compile(
    r"\bgpus?\b|\bcuda|\bnccl|\brccl|\bgpu ?direct|\bgdr\b|\ball_?reduce|\bbus ?b(?:andwidth|w)\b|\b[ABH][123]00\b|"
    r"\bV100\b", re.I,
)  # fmt: skip
_NETWORK = re.compile(
    r"\bnetwork|\bnics?\b|\brdma|\broce|infiniband|\bib_|\befa\b|\bhosts\b|\bnodes\b|\d ?gb/s|gbps|"
    r"gbit|connectx|\b[eh]dr\b|\bndr|\bnixl|\bmooncake", re.I,
)  # fmt: skip
_INDEX = re.compile(r"\b(?:gpu|card|device)[ #_]?(\d{1,2})\b", re.I)
_SEVERAL_GPUS = re.compile(r"\bgpus|\b(?:two|three|four|eight|[2-9]) \w*[ABH]\d00", re.I)
_STEPS = {
    "network": "compare with iperf3 -P 8 and ib_write_bw -q 4; top -H during the run: is one core busy?",
    "storage": "fio --direct=1 --bs=1M --iodepth=32 on the same file and on the device below it",
    "service": "run both with the same requests and settings; py-spy or perf top while it runs; read the release notes",
    "host memory": "compare STREAM with arrays of four times the caches, one thread a core",
}


def text_causes(symptom: RowSymptom) -> Iterator[Cause]:
    """What the words of a figure and of the one it is compared with say, then what is commonest on such a path."""
    row = symptom.row
    if row.metric == "bus_bandwidth" and row.how.get("expectation"):
        yield from _below_a_wish(row)
    if not of_plain_text(row):
        return
    if OF_STRIPED_DRIVES in symptom.result.expected.limit:
        yield SHARED.cause("several drives together have hardly more than one alone")
    best = _held_against(symptom)
    words = " ".join(f"{words_of(each)} {each.how.get('after', '')}" for each in (row, best) if each is not None)
    judged_by_parts = row.path in ("host to device", "device to host") and not row.how.get("against")
    stated = [*_differing(symptom, best), *_mentioned(symptom, best, words)]
    # A program's share is commoner than a second condition, and of several conditions none is shown alone.
    first = [*_of_another_gpu(row, best), *stated][:1]
    yield from first
    yield from _changed(row, best) if first[:1] == stated[:1] else ()
    yield from (replace(cause, inconclusive=True) for cause in stated if cause not in first)
    if not first and (row.how.get("about") == "device" or _LINK.search(words)) and not judged_by_parts:
        yield LINK
    if not judged_by_parts:
        yield from _commonest(row)


def _of_another_gpu(row: Observation, best: Observation | None) -> Iterator[Cause]:
    """The link or place of a GPU whose figure is held against that of another one, by their numbers."""
    mine, theirs = (set(_INDEX.findall(words_of(each))) if each is not None else set() for each in (row, best))
    if best is not None and mine and theirs and not mine & theirs:
        gpu = f"gpu{min(mine)}"
        what = f"{gpu}'s link has fewer lanes or a lower generation than that of the other, or {gpu} is farther away"
        step = "while copies run: nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv"
        evidence = f"'{own_words(best, row)}' reached {value_text(best)}"
        yield Cause(("link", gpu), what, f"{step}; nvidia-smi topo -m", evidence=evidence, devices=frozenset({gpu}))


def _mentioned(symptom: RowSymptom, best: Observation | None, words: str) -> Iterator[Cause]:
    """What the words say of the path, though no figure shows what the same is without it."""
    row = symptom.row
    about = row.how.get("about", "")
    between = _GPU.search(words) and _NETWORK.search(words)
    if between:
        yield from _another_gpu(symptom)
        what = "data of the GPUs goes through host memory, or the card is far from its GPU"
        step = "NCCL_DEBUG=INFO must show GDRDMA; nvidia-smi topo -m: PIX or PXB to the card"
        yield Cause(("staged",), what, step, evidence="the text names GPUs and a network between them")
    if about == "storage" and (worn := _WORN.search(words)):
        what = "the drive itself: its cache is full, it was not trimmed, it is hot or worn"
        step = "fstrim -av; smartctl -a; let it idle, then write again"
        yield Cause(("drive",), what, step, evidence=f"the text says '{worn[0]}'")
    own = own_words(row, best) if best is not None else words
    for condition in (*OWN_CONDITIONS, NVLINK):
        # A link belongs to one of two devices, a guest or a bond to both runs.
        if found := condition.words.search(own if condition is LESSER_LINK else words):
            told = FAR_DEVICE if between and condition is AWAY else condition
            yield told.cause(f"the text says '{found[0]}'")


def _another_gpu(symptom: RowSymptom) -> Iterator[Cause]:
    """The place of a GPU, where another figure of the same line is fine: program, card and GPUDirect are."""
    row = symptom.row
    fine = [each.row for each in symptom.results if each.verdict is Verdict.OK and each.row.flow == row.flow]
    fine = [each for each in fine if line_of(each) and line_of(each) == line_of(row)]
    if fine and _SEVERAL_GPUS.search(words_of(row)):
        evidence = f"another reached {value_text(fine[0])} of {line_of(row)}"
        yield FAR_DEVICE.cause(evidence)


def _commonest(row: Observation) -> Iterator[Cause]:
    """What such a path is slow by most often, whatever the words."""
    about = row.how.get("about", "")
    what = "the program, its driver or its settings: one thread, small requests, a copy or a lock on the way"
    yield Cause(("software",), what, _STEPS.get(about, "run another program over the same path and compare"))
    if about == "storage":
        yield replace(REQUESTS, step=_STEPS["storage"])
    elif about == "service":
        what = "a setting of the service: batch size, requests in flight, precision, graphs or caching"
        yield Cause(("setting",), what, "compare the settings that both runs print at their start")
    elif about != "host memory":
        yield LINK


def _below_a_wish(row: Observation) -> Iterator[Cause]:
    """A collective below what its text expects: of 9 kept ones within a host 7 have a cause in the library, of 9 over a
    network 5 have data staged in host memory."""
    if row.settings.get("hosts", 1) > 1 or row.path == "network":
        what = "data of the GPUs goes through host memory: GPUDirect RDMA is off, or a card is far from its GPU"
        yield Cause(("staged",), what, "NCCL_DEBUG=INFO must show GDRDMA; nvidia-smi topo -m")
    what = "the library: its version, its choice of algorithm or transport"
    yield Cause(("software",), what, "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING: channels, via P2P or SHM")
    what = "a setting of the library: NCCL_P2P_*, NCCL_IB_*, NCCL_ALGO, NCCL_PROTO, channels"
    yield Cause(("setting",), what, "env | grep NCCL; cat /etc/nccl.conf; unset them and measure again")


def _changed(row: Observation, best: Observation | None) -> Iterator[Cause]:
    """The version or setting that two figures' words differ in: that something differs does not yet say what."""
    if best is None:
        return
    step = "change only that and measure again, twice each way"
    evidence = f"'{own_words(best, row)}' reached {value_text(best)}"
    what = "the program or driver in which the two runs differ"
    what = "what changed between the two versions or runs" if version_differs(row, best) else what
    yield Cause(("software",), what, step, evidence=evidence, inconclusive=True)
    if SETTING.search(f"{words_of(row)} {words_of(best)}"):
        what = "the setting in which the two runs differ"
        yield Cause(("setting",), what, step, evidence=evidence, inconclusive=True)


def _differing(symptom: RowSymptom, best: Observation | None) -> Iterator[Cause]:
    """The conditions in which the words of the figure and of the better one differ."""
    row = symptom.row
    if best is not None:
        yield from stated_conditions(row, best)
    elif (faster := _fastest(symptom)) is not None:
        # Nothing says that the two are compared: only what the slow one names itself counts.
        yield from (cause for cause in stated_conditions(row, faster) if _names(row, cause))


def _names(row: Observation, cause: Cause) -> bool:
    """Whether the words of a figure name the condition that a cause is."""
    return any(each.key == cause.key and each.words.search(words_of(row)) for each in CONDITIONS)


def _fastest(symptom: RowSymptom) -> Observation | None:
    """The fastest figure of the same path under another name."""
    row = symptom.row
    faster = [other for other in symptom.better_rates() if other.flow == row.flow and other.scenario != row.scenario]
    return max(faster, key=lambda other: other.value or 0.0, default=None)


def _held_against(symptom: RowSymptom) -> Observation | None:
    """The row that the verdict rests on, by its name in the reference."""
    limit = symptom.result.expected.limit
    texts = [other.row for other in symptom.results if of_plain_text(other.row)]
    better = [row for row in texts if row.metric == symptom.row.metric]
    return next((row for row in better if f"'{row.scenario}'" == limit), None)
