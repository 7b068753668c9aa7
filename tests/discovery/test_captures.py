"""Captures: what a machine writes replays as that machine, tells nobody whose it is, and shows planted faults."""

from __future__ import annotations

import io
import json
import tarfile

import pytest
import zstandard
from discovery import made_captures as made
from hypothesis import given
from hypothesis import strategies as st

from lanewise.api import capture, discover, draw
from lanewise.cli import verbs
from lanewise.discovery.config import clean_config, decode
from lanewise.errors import InputError
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import predict
from lanewise.report.text.listings import render_system
from lanewise.routes.endpoints import endpoint
from lanewise.topology.model import Kind
from lanewise.topology.read import read_system

SUFFIXES = (".tar.zst", ".tar.gz", ".tar")


@pytest.fixture
def replay(tmp_path):
    """The made-up machine with a fault, from its capture."""
    return lambda fault="healthy": discover(made.write_capture(tmp_path / f"{fault}.tar.zst", fault))


def _content(archive, member):
    file = archive.extractfile(member) if member.isfile() else None
    return file.read() if file is not None else b""


def unpacked(path):
    """All bytes of a capture, names and targets included."""
    data = path.read_bytes()
    if path.name.endswith(".zst"):
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        plain = [(m.name, m.linkname, _content(archive, m)) for m in archive]
    return b"\n".join(name.encode() + link.encode() + content for name, link, content in plain)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_this_machine_replays_from_its_capture_as_it_is_live(tmp_path, suffix):
    path = tmp_path / f"machine{suffix}"
    live = capture(path)
    again = discover(path, name="this-machine")
    assert again.text() == live.text().replace("this machine", path.name)
    assert live.system.devices["cpu0"].kind == "cpu"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_folder_of_sys_and_the_capture_of_it_say_the_same(tmp_path, replay):
    folder = discover(made.write_folder(tmp_path / "sys-folder"))
    assert folder.text().replace("sys-folder", "healthy.tar.zst") == replay().text()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_secret_of_the_machine_is_in_its_capture(tmp_path, suffix):
    data = unpacked(made.write_capture(tmp_path / f"m{suffix}"))
    serial = (0xA088C20300123456).to_bytes(8, "little")
    assert b"1000" in data
    assert [secret for secret in (*map(str.encode, made.SECRETS), serial, serial[::-1]) if secret in data] == []


def test_the_capture_of_this_machine_names_no_host_address_or_uuid(tmp_path):
    import socket
    from pathlib import Path

    path = tmp_path / "m.tar"
    capture(path)
    data = unpacked(path)
    secrets = {socket.gethostname()} if len(socket.gethostname()) > 5 else set()
    for pattern in ("sys/class/net/*/address", "sys/block/*/serial", "sys/class/dmi/id/*serial", "etc/machine-id"):
        for each in Path("/").glob(pattern):
            try:
                secrets.add(each.read_text().strip())
            except OSError:
                continue
    assert [s for s in secrets - {"", "00:00:00:00:00:00"} if len(s) > 5 and s.encode() in data] == []


@st.composite
def configurations(draw):
    """Configuration spaces whose capabilities stand anywhere, in any order, between random bytes."""
    size = draw(st.sampled_from([64, 256, 4096]))
    data = bytearray(draw(st.randoms(use_true_random=False)).randbytes(size))
    data[0x06] |= 0x10
    ids = draw(st.permutations([0x10, 0x03, 0x05]))[: draw(st.integers(1, 3))]
    places = [0x40 + 0x20 * place for place in draw(st.permutations(range(5)))][: len(ids)]
    data[0x34] = places[0]
    for number, place, following in zip(ids, places, [*places[1:], 0], strict=True):
        data[place : place + 2] = bytes([number, following])
    if size > 256:
        more = draw(st.permutations([0x0D, 0x10, 0x03, 0x01]))[: draw(st.integers(1, 4))]
        spots = [0x100, *(0x140 + 0x40 * spot for spot in draw(st.permutations(range(8))))][: len(more)]
        for number, spot, following in zip(more, spots, [*spots[1:], 0], strict=True):
            data[spot : spot + 4] = (number | 1 << 16 | following << 20).to_bytes(4, "little")
    return bytes(data[:size])


