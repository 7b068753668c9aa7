"""What the driver says: NVML through a stand-in, and the texts of topo -p2p, nvlink -s and ibstat."""

from __future__ import annotations

import json

import pytest
from discovery.fake_nvml import FakeNvml

from lanewise.api import discover
from lanewise.catalog import builtin
from lanewise.discovery import nvml
from lanewise.discovery.build import discover as build
from lanewise.discovery.dumps import read_dump
from lanewise.errors import FormatError, InputError
from lanewise.routes.classify import topo_class


def machine(library):
    record = nvml.as_text(nvml.query_gpus(library)).decode()
    return build([nvml.read_nvml(record, "nvml.json")], builtin())


def peers(name, cells, tmp_path, before=""):
    path = tmp_path / name
    path.write_text(f"{before}\tGPU0\tGPU1\t\nGPU0\tX\t{cells[0]}\t\nGPU1\t{cells[1]}\tX\t\n\nLegend:\n  X    = Self\n")
    return path


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "tree.txt"
    path.write_text(
        "-+-[0000:00]-+-01.0-[01]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5]\n"
        " |           \\-02.0-[02]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5]\n"
    )
    return path


def test_nvml_gives_gpus_links_and_nvlinks_through_a_switch():
    library = FakeNvml()
    found = machine(library)
    assert library.open == 0
    assert found.contradictions == ()
    assert topo_class(found.system, "gpu0", "gpu1") == "NV18"
    assert found.dump_names["gpu0"] == ("0000:0a:00.0",)
    facts = {fact.key: fact.value for fact in found.facts["gpu0"]}
    assert (facts["nvlinks"], facts["nvlinks_off"], facts["nvlink_version"]) == (18, 1, "5.0")
    assert (facts["gen"], facts["lanes"], facts["gen_now"], facts["lanes_now"]) == (5, 16, 5, 16)
    throttle = found.conditions.throttles[0]
    assert (throttle.device, throttle.reasons) == ("gpu0", ("idle", "hardware thermal slowdown"))


def test_nvlinks_to_each_other_join_gpus_without_a_switch():
    system = machine(FakeNvml(links=12, switch=False)).system
    assert [(k.a, k.b, k.count) for k in system.links if k.kind.value == "nvlink"] == [("gpu0", "gpu1", 12)]


@pytest.mark.parametrize(("code", "status"), [*enumerate(["OK", "CNS", "GNS", "TNS", "DR", "NS", "U"])])
def test_every_peer_status_of_nvml_has_its_word(code, status):
    state = machine(FakeNvml(peers=code)).conditions.peers("gpu1", "gpu0")
    assert {peer.ability for peer in state} == {"read", "write", "nvlink", "atomics", "pci"}
    assert {peer.status for peer in state} == {status}
    assert state[0].possible is {"OK": True, "U": None}.get(status, False)


def test_what_nvml_refuses_to_say_stays_unknown():
    silent = [name for name in dir(FakeNvml) if name.startswith(("nvmlDeviceGet", "nvmlSystem"))]
    kept = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo")
    found = machine(FakeNvml(silent=[name for name in silent if name not in kept]))
    assert found.system.of_kind("gpu") == ["gpu0", "gpu1"]
    assert found.conditions.p2p == ()
    assert found.conditions.links == ()


def test_nvlinks_whose_other_end_is_hidden_take_an_nvswitch():
    found = machine(FakeNvml(silent=["nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetNvLinkRemoteDeviceType"]))
    assert topo_class(found.system, "gpu0", "gpu1") == "NV18"
    assert any("does not show where the NVLinks of 0000:0a:00.0 lead" in text for text in found.system.assumptions)


def test_a_gpu_that_nvml_has_lost_is_left_out_and_the_others_stay():
    class Lost(FakeNvml):
        def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
            if index:
                raise FakeNvml.NVMLError("GPU is lost")
            return index

    assert machine(Lost()).system.of_kind("gpu") == ["gpu0"]


def test_the_record_of_nvml_holds_no_uuid():
    assert "uuid" not in json.dumps(nvml.query_gpus(FakeNvml())).lower()


def test_what_gpu_and_slot_can_together_contradicts_nothing():
    reading = nvml.read_nvml(nvml.as_text(nvml.query_gpus(FakeNvml(gen=4))).decode(), "nvml.json")
    lspci = (
        "0a:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2335]\n"
        "\tCapabilities: [60] Express (v2) Endpoint\n\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n"
    )
    found = build([*read_dump(lspci.encode(), "lspci.txt"), reading], builtin())
    assert found.contradictions == ()


def test_rw_stands_for_reading_and_writing(tmp_path, tree):
    found = discover([tree, peers("peers.txt", ("OK", "OK"), tmp_path, "$ nvidia-smi topo -p2p rw\n")])
    assert [p.ability for p in found.conditions.peers("gpu0", "gpu1")] == ["read", "write"]


