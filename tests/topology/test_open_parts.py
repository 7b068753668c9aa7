"""Names that several parts have: never read as one of them in silence; the links may tell which it is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from lanewise.catalog import builtin
from lanewise.catalog.alternatives import either, meant_by
from lanewise.catalog.model import OR
from lanewise.errors import FormatError
from lanewise.perf.flow import parse_flows
from lanewise.perf.overview import overview
from lanewise.perf.predict import predict
from lanewise.report import json
from lanewise.report.text.listings import render_system
from lanewise.report.text.path_overview import render_paths
from lanewise.report.text.predict import render_flow_rates
from lanewise.topology.model import System
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

Read = Callable[[str], System]
KINDS = ("gpu", "nic", "switch", "ssd")
STARTS = [(kind, name[: name.rindex("-")]) for kind in KINDS for name in builtin().names(kind) if "-" in name]


@pytest.mark.parametrize(("kind", "name"), sorted(set(STARTS)))
def test_the_start_of_several_names_is_all_of_them(kind: str, name: str) -> None:
    """But for another product of the number (Dx, Ti), another driver, and a part's own name."""
    added = {
        part: set(part.split("-")) - set(name.split("-"))
        for part in builtin().names(kind)
        if part.startswith(name + "-")
    }
    same = {part for part, words in added.items() if not words & {"dx", "lx", "ti", "xt", "xtx", "p2p"}}
    meant = meant_by(builtin(), name, (kind,))
    assert name in builtin().parts or not meant or same <= set(meant)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("V100", "v100-pcie v100-sxm2 v100-sxm3"),
        ("Tesla P100", "p100-pcie p100-sxm2"),
        ("A100", "a100-pcie-40gb a100-pcie-80gb a100-sxm-40gb a100-sxm-80gb"),
        ("A100 80GB", "a100-pcie-80gb a100-sxm-80gb"),
        ("H100", "h100-nvl h100-pcie h100-sxm"),
        ("GB300", "gb300 gb300-desktop"),
        ("RTX PRO 6000 Blackwell", "rtx-pro-6000-blackwell-server rtx-pro-6000-blackwell-workstation"),
        ("RTX 6000 Pro", "rtx-pro-6000-blackwell-server rtx-pro-6000-blackwell-workstation"),
        ("l40s or l4", "l40s l4"),
        ("A100 80GB PCIe or SXM", "a100-pcie-80gb a100-sxm-40gb a100-sxm-80gb"),
    ],
)
def test_a_name_of_several_gpus_is_all_of_them_and_says_so(read: Read, name: str, parts: str) -> None:
    body = f"devices: {{cpu0: {{cpu: null}}, gpu0: {{gpu: {name}}}}}\nlinks: [{{from: cpu0, to: gpu0, pcie: gen3}}]\n"
    system = read(body)
    assert system.devices["gpu0"].part == OR.join(parts.split())
    (reading,) = system.readings
    assert reading.startswith("gpu0: ")
    assert all(part in reading for part in parts.split())


@pytest.mark.parametrize(
    "name",
    ["Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "RTX 3090", "L40",
     "rtx-4090", "RTX PRO 6000 Blackwell Server Edition", "Radeon Pro WX 8100", "AMD Instinct MI250X GCD"],
)  # fmt: skip
def test_a_name_in_full_is_one_part_and_needs_no_word(read: Read, name: str) -> None:
    body = f"devices: {{cpu0: {{cpu: null}}, gpu0: {{gpu: {name}}}}}\nlinks: [{{from: cpu0, to: gpu0, pcie: gen3}}]\n"
    system = read(body)
    assert OR not in (system.devices["gpu0"].part or OR)
    assert system.readings == ()


