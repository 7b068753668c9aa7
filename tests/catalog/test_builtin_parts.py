"""The shipped catalogue: what it holds, and physics it must not contradict."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from lanewise.catalog import BASES, Catalog, Part, builtin, model, unit_of
from lanewise.catalog.pci_parts import PARTS as PARTS_BY_PCI_ID
from lanewise.errors import UnknownName

GPUS = """
k40 p100-pcie p100-sxm2 v100-pcie v100-sxm2 t4 a10 a10g a30 a100-pcie-40gb a100-pcie-80gb
a100-sxm-40gb a100-sxm-80gb l4 l40s h100-pcie h100-nvl h100-sxm h200-sxm rtx-3090 rtx-4090 rtx-5090
rtx-6000-ada rtx-pro-6000-blackwell-workstation rtx-pro-6000-blackwell-server
b200 b300 gb200 gb300 gb300-desktop gh200 gh200-480gb h20 h200-nvl h800 a800 a40 a16 a2 l40 l20
rtx-6000d rtx-a6000 rtx-a5000 rtx-a4000 v100-sxm3 m60 gtx-1070 gtx-1080 gtx-1080-ti titan-xp titan-v titan-rtx
rtx-2080-ti rtx-3060 rtx-3080 rtx-4060-ti rtx-4070 rtx-4080
rtx-5060-ti rtx-5070 rtx-5070-ti rtx-5080
mi50 mi100 mi210 mi250x mi300x mi325x mi355x radeon-pro-vii rx-7900-xtx
mi25 radeon-vii rx-580 rx-6900-xt rtx-3090-ti v100s-pcie
"""
CPUS = """
ivy-bridge-ep haswell-ep broadwell-ep skylake-sp cascade-lake-sp ice-lake-sp sapphire-rapids
emerald-rapids rome milan genoa turin threadripper-pro-7000 xeon-e5-2600-v2 xeon-gold-6454s
xeon-gold-6530 xeon-gold-6526y xeon-gold-5120t epyc-7452 epyc-7742 naples granite-rapids granite-rapids-sp
xeon-w-sapphire-rapids xeon-w-3300 threadripper-1000 threadripper-2000 threadripper-3000 threadripper-7000
threadripper-9000
threadripper-pro-3000 threadripper-pro-5000 threadripper-pro-9000 ryzen-am4 ryzen-2000 ryzen-am5 ryzen-9000 grace
grace-480gb grace-496gb power9 altra
"""
SWITCHES = """
pex8747 pex8764 pex8796 pex9781 pex9797 pex88032 pex88048 pex88064 pex88080 pex88096 pex89024 pex89032 pex89048 pex89072
pex89088 pex89104 pex89144 switchtec-pfx-gen3
switchtec-pfx-gen4 switchtec-pfx-gen5 pax-gen4 cdi-gen4-fabric-switch cdi-gen5-fabric-switch
"""
NICS = """
connectx-3-fdr connect-ib-fdr connectx-4-edr connectx-5 connectx-6-hdr connectx-6-dx-100gbe
connectx-6-dx-200gbe connectx-7-ndr connectx-7-ndr200 connectx-7-400gbe connectx-8-xdr bluefield-2 bluefield-3
connectx-4-lx intel-e810-100gbe bcm57508-100gbe bcm57608-400gbe
"""
SSDS = """
nvme-gen3-x4-3.5 micron-9300 intel-p4510 samsung-pm1733 samsung-pm1743 kioxia-cm6 kioxia-cm7 samsung-990-pro
samsung-pm1725 samsung-pm981 samsung-pm981a samsung-pm9a3 samsung-pm9d3a samsung-pm9d3a-m2
samsung-pm1735 samsung-960-evo samsung-960-pro
samsung-970-evo samsung-970-evo-plus samsung-970-pro samsung-980 samsung-980-pro intel-p3600
intel-p3700 intel-p4500 intel-p4800x
intel-p5500 intel-p5800x solidigm-p5316 solidigm-p5336 solidigm-p5810 solidigm-ps1010 micron-7300
micron-7400 micron-7450 micron-9200
micron-9400 kioxia-cd6 kioxia-cd7 kioxia-cd8 kioxia-xg6 wd-sn750 wd-sn770 wd-sn850 wd-sn850x crucial-p5-plus
crucial-t700 crucial-t705 skhynix-p41 seagate-firecuda-540 kingston-kc3000
"""
RAIDS = "smartroc-3200 highpoint-ssd7540"
NVLINKS = """
nvlink-c2c nvlink1 nvlink2 nvlink3 nvlink3-bridge nvlink4 nvlink5 xgmi-mi100 xgmi-mi200 xgmi-mi300 xgmi-mi350
xgmi-vega20
"""
WANTED = {
    "gpu": GPUS, "cpu": CPUS, "switch": SWITCHES, "nic": NICS, "ssd": SSDS, "raid": RAIDS, "nvlink": NVLINKS,
}  # fmt: skip

GIGATRANSFERS = {1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9, 6: 64e9}
ENCODING = {1: 0.8, 2: 0.8, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}


def raw_rate(gen: int, lanes: float) -> float:
    """The bits of a PCIe link in one direction after line encoding, in B/s."""
    return GIGATRANSFERS[gen] * lanes * ENCODING[gen] / 8


PARTS = sorted(builtin().parts.values(), key=lambda part: part.name)
every_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in WANTED.items() for name in names.split()])
def test_every_part_that_the_studies_need_exists(kind: str, name: str) -> None:
    assert builtin().get(name).kind == kind


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ("PEX 89104", "pex89104"), ("PEX-8764", "pex8764"), ("H100SXM", "h100-sxm"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-blackwell-server"),
        ("RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-blackwell-workstation"),
        ("Broadcom PEX 9781", "pex9781"), ("ConnectX-8 SuperNIC", "connectx-8-xdr"),
    ],
)  # fmt: skip
def test_names_are_known_however_their_words_are_divided_and_so_are_titles(written: str, part: str):
    assert builtin().get(written).name == part


def test_a_title_that_several_parts_share_is_none_of_them():
    shared = [part for part in PARTS if part.title.startswith("Intel Xeon Scalable, ")]
    assert len(shared) > 1
    assert "Intel Xeon Scalable" not in builtin()


@every_part
def test_every_figure_has_a_source_a_legal_key_and_the_keys_unit(part: Part) -> None:
    assert part.figures
    for name, figure in part.figures.items():
        assert figure.unit == unit_of(name)
        assert figure.source.strip()
        assert figure.basis in BASES


@every_part
def test_nothing_shipped_is_fitted_or_points_outside_the_product(part: Part) -> None:
    for figure in part.figures.values():
        assert figure.basis != "fitted" or "hypothesis" in figure.source
        assert "shared/" not in figure.source + figure.condition


@every_part
def test_every_measured_engine_names_its_condition(part: Part) -> None:
    for name, figure in part.figures.items():
        if name.startswith(("engine.", "latency.")) and figure.known:
            assert figure.basis == "calibrated", name
            assert figure.condition, name


@every_part
def test_no_engine_beats_the_raw_rate_of_its_link(part: Part) -> None:
    for name, figure in part.figures.items():
        stem, _, gen = name.rpartition(".gen")
        if not stem.startswith("engine.") or not isinstance(figure.value, float):
            continue
        lanes = part.number("pcie.lanes")
        assert lanes is not None
        both_ways = 2 if stem == "engine.duplex" else 1
        assert int(gen) <= (part.number("pcie.gen") or 0)
        assert 0.2 * raw_rate(int(gen), lanes) < figure.value < both_ways * raw_rate(int(gen), lanes)


@every_part
def test_a_duplex_figure_is_the_sum_of_its_two_directions(part: Part) -> None:
    for gen in GIGATRANSFERS if part.kind == "gpu" else ():
        both, down, up = (part.number(f"engine.duplex{way}.gen{gen}") for way in ("", "_h2d", "_d2h"))
        if both is not None and down is not None and up is not None:
            assert both == pytest.approx(down + up, rel=0.01)  # each is a median over machines


@every_part
def test_nvlink_rates_are_links_times_the_rate_of_one(part: Part) -> None:
    name = part.text("nvlink.part") if part.kind == "gpu" else None
    if name is None:
        return
    links, rate, goodput = (part.number(key) for key in ("nvlink.links", "nvlink.rate", "engine.nvlink"))
    one = builtin().get(name).number("nvlink.link_rate")
    assert links is not None
    assert rate is not None
    assert one is not None
    assert rate == pytest.approx(links * one)
    assert goodput is None or goodput < rate


@every_part
def test_peers_through_a_root_complex_stay_below_the_raw_rate(part: Part) -> None:
    for gen in GIGATRANSFERS if part.kind == "cpu" else ():
        rate = part.number(f"peer.rate.gen{gen}")
        assert rate is None or rate < raw_rate(gen, 16)


@every_part
def test_a_drive_or_network_port_never_outruns_its_own_slot(part: Part) -> None:
    if part.kind not in ("ssd", "raid", "nic"):
        return
    gen, lanes = part.number("pcie.gen"), part.number("pcie.lanes")
    if part.kind == "ssd":  # of a drive the sources may name neither; its connector has four lanes
        gen, lanes = gen or 6, lanes or 4
    assert gen is not None
    for key in {"ssd": ("read.rate", "write.rate"), "raid": ("read.rate",), "nic": ("net.rate",)}.get(part.kind, ()):
        rate = part.number(key)
        assert lanes is not None
        assert rate is None or rate < raw_rate(int(gen), lanes)


@every_part
def test_payloads_and_reads_are_powers_of_two(part: Part) -> None:
    for name, figure in part.figures.items():
        if name.endswith(("max_payload", "max_read_request", "window_payload", "peer.payload")):
            assert figure.value is None or float(figure.value).as_integer_ratio()[0].bit_count() == 1


@every_part
def test_inter_socket_traffic_fits_its_links(part: Part) -> None:
    if part.kind != "cpu":
        return
    links, raw, rate = (part.number(f"intersocket.{key}") for key in ("links", "raw", "rate"))
    if links and raw and rate:
        assert rate < links * raw
    assert (part.text("intersocket.kind") == "none") == (part.number("cpu.sockets_max") == 1)


def test_measured_h200_and_rtx_6000_ada_figures_are_the_known_ones() -> None:
    h200, ada = builtin().get("h200"), builtin().get("rtx-6000-ada")
    assert h200.number("engine.h2d.gen5") == (55.56e9 + 55.43e9) / 2  # of four hosts, 55.2 to 57.3
    assert h200.number("engine.d2h.gen5") == (55.06e9 + 55.32e9) / 2
    assert h200.number("engine.duplex.gen5") is None  # what reads lose beside writes is the hosts' (decision 45)
    assert (ada.number("engine.h2d.gen4"), ada.number("engine.d2h.gen4")) == (26.8e9, 26.3e9)
    assert ada.number("engine.p2p_write.gen4") == (26.3e9 + 26.66e9) / 2


def test_switch_latencies_are_the_makers() -> None:
    seconds = [builtin().get(name).number("switch.cut_through") for name in ("pex8796", "pex88096", "pex89144")]
    assert seconds == pytest.approx([150e-9, 105e-9, 115e-9])


def test_what_nobody_measured_stays_unknown_and_says_why() -> None:
    figure = builtin().get("l40s").figure("latency.api_p2p")
    assert figure.value is None
    assert "no independent measurement" in figure.source


def test_the_fabric_windows_call_themselves_a_hypothesis() -> None:
    for name, tags in (("cdi-gen4-fabric-switch", 256), ("cdi-gen5-fabric-switch", 768)):
        part = builtin().get(name)
        assert part.number("switch.window_tags") == tags
        assert part.number("switch.window_payload") == 128
        assert "hypothesis" in part.figure("switch.window_tags").source


def test_names_and_aliases_are_unique_and_found_in_any_case() -> None:
    called = [name.casefold() for part in PARTS for name in (part.name, *part.aliases)]
    assert len(called) == len(set(called))
    assert builtin().get("Tesla-K40m") is builtin().get("k40")
    assert "A100-PCIe" in builtin()


def test_names_lists_one_kind_and_refuses_an_unknown_one() -> None:
    assert builtin().names("nvlink") == NVLINKS.split()
    assert len(builtin().names()) == len(builtin().parts)
    with pytest.raises(UnknownName, match="kind of part 'gpus'"):
        builtin().names("gpus")


def test_an_unknown_part_offers_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        builtin().get("l40x")
    assert "l40s" in caught.value.hint


def test_parts_survive_pickling_and_can_be_hashed() -> None:
    part = builtin().get("h200")
    assert pickle.loads(pickle.dumps(part)) == part
    assert hash(pickle.loads(pickle.dumps(builtin()))) == hash(builtin())
    assert pickle.loads(pickle.dumps(builtin())) == builtin()


def test_the_catalogue_is_read_once() -> None:
    assert builtin() is builtin()
    assert isinstance(builtin(), Catalog)


def test_importing_the_catalogue_does_not_import_yaml() -> None:
    code = "import sys, lanewise.catalog; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pci_ids_stand_for_parts_that_ship() -> None:
    assert [name for name in PARTS_BY_PCI_ID.values() if name not in builtin()] == []


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("H100 80GB HBM3", "h100-sxm"),
        ("H100 SXM5", "h100-sxm"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("Tesla T4", "t4"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Intel Arc Pro B70", "arc-pro-b70"),
        ("Arc Pro B60", "arc-pro-b60"),
        ("Intel Arc B580", "arc-b580"),
    ],
)
def test_a_name_may_leave_out_the_maker_or_have_it(name: str, part: str) -> None:
    assert builtin().get(name).name == part


@pytest.mark.parametrize("cpu", ["genoa", "siena", "turin"])
def test_what_a_node_of_ddr4_gives_is_not_carried_over_to_sockets_of_ddr5(cpu: str) -> None:
    keys = ("memory.dma_reads", "memory.dma_writes")
    assert not [key for key in keys if builtin().get(cpu).figure(key).known]
    assert all(builtin().get("milan").figure(key).known for key in keys)


def test_all_names_are_gone_through_once_however_many_unknown_ones_are_looked_for(monkeypatch: pytest.MonkeyPatch):
    catalog, made = Catalog(dict(builtin().parts)), []
    original = model._written_otherwise

    def counted(*names):
        made.append(names)
        return original(*names)

    monkeypatch.setattr(model, "_written_otherwise", counted)
    assert not [name for name in ("no part", "another one", "B 4711") if name in catalog]
    assert catalog.get("PEX 89104").name == "pex89104"
    assert len(made) == 1