@given(configurations())
def test_a_cleaned_configuration_space_says_the_same_and_little_more(data):
    cleaned = clean_config(data)
    assert decode(cleaned) == decode(data)
    assert clean_config(cleaned) == cleaned
    assert sum(1 for byte in cleaned if byte) <= 2 + 20 + 4 + 8 + 0x14


def test_names_in_the_operating_system_are_kept_drawn_and_name_the_ends_of_flows(replay, tmp_path):
    found = replay()
    assert found.system.device("nic1").os_names == ("0000:85:00.0", "mlx5_1", "ib1")
    assert found.system.device("ssd0").os_names == ("0000:06:00.0", "nvme0", "nvme0n1")
    again = read_system(found.text(), "m.yaml")
    assert again.os_names == found.system.os_names
    assert (endpoint(again, "ib1"), endpoint(again, "nvme0n1"), endpoint(again, made.GPUS[0])) == (
        "nic1",
        "ssd0",
        "gpu0",
    )
    flows = parse_flows(f"{made.GPUS[0]}->{made.GPUS[1]}, host0:0->mlx5_0")
    assert [rate.rate > 1e9 for rate in predict(again, flows).rates] == [True, True]
    assert "mlx5_1" in draw(again)
    assert "nvme0n1" in render_system(again)


def test_the_healthy_machine_shows_no_fault(replay):
    found = replay()
    state = found.conditions
    assert found.contradictions == ()
    assert not any(link.narrow or link.slow for link in state.links)
    assert {link.device for link in state.links} == {n for n in found.system.devices if not n.startswith("cpu")}
    assert state.redirecting("sw0", "sw1", "cpu0", "cpu1") == ()
    assert not any(node.differs for node in state.numa)
    assert all(p.possible for p in state.peers("gpu0", "gpu1") if p.ability != "nvlink")
    assert (state.iommu, state.under_load) == ("passthrough", True)
    assert found.system.device("cpu0").part == "xeon-gold-6530"


def test_a_link_of_8_lanes_whose_ends_have_16_shows(replay):
    found = replay("narrow")
    faulty = [link for link in found.conditions.links if link.narrow]
    assert [(link.device, link.above, link.lanes_now, link.lanes) for link in faulty] == [("gpu1", "sw0", 8, 16)]
    assert (faulty[0].device_lanes, faulty[0].port_lanes, faulty[0].under_load) == (16, 16, True)
    assert found.faults == ("the link to gpu1 ran at Gen4 x8 under load, at most Gen4 x16",)
    assert f"fault: {found.faults[0]}" in found.system.assumptions


def test_a_link_of_2_5_gt_under_load_shows(replay):
    faulty = [link for link in replay("slow").conditions.links if link.slow]
    assert [(link.device, link.gen_now, link.gen, link.under_load) for link in faulty] == [("gpu2", 1, 4, True)]


def test_acs_redirection_at_a_switch_port_shows(replay):
    found = replay("acs")
    assert [each.device for each in found.conditions.redirecting("sw0", "sw1")] == ["sw0", "sw0"]
    assert found.system.policies.acs_redirect == {"sw0"}


def test_a_gpu_that_states_another_numa_node_than_its_root_shows(replay):
    found = replay("numa")
    assert [(n.device, n.node, n.root_node) for n in found.conditions.numa if n.differs] == [("gpu3", 0, 1)]
    assert found.contradictions == (
        "gpu3 (0000:84:00.0) states NUMA node 0, the root above it node 1; the root's is taken",
    )