@pytest.mark.parametrize(
    ("name", "before", "ability"),
    [
        ("peers.txt", "$ nvidia-smi topo -p2p w\n", "write"),
        ("topo-p2p-n.txt", "", "nvlink"),
        ("topo_p2p_r.txt", "", "read"),
        ("peers.txt", "", "read"),
    ],
)
def test_the_ability_of_a_matrix_is_what_was_typed_or_the_files_name(tmp_path, tree, name, before, ability):
    found = discover([tree, peers(name, ("OK", "CNS"), tmp_path, before)])
    assert [(p.a, p.b, p.ability, p.status) for p in found.conditions.p2p] == [
        ("gpu0", "gpu1", ability, "OK"),
        ("gpu1", "gpu0", ability, "CNS"),
    ]
    guessed = any("which ability" in text for text in found.system.assumptions)
    assert guessed is (name == "peers.txt" and not before)


def test_one_text_may_hold_the_classes_and_several_matrices_of_peers(tmp_path):
    path = tmp_path / "pasted.txt"
    classes = "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-7\nGPU1\tPHB\t X \t0-7\n"
    peers_text = "$ nvidia-smi topo -p2p {0}\n\tGPU0\tGPU1\nGPU0\tX\t{1}\nGPU1\t{1}\tX\n"
    path.write_text(classes + peers_text.format("r", "OK") + peers_text.format("n", "NS"))
    found = discover(path)
    assert topo_class(found.system, "gpu0", "gpu1") == "PHB"
    assert [(p.ability, p.status) for p in found.conditions.peers("gpu0", "gpu1")] == [("read", "OK"), ("nvlink", "NS")]


def test_a_matrix_of_peers_alone_shows_no_machine(tmp_path):
    with pytest.raises(InputError, match="no GPU, network card or drive on PCI"):
        discover(peers("p2p-r.txt", ("OK", "OK"), tmp_path))


def test_a_matrix_of_peers_cut_off_is_refused(tmp_path):
    path = tmp_path / "p2p-r.txt"
    path.write_text("\tGPU0\tGPU1\nGPU0\tX\tOK\n")
    with pytest.raises(InputError, match=":1: no row for GPU1"):
        discover(path)
    path.write_text("\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tWHAT\tX\n")
    with pytest.raises(InputError, match=":3: 'WHAT' is no status"):
        discover(path)


def test_nvlinks_up_and_down_are_counted_and_laid_beside_the_matrix(tmp_path):
    topo = tmp_path / "topo.txt"
    topo.write_text("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \t0-7\n")
    links = tmp_path / "nvlink.txt"
    lines = []
    for gpu, last in enumerate(("26.562 GB/s", "<inactive>")):
        states = [*["26.562 GB/s"] * 3, last]
        lines += [f"GPU {gpu}: NVIDIA A100 (UUID: GPU-deadbeef-{gpu})"]
        lines += [f"\t Link {number}: {state}" for number, state in enumerate(states)]
    links.write_text("\n".join(lines) + "\n")
    found = discover([topo, links])
    assert found.contradictions == ("gpu1 has 3 NVLinks up (nvlink.txt:6 Link), the dumps join it by 4",)
    facts = {fact.key: fact.value for fact in found.facts["gpu1"]}
    assert (facts["nvlinks"], facts["nvlinks_off"], facts["nvlink_rate"]) == (3, 1, "26.562 GB/s")
    assert "deadbeef" not in found.text()


def test_a_gpu_all_of_whose_nvlinks_are_down_has_none_up(tmp_path, tree):
    links = tmp_path / "nvlink.txt"
    why = "NVML: Unable to retrieve NVLink information as all links are inActive"
    links.write_text("".join(f"GPU {n}: NVIDIA A100 (UUID: GPU-deadbeef)\n{why}\n" for n in range(2)))
    found = discover([tree, links])
    assert {fact.key: fact.value for fact in found.facts["gpu0"]}["nvlinks"] == 0


def test_ibstat_gives_rate_and_state_of_the_card_of_that_name(tmp_path):
    from discovery import made_captures as made

    folder = made.write_folder(tmp_path / "m")
    (folder / f"sys/devices/{made._home(made._CARDS[0])}/infiniband/mlx5_0/ports/1/rate").unlink()
    (folder / f"sys/devices/{made._home(made._CARDS[0])}/net/ib0/speed").unlink()
    found = discover([folder, *made.dumps(tmp_path)])
    facts = {fact.key: (fact.value, fact.source.file) for fact in found.facts["nic0"]}
    assert facts["rate"] == ("200 Gb/s", "ibstat.txt")
    assert facts["state"] == ("Active", "ibstat.txt")
    assert not [secret for secret in made.SECRETS if secret in found.text()]


def test_the_matrices_of_rocm_smi_are_refused_by_their_name():
    text = "==== Weight between two GPUs ====\n       GPU0     GPU1\nGPU0   0        15\nGPU1   15       0\n"
    with pytest.raises(FormatError, match="rocm-smi --showtopo are not read") as caught:
        read_dump(text.encode(), "topo.txt")
    assert "lspci -tvnn" in caught.value.hint