@pytest.mark.parametrize(
    ("name", "link", "part"),
    [
        ("V100", "{from: gpu0, to: gpu1, nvlink: 2}", "v100-sxm2 or v100-sxm3"),
        ("P100", "{from: gpu0, to: gpu1, nvlink: 1}", "p100-sxm2"),
        ("H100", "{from: ['gpu[0-1]'], to: nvs, nvlink: auto}", "h100-sxm"),
        ("RTX 6000", "{from: cpu0, to: gpu0, pcie: gen4 x16}",
         "rtx-6000-ada or rtx-pro-6000-blackwell-server or rtx-pro-6000-blackwell-workstation"),
    ],
)  # fmt: skip
def test_links_tell_which_part_it_is(read: Read, name: str, link: str, part: str) -> None:
    to_cpu = "" if "pcie" in link else '{from: cpu0, to: "gpu[0-1]", pcie: gen3 x16}, '
    also = "" if "pcie" not in link else "{from: cpu0, to: gpu1, pcie: gen4 x16}, "
    nvs = ", nvs: {nvswitch: null}" if "nvs" in link else ""
    body = f'devices: {{cpu0: {{cpu: null}}, "gpu[0-1]": {{gpu: {name}}}{nvs}}}\nlinks: [{to_cpu}{also}{link}]\n'
    system = read(body)
    assert system.devices["gpu0"].part == part
    assert system.readings


def test_the_gpus_of_a_superchip_tell_which_grace_it_is(read: Read) -> None:
    body = """\
devices: {{cpu0: {{cpu: Grace}}, "gpu[0-{}]": {{gpu: GB300}}}}
links: [{{from: cpu0, to: "gpu[0-{}]", nvlink: auto}}]
"""
    station, tray = read(body.format(0, 0)), read(body.format(1, 1))
    assert [device.part for device in station.devices.values()] == ["grace-496gb", "gb300-desktop"]
    assert [device.part for device in tray.devices.values()] == ["grace-480gb", "gb300", "gb300"]


def test_a_network_tells_which_card_it_is(read: Read) -> None:
    body = """\
devices: {cpu0: {cpu: null}, nic0: {nic: ConnectX-7}, net: {netswitch: null}}
links: [{from: cpu0, to: nic0, pcie: auto}, {from: nic0, to: net, network: ndr200}]
"""
    assert read(body).devices["nic0"].part == "connectx-7-ndr200"


def test_cpus_of_two_makers_are_a_cpu_that_nobody_named(read: Read) -> None:
    system = read("devices: {cpu0: {cpu: ice-lake-sp or rome}, cpu1: {cpu: rome or genoa}}\n")
    assert system.devices["cpu0"].part is None
    assert system.devices["cpu1"].part == "rome or genoa"
    assert len(system.readings) == 2


@pytest.mark.parametrize(
    "names", ["v100-pcie v100-sxm2", "a100-pcie-40gb a100-sxm-80gb", "pex88032 pex89144", "l4 rtx-5090"]
)
def test_a_part_that_stands_for_several_spans_what_each_of_them_states(names: str) -> None:
    parts = [builtin().get(name) for name in names.split()]
    both = either(parts)
    for key, figure in both.figures.items():
        for part in parts:
            stated = part.figure(key)
            if not isinstance(stated.value, float):
                assert stated.value in (None, figure.value)
            elif figure.low is None and figure.high is None:
                assert figure.value == stated.value
            else:
                assert (figure.low or 0) <= stated.value <= (figure.high or 0)
    swapped = either(parts[::-1]).figures
    assert {key: figure.value for key, figure in swapped.items()} == {
        key: figure.value for key, figure in both.figures.items()
    }


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("PM50100", "switchtec-pfx-gen5"),
        ("Microchip Switchtec PM40084", "switchtec-pfx-gen4"),
        ("PEX 89104", "pex89104"),
    ],
)
def test_switches_by_their_makers_number(read: Read, name: str, part: str) -> None:
    assert read(f"devices: {{cpu0: {{cpu: null}}, sw: {{switch: {name}}}}}\n").devices["sw"].part == part


def test_a_switch_by_its_series_has_the_generation_and_no_number_of_lanes(read: Read) -> None:
    for name, gen in (("PEX890xx", 5), ("Broadcom / LSI PEX880xx PCIe Gen 4 Switch", 4)):
        system = read(f'devices: {{cpu0: {{cpu: null}}, sw: {{switch: "{name}"}}}}\n')
        part = system.part("sw")
        assert part is not None
        assert part.number("pcie.gen") == gen
        assert part.number("pcie.lanes") is None
        assert system.readings