def test_a_missing_peer_shows_from_nvml_and_from_the_matrix(replay, tmp_path):
    state = replay("no-peer").conditions
    assert {p.status for p in state.peers("gpu0", "gpu1") if p.ability in ("read", "write")} == {"NS"}
    assert {p.status for p in state.peers("gpu2", "gpu3") if p.ability in ("read", "write")} == {"OK"}
    folder = made.write_folder(tmp_path / "m", "no-peer")
    (folder / "nvml.json").unlink()
    texts = made.dumps(tmp_path, "no-peer")
    matrix = discover([folder, *texts]).conditions
    assert [(p.ability, p.status, p.source) for p in matrix.peers("gpu0", "gpu1")] == [
        ("read", "NS", "topo-p2p-r.txt:2 p2p read")
    ]


def test_arrays_cards_and_virtual_functions_are_read(replay):
    found = replay()
    volume = found.system.volumes["md0"]
    assert (volume.raid, volume.drives, volume.chunk) == (0, ("ssd0", "ssd1", "ssd2", "ssd3"), 524288)
    facts = {fact.key: fact.value for fact in found.facts["nic1"]}
    assert facts["link_layer"] == "InfiniBand"
    assert (facts["rate"], facts["netdev"], facts["alias"]) == ("200 Gb/sec (4X HDR)", "ib1", "mlx5_1")
    assert (facts["vfs"], facts["vfs_max"], facts["read_request"], facts["payload_max"]) == (0, 16, 512, 512)
    assert {fact.key: fact.value for fact in found.facts["ssd0"]}["block"] == "nvme0n1 (3840.8 GB)"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"level": "raid1"}, "descriptions know RAID-0, 5 and 10"),
        ({"raid_disks": "5"}, "4 of its 5 members are there"),
        ({"level": "raid5", "slave": "../../../loop0"}, "a member of it is no drive on PCI"),
    ],
)
def test_an_array_that_no_description_can_say_is_noted(tmp_path, change, why):
    md = made.write_folder(tmp_path / "m") / "sys/devices/virtual/block/md0"
    for name in ("level", "raid_disks"):
        if name in change:
            (md / "md" / name).write_text(change[name])
    if "slave" in change:
        (md / "slaves/loop0").symlink_to(change["slave"])
    found = discover(tmp_path / "m")
    assert found.system.volumes == {}
    assert any(text.startswith("md0 (") and why in text for text in found.system.assumptions)


def test_a_drive_with_several_ways_to_it_is_found_by_the_first(tmp_path):
    folder = made.write_folder(tmp_path / "m")
    shared = folder / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    shared.mkdir(parents=True)
    (shared / "nvme0").symlink_to("../../../" + made._home(made._DRIVES[0]) + "/nvme/nvme0")
    for link in ("sys/block/nvme0n1", "sys/devices/virtual/block/md0/slaves/nvme0n1"):
        (folder / link).unlink()
        up = "../" * (link.count("/") - 1)
        (folder / link).symlink_to(f"{up}devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1")
    found = discover(folder)
    assert found.system.volumes["md0"].drives[0] == "ssd0"


def test_a_virtual_function_is_no_card_of_its_own(tmp_path):
    folder = made.write_folder(tmp_path / "m")
    card = made._home(made._CARDS[0])
    home = folder / "sys/devices" / card.rpartition("/")[0] / "0000:05:01.0"
    home.mkdir()
    for name, text in (("class", "0x020700"), ("vendor", "0x15b3"), ("device", "0x101c"), ("numa_node", "0")):
        (home / name).write_text(text)
    (home / "physfn").symlink_to("../0000:05:00.0")
    (folder / "sys/bus/pci/devices/0000:05:01.0").symlink_to(f"../../../devices/{card.rpartition('/')[0]}/0000:05:01.0")
    assert discover(folder).system.of_kind(Kind.NIC) == ["nic0", "nic1"]


def test_a_machine_with_numa_nodes_and_no_pci_is_its_cpus(tmp_path):
    node = tmp_path / "sys/devices/system/node/node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("0-3\n")
    found = discover(tmp_path)
    assert [*found.system.devices] == ["cpu0"]
    assert "no GPU, network card or drive on PCI is in the dumps" in found.system.assumptions


def test_a_kernel_without_numa_nodes_has_one_cpu(tmp_path):
    folder = made.write_folder(tmp_path / "m")
    for node in (folder / "sys/devices/system/node").iterdir():
        for each in node.iterdir():
            each.unlink()
    for number in folder.glob("sys/devices/pci*/**/numa_node"):
        number.write_text("-1\n")
    assert discover(folder).system.of_kind(Kind.CPU) == ["cpu0"]


def test_numa_node_minus_1_is_unknown_and_the_cores_nearby_say_it(tmp_path):
    folder = made.write_folder(tmp_path / "m")
    for home in folder.glob("sys/devices/pci0000:80/**/numa_node"):
        home.write_text("-1\n")
        (home.parent / "local_cpus").write_text("ffffffff,00000000\n")
    found = discover(folder)
    assert found.contradictions == ()
    assert {link.a for link in found.system.links if link.b == "sw1"} == {"cpu1"}
    source = next(fact.source.what for fact in found.facts["gpu3"] if fact.key == "numa")
    assert source == "local_cpus"


@pytest.mark.parametrize(("gpus", "mode"), [("DMA-FQ", "translate"), ("identity", "passthrough")])
def test_the_iommu_mode_is_that_of_the_gpus_groups(tmp_path, gpus, mode):
    folder = made.write_folder(tmp_path / "m")
    (folder / "sys/kernel/iommu_groups/0/type").write_text(gpus)
    (folder / "sys/kernel/iommu_groups/1/type").write_text("DMA")
    for here in made.GPUS:
        (folder / "sys/devices" / made._home(here) / "iommu_group").symlink_to("/sys/kernel/iommu_groups/0")
    assert discover(folder).system.policies.iommu == mode


def test_the_verb_writes_a_capture_a_drawing_and_a_description_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert verbs.run(["discover", "--capture", "m.tar.zst", "--draw", "m.svg", "-o", "m.yaml"]) == 0
    assert "wrote m.tar.zst" in capsys.readouterr().err
    assert (tmp_path / "m.svg").read_text().startswith("<svg")
    assert verbs.run(["discover", "--from", "m.tar.zst", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["conditions"]["under_load"] is None
    assert verbs.run(["discover", "--capture", "busy.tar", "--under-load"]) == 0
    assert discover("busy.tar").conditions.under_load is True


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--capture", "m.zip"], "m.zip: its suffix does not say what kind of tar it should be"),
        (["--capture", "no/m.tar"], "there is no folder"),
        (["--capture", "m.tar", "--from", "x.xml"], "--capture reads this machine, --from another"),
        (["--under-load"], "--under-load has no effect without --capture"),
        (["--draw", "no/m.svg"], "there is no folder"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path, monkeypatch, capsys, words, cause):
    monkeypatch.chdir(tmp_path)
    assert verbs.run(["discover", *words]) == 2
    said = capsys.readouterr().err
    assert cause in said
    assert "hint:" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["nvml.json", "capture.json"])
def test_a_record_that_is_none_is_refused(tmp_path, name):
    folder = made.write_folder(tmp_path / "m")
    (folder / name).write_text("[1,")
    with pytest.raises(InputError, match=r"m: "):
        discover(folder)


def test_a_capture_cut_off_is_refused(tmp_path):
    path = made.write_capture(tmp_path / "m.tar.zst")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="not a readable tar"):
        discover(path)


def test_a_captured_virtual_machine_has_its_cpu_drive_and_card(own):
    found = own("virtual-machine.tar.zst")
    assert sorted(found.system.devices) == ["cpu0", "nic0", "ssd0"]
    assert {f.key: f.value for f in found.facts["ssd0"]}["block"] == "vda (274.9 GB)"
    assert found.conditions.iommu == "off"