@pytest.mark.parametrize("word", ["?", '"?"', "unknown", "auto", "null", "UPI", "xGMI", "'? '"])
@pytest.mark.parametrize("inline", [True, False])
def test_a_number_of_links_between_sockets_that_nobody_knows(read: Read, word: str, inline: bool) -> None:
    entry = (
        f"  - {{from: cpu0, to: cpu1, socket: {word}}}"
        if inline
        else f"  - from: cpu0\n    to: cpu1\n    socket: {word}"
    )
    (link,) = read(f'devices: {{"cpu[0-1]": {{cpu: null}}}}\nlinks:\n{entry}\n').links
    assert (link.count, link.count_known) == (1, False)


def test_a_text_that_a_number_sign_cuts_off_is_refused(read: Read) -> None:
    with pytest.raises(FormatError, match="'#814' begins a comment") as refused:
        read("source: NCCL issue #814\ndevices: {cpu0: {cpu: null}}\n")
    assert refused.value.hint.startswith('write "NCCL issue #814"')
    for fine in ('"NCCL issue #814"', "NCCL issue  # 814 of them", "NCCL issue#814"):
        assert read(f"source: {fine}\ndevices: {{cpu0: {{cpu: null}}}}\n").source.startswith("NCCL issue")


def test_ports_and_bridges_named_by_their_bus(read: Read) -> None:
    entries = ", ".join(
        f"{{from: cpu0, to: gpu{number}, pcie: gen4, bridge: {bus}}}" for number, bus in enumerate(("00", "20", "1e0"))
    )
    system = read(f'devices: {{cpu0: {{cpu: null}}, "gpu[0-2]": {{gpu: null}}}}\nlinks: [{entries}]\n')
    assert [link.bridge for link in system.links] == ["00", "20", "1e0"]
    assert all(one != other for one, other in pairwise(link.bridge for link in system.links))


def test_tables_and_json_say_what_a_name_was_taken_as(read: Read) -> None:
    link = "{from: cpu0, to: gpu0, pcie: gen3 x16, bridge: b0}"
    system = read(f"devices: {{cpu0: {{cpu: genoa}}, gpu0: {{gpu: V100}}}}\nlinks: [{link}]\n")
    prediction = predict(system, parse_flows("host0->gpu0"))
    for shown in (render_system(system), render_flow_rates(prediction), render_paths(overview(system))):
        assert "part: gpu0: 'V100' may be v100-pcie, v100-sxm2 or v100-sxm3" in shown
    assert "v100-pcie or 2 others" in render_system(system)
    assert "Gen3 x16  b0" in render_system(system)
    for document in (json.system(system), json.flow_rates(prediction)):
        assert tuple(document["parts_taken"]) == system.readings


def test_what_is_written_of_a_name_of_several_reads_back_alike(read: Read) -> None:
    body = "devices: {cpu0: {cpu: genoa}, gpu0: {gpu: V100}}\nlinks: [{from: cpu0, to: gpu0, pcie: gen3 x16}]\n"
    system = read(body)
    again = read_system(write_system(system), "again.yaml")
    assert again.devices["gpu0"].part == system.devices["gpu0"].part
    assert len(again.readings) == 1
    flows = parse_flows("host0->gpu0, gpu0->host0")
    assert [rate.rate for rate in predict(again, flows).rates] == [rate.rate for rate in predict(system, flows).rates]


@pytest.mark.parametrize(
    ("name", "cards"),
    [("ConnectX-7 200G", ("connectx-7-ndr200",)), ("CX7 400GbE", ("connectx-7-400gbe", "connectx-7-ndr")),
     ("ConnectX-6 Dx 100G", ("connectx-6-dx-100gbe",)), ("ConnectX-6 100G", ())],
)  # fmt: skip
def test_a_rate_in_the_name_of_a_network_card_is_that_of_its_port(name: str, cards: tuple[str, ...]) -> None:
    assert meant_by(builtin(), name, ("nic",)) == cards
