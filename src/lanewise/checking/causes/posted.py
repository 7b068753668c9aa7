"""Causes that a posted text states itself: settings of NCCL, clocks lowered, small BARs, an IOMMU that translates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lanewise.checking.cause import Cause
from lanewise.checking.causes.conditions import TURNED_OFF
from lanewise.checking.causes.ports import at_lesser_port
from lanewise.checking.references.gpu_memory import GPU_MEMORY
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.rdma_turned_off import LEAVE_SOCKETS, leaves_sockets
from lanewise.checking.symptom import RowSymptom
from lanewise.checking.tolerances import TOLERANCES
from lanewise.results.observation import Observation
from lanewise.results.posted import BY_LSCPU, PostedFacts, Statement

_PEER_PATHS = ("peer", "peer, staged", "collective")
_ALL_GPU_PATHS = (*HOST_COPIES, *_PEER_PATHS, "network", "storage")


@dataclass(frozen=True, slots=True)
class _StatedCause:
    """A statement that is a cause: of which paths, if its value matches, what to say and to type."""

    statement: str
    value: str
    key: str
    paths: tuple[str, ...]
    what: str
    step: str


# What a machine has or is, whatever runs on it: of two rows of one path both have it.
_OF_A_MACHINE = ("virtual machine", "confidential", "iommu", "acs", "bar", "chipset")
# What a setting does that turns RDMA off: the setting is to be changed, the transport is why it is slow.
_OVER_SOCKETS = "data between hosts goes by TCP sockets, not by RDMA"
_SOCKETS_STEP = "ibv_devinfo in the container; unset NCCL_IB_DISABLE; NCCL_DEBUG=INFO must show NET/IB"
_CAUSES = (
    _StatedCause("NCCL_P2P_DISABLE", r"1", "setting", _PEER_PATHS,
                 "NCCL_P2P_DISABLE=1 sends peer traffic through host memory", "unset NCCL_P2P_DISABLE"),
    _StatedCause("NCCL_P2P_LEVEL", r"LOC|0|NVL|1|PIX|2", "setting", _PEER_PATHS,
                 "NCCL_P2P_LEVEL={value} turns P2P off between GPUs that are farther apart", "unset NCCL_P2P_LEVEL"),
    _StatedCause("NCCL_SHM_DISABLE", r"1", "setting", _PEER_PATHS,
                 "NCCL_SHM_DISABLE=1 sends traffic within the host over the network", "unset NCCL_SHM_DISABLE"),
    _StatedCause("NCCL_IB_DISABLE", LEAVE_SOCKETS["NCCL_IB_DISABLE"], "setting", ("network", "collective"),
                 "NCCL_IB_DISABLE=1 leaves TCP sockets for traffic between hosts", "unset NCCL_IB_DISABLE"),
    _StatedCause("NCCL_NET_GDR_LEVEL", r"LOC|0", "staged", ("network", "collective"),
                 "NCCL_NET_GDR_LEVEL={value} turns GPUDirect RDMA off", "unset NCCL_NET_GDR_LEVEL"),
    _StatedCause("GPUDirect RDMA", r"(?i)off|disabled|0|no", "staged", ("network", "collective"),
                 "GPUDirect RDMA is off: data of the GPUs goes through host memory",
                 "sudo modprobe nvidia_peermem; NCCL_DEBUG=INFO must show GDRDMA"),
    _StatedCause("GPUDirect Storage", r"(?i)off|disabled|0|no|false|unsupported|compat.*", "staged", ("storage",),
                 "GPUDirect Storage is off: cuFile reads into host memory and copies from there (compat mode)",
                 "gdscheck -p; load nvidia-fs; the drive and its file system must be supported"),
    _StatedCause("peer transport", r"(?i)shm", "setting", ("collective",),
                 "NCCL moves data between these GPUs through host memory (via SHM), not peer to peer",
                 "nvidia-smi topo -p2p r; look for NCCL_P2P_* settings, ACS and the IOMMU"),
    _StatedCause("warm-up", r"none|0", "software", ("collective",),
                 "without a warm-up the first calls set connections and buffers up", "measure with -w 5 -n 20"),
    _StatedCause("NCCL_MAX_NCHANNELS", r"[1-4]", "setting", ("collective",),
                 "NCCL_MAX_NCHANNELS={value} leaves too few channels to fill the links", "unset NCCL_MAX_NCHANNELS"),
    _StatedCause("NCCL_NTHREADS", r"64|128", "setting", ("collective",),
                 "NCCL_NTHREADS={value}: too few threads of a channel to fill NVLinks", "unset NCCL_NTHREADS"),
    _StatedCause("NCCL_ALGO", r"(?i)\^?[a-z,]+", "setting", ("collective",),
                 "NCCL_ALGO={value} takes the choice of the algorithm from NCCL", "unset NCCL_ALGO"),
    _StatedCause("NCCL_TOPO_FILE", r".+", "setting", ("collective",),
                 "NCCL_TOPO_FILE={value} stands for the topology that NCCL would find", "unset NCCL_TOPO_FILE"),
    _StatedCause("NCCL_BUFFSIZE", r"\d{1,6}", "setting", ("collective",),
                 "NCCL_BUFFSIZE={value}: pieces far below the 4 MiB that NCCL sends at once", "unset NCCL_BUFFSIZE"),
    _StatedCause("NCCL_PROTO", r"(?i)\^?LL", "setting", ("collective",),
                 "NCCL_PROTO={value}: LL carries half as much as the links do", "unset NCCL_PROTO"),
    _StatedCause("NCCL_NET", LEAVE_SOCKETS["NCCL_NET"], "setting", ("network", "collective"),
                 "NCCL_NET=Socket leaves TCP sockets for traffic between hosts", "unset NCCL_NET"),
    _StatedCause("UCX_TLS", LEAVE_SOCKETS["UCX_TLS"], "setting", ("network",),
                 "UCX_TLS={value} leaves TCP sockets for traffic between hosts", "unset UCX_TLS"),
    _StatedCause("network transport", r"(?i)socket|tcp", "transport", ("network", "collective"),
                 _OVER_SOCKETS, _SOCKETS_STEP),
    _StatedCause("backend", r"gloo", "software", ("collective", "network"),
                 "torch.distributed uses gloo, which copies to host memory and sends over TCP",
                 "init_process_group(backend='nccl') for tensors of GPUs"),
    _StatedCause("mtu", r"\d{3}|1[0-4]\d\d|1500", "mtu", ("network",),
                 "MTU {value}: a packet costs the CPU as much as one of 9000 B, and RoCE has packets of 1024 B",
                 "ip link set DEVICE mtu 9000 at both ends and the switch, then measure again"),
    _StatedCause("lost packets", r".+", "congestion", ("network", "collective"),
                 "the network loses packets: {value}",
                 "ethtool -S DEVICE | grep -E 'pause|discard|out_of_buffer|cnp'; PFC or ECN, cables"),
    _StatedCause("flow control", r"off", "setting", ("network", "collective"),
                 "no priority of the port has flow control (PFC): RoCE loses packets wherever several senders meet",
                 "mlnx_qos -i DEVICE --trust dscp --pfc 0,0,0,1,0,0,0,0 at all hosts, and PFC or ECN at the switches"),
    _StatedCause("network plugin", r".+", "software", ("network", "collective"),
                 "NCCL's network plugin does not start ({value}), which leaves TCP sockets",
                 "fi_info -p efa in the container: --device=/dev/infiniband, libfabric of the plugin's version"),
    _StatedCause("link now", r"(?!2\.5 GT/s).+", "link", ("network", "collective"),
                 "a card's link came up at a lower generation than it can: {value}",
                 "reseat the card; set the slot's generation in the firmware; swap it with a card of another host"),
    _StatedCause("port speed", r".+", "link", ("network",),
                 "a port runs at less than it can: {value}",
                 "ethtool DEVICE at both ends; another cable, the switch's port; ethtool -s DEVICE autoneg on"),
    _StatedCause("faster before", r".+", "others", ("network", "storage", "host memory"),
                 "something else uses the same line, device, memory or cores by now (it was faster {value})",
                 "top -H, mpstat -P ALL 1, sar -n DEV 1, iostat -x 1: what is busy while nothing is measured?"),
    _StatedCause("link errors", r".+", "link", _ALL_GPU_PATHS,
                 "a PCIe link repeats packets because of errors: {value}",
                 "reseat the card, replace its riser or cable, or try a lower generation; dmesg | grep -i aer"),
    _StatedCause("drive temperature", r".+", "throttling", ("storage",),
                 "the drive slows itself down while it is hot: {value}",
                 "nvme smart-log /dev/DEVICE while it runs; more air, a heat sink; measure again once it is cool"),
    _StatedCause("sata link", r".+", "link", ("storage",),
                 "the drive's SATA link runs at {value}", "another cable and port; dmesg | grep -i 'ata[0-9]'"),
    _StatedCause("drive health", r".+", "drive", ("storage",),
                 "the drive fails or is worn: {value}", "nvme smart-log /dev/DEVICE; another drive"),
    _StatedCause("drive setting", r".+", "setting", ("storage",),
                 "a setting of the drive: {value}", "hdparm -d1 -u1 -c1 DEVICE; is its controller's driver loaded?"),
    _StatedCause("fabric manager", r"(?i).*(?:not|inactive|failed|dead).*", "nvlink", _PEER_PATHS,
                 "the fabric manager is {value}: NVSwitches carry nothing without it",
                 "systemctl status nvidia-fabricmanager; its version must be that of the driver"),
    _StatedCause("iommu", r"(?i)translate|on|dma", "iommu", _ALL_GPU_PATHS,
                 "the IOMMU translates: traffic between devices goes up to the root complex",
                 "boot with iommu=pt, or turn the IOMMU off in the BIOS"),
    _StatedCause("acs", r"(?i)on|redirect", "acs", (*_PEER_PATHS, "network", "storage"),
                 "ACS redirects traffic between devices up to the root complex",
                 "turn ACS off in the BIOS, or sudo setpci -s PORT ECAP_ACS+6.w=0000 at each bridge"),
    _StatedCause("relaxed ordering", r"(?i)off|disabled|0", "relaxed ordering", ("network",),
                 "PCIe relaxed ordering is off: writes of the network card wait for each other",
                 "mlxconfig -d DEVICE set PCI_WR_ORDERING=1, or allow it in the BIOS"),
    _StatedCause("confidential computing", r"(?i)on|enabled|1", "confidential", _ALL_GPU_PATHS,
                 "confidential computing is on: copies are encrypted through a bounce buffer, about 10 GB/s",
                 "nvidia-smi conf-compute -f; measure with it off to compare"),
    _StatedCause("BAR1", r"(?:6[0-4]|128|25[0-6]) MiB", "bar", (*_PEER_PATHS, "network", "storage"),
                 "BAR1 is only {value}: peers reach the GPU's memory through a small window",
                 "turn on Above 4G Decoding and Resizable BAR in the BIOS; nvidia-smi -q -d MEMORY"),
    _StatedCause("resizable BAR", r"(?i)off|disabled", "bar", (*_PEER_PATHS, "network", "storage"),
                 "resizable BAR is off: peers reach the GPU's memory through a small window",
                 "turn on Above 4G Decoding and Resizable BAR in the BIOS; nvidia-smi -q -d MEMORY"),
    _StatedCause("clocks", r"(?i).*(?:power|thermal|slowdown|brake).*", "throttling", (*_ALL_GPU_PATHS, GPU_MEMORY),
                 "the clocks are lowered: {value}", "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"),
    _StatedCause("limited link", r".+", "link", _ALL_GPU_PATHS,
                 "the kernel says that a link runs at {value}", "move the card, or set the slot's lanes in the BIOS"),
    _StatedCause("slot", r"(?i).*(?:chipset|pch).*", "chipset", _ALL_GPU_PATHS,
                 "the card's slot is behind the chipset, whose link to the CPU all its devices share",
                 "put the card into a slot of the CPU: sudo lspci -tv"),
    _StatedCause("other programs", r"(?i)(?!(?:no|none|0)$).+", "others", (*HOST_COPIES, *_PEER_PATHS, GPU_MEMORY),
                 "another program uses the GPU, its links or its memory at the same time: {value}",
                 "stop it and measure again; nvidia-smi pmon -c 1 and dmon -s ut: who uses the GPUs?"),
    _StatedCause("virtual machine", r"(?i)(?!(?:no|off|false|0)$).+", "virtual machine", ("storage", *HOST_COPIES),
                 "a virtual machine: virtual devices, memory of any NUMA node and an IOMMU that translates",
                 "pass the device through, with huge pages of its NUMA node; compare on the host"),
    _StatedCause("virtual machine", r"(?i)(?!(?:no|off|false|0)$).+", "virtual machine", (*_PEER_PATHS, "network"),
                 "a virtual machine: peer traffic needs ACS direct translation, or goes through the root complex",
                 "NVIDIA's P2P in virtual machines needs ATS and the hypervisor's consent; compare on the host"),
)  # fmt: skip

# Limits of a container or shell at which calls of libraries fail before anything moves (NCCL's troubleshooting guide).
_OF_CALLS = (
    (
        "shared memory",
        "the container's shared memory is too small for NCCL",
        "df -h /dev/shm; docker run --shm-size=1g --ulimit memlock=-1, or --ipc=host",
    ),
    (
        "locked memory",
        "memory for RDMA cannot be registered: the limit of locked memory is too low",
        "ulimit -l must say unlimited: docker run --ulimit memlock=-1, or /etc/security/limits.conf",
    ),
)


def stated_causes(symptom: RowSymptom) -> Iterator[Cause]:
    """The causes that the posted text states and that touch the row's kind of path."""
    row = symptom.row
    # A service over several GPUs is slow by the collectives of its model.
    collective = row.metric in ("bus_bandwidth", "algorithm_bandwidth") or row.how.get("tool") == "vLLM bench"
    path = "collective" if collective else row.path
    if path in _PEER_PATHS:
        yield from _over_the_network_within_a_host(symptom)
    for cause in _CAUSES:
        for statement in symptom.posted.stated(cause.statement):
            if cause.key == "virtual machine" and path in _PEER_PATHS and _over_nvlink(symptom):
                continue  # neither ACS nor a root complex is on the way
            if cause.key == "virtual machine" and path == "collective" and row.settings.get("hosts", 1) > 1:
                continue  # clouds' machines are all virtual: `inter_host` tells it
            if cause.key == "others" and not _of_row(statement, row):
                continue
            if path in cause.paths and re.fullmatch(cause.value, statement.value.strip()):
                told = _cause(cause, statement)
                # TCP fills a port until it drops: some loss is how it finds its rate (RFC 9438), not what limits it.
                full = (
                    cause.statement == "lost packets" and "retransmits" in statement.value and at_lesser_port(symptom)
                )
                told = replace(told, inconclusive=True) if full or _both_have_it(cause, symptom) else told
                yield told
                if leaves_sockets(statement):
                    yield Cause(("transport",), _OVER_SOCKETS, _SOCKETS_STEP, evidence=statement.source)
    known = {cause.statement for cause in _CAUSES}
    for statement in symptom.posted.statements:
        if statement.key not in known and TURNED_OFF.fullmatch(f"{statement.key}={statement.value.strip()}"):
            what = f"a variable turns something off: {statement.key}={statement.value}"
            yield Cause(("setting", statement.key), what, f"unset {statement.key}", evidence=statement.source)


def _over_the_network_within_a_host(symptom: RowSymptom) -> Iterator[Cause]:
    """NCCL takes peers, then shared memory, then the network (NCCL's documentation, NCCL_SHM_DISABLE): two are off."""
    off = [each for key in ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
           for each in symptom.posted.stated(key)[:1] if each.value.strip() == "1"]  # fmt: skip
    if len(off) == 2:
        what = "neither peers nor shared memory may be used: data within the host takes the network, if only by sockets"
        step = "unset NCCL_P2P_DISABLE NCCL_SHM_DISABLE; NCCL_DEBUG=INFO must show via P2P or via SHM"
        yield Cause(("transport",), what, step, evidence=off[1].source)


def _both_have_it(cause: _StatedCause, symptom: RowSymptom) -> bool:
    """Whether a property of the whole machine holds for the faster row as well with which a row is compared."""
    return cause.key in _OF_A_MACHINE and symptom.result.tolerance is TOLERANCES["same path"]


def _of_row(statement: Statement, row: Observation) -> bool:
    """Whether a statement of one GPU is of a GPU of the row; of none it is of all."""
    named = set(re.findall(r"\bgpu\d+", statement.value))
    return not named or bool(named & set(re.findall(r"\bgpu\d+", row.how.get("flows", row.flow))))


def _over_nvlink(symptom: RowSymptom) -> bool:
    return symptom.surely_over_nvlink and symptom.row.settings.get("hosts", 1) == 1


def _of_boards(posted: PostedFacts) -> Iterator[Cause]:
    """What the board of a GPU or of its NVSwitches says of itself: clocks held down, switches that nobody set up."""
    for statement in posted.stated("clocks"):
        # Software caps are settings or load; these are signals of the board: heat, or a power supply's brake.
        if statement.value.startswith("hw "):
            what = f"the board lowers a GPU's clocks: {statement.value}"
            step = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER; fans, power supplies, cables; ipmitool sel list"
            yield Cause(("throttling",), what, step, evidence=statement.source, fault=True)
            break
    for statement in posted.stated("fabric manager"):
        if "don't match" in statement.value:
            what = f"NVSwitches are not set up: {statement.value}"
            step = "install nvidia-fabricmanager of the driver's own version; systemctl restart nvidia-fabricmanager"
            yield Cause(("nvlink",), what, step, evidence=statement.source, fault=True)


def posted_faults(posted: PostedFacts) -> Iterator[Cause]:
    """What a posted text shows to be broken, whatever was measured."""
    for statement in posted.stated("off the bus"):
        step = "dmesg | grep -iE 'xid|aer|pcie'; power the machine off and on, reseat the card or its cable"
        what = f"a GPU fell off the bus: {statement.value}"
        yield Cause(("off bus",), what, step, evidence=statement.source, fault=True)
    for statement in posted.stated("NVLink errors"):
        step = "nvidia-smi nvlink -e; nvidia-smi nvlink -s; reset the GPUs, reseat the bridge or baseboard"
        what = f"an NVLink fails: {statement.value.rstrip(',')}"
        yield Cause(
            ("nvlink", *re.findall(r"\bgpu\d+", statement.value)), what, step, evidence=statement.source, fault=True
        )
    yield from _of_boards(posted)
    for key, what, step in _OF_CALLS:
        for statement in posted.stated(key)[:1]:
            yield Cause(("setting", key), f"{what}: {statement.value}", step, evidence=statement.source, fault=True)
    for statement in posted.stated("failed test"):
        what = f"a test of the tool failed: {statement.value}"
        step = "run that test alone; dmesg | grep -iE 'xid|aer|nvrm'; systemctl status nvidia-fabricmanager"
        yield Cause(("failed test", statement.value), what, step, evidence=statement.source, fault=True)
    if corrupt := posted.stated("wrong values"):
        more = f", and {len(corrupt) - 1} more such" if len(corrupt) > 1 else ""
        what = f"data arrived wrong, so no rate of this run counts: {corrupt[0].value}{more}"
        step = "look for Xid and ECC errors (dmesg, nvidia-smi -q -d ECC), turn ACS and the IOMMU off, dcgmi diag -r 3"
        yield Cause(("wrong values",), what, step, evidence=corrupt[0].source, fault=True)
    if not posted.stated("tunnel"):
        for statement in posted.stated("narrow slot"):
            what, step = (
                f"a slot leaves a card fewer lanes than it can: {statement.value}",
                "move the card, or set the slot's lanes in the BIOS",
            )
            yield Cause(("link",), what, step, evidence=statement.source, fault=True)
    for statement in posted.stated("link speed"):
        what = f"a link runs at a lower generation than its device can: {statement.value}"
        step = "is the slot older? else set its generation in the BIOS, reseat the card; lspci -vv of the port above"
        yield Cause(("link", statement.value), what, step, evidence=statement.source, fault=True)
    for statement in posted.stated("sata errors"):
        what = f"errors made the kernel slow a SATA link down: {statement.value}"
        step = "another cable, then another port; smartctl -A: UDMA_CRC_Error_Count grows where the cable is bad"
        yield Cause(("link", statement.value), what, step, evidence=statement.source, fault=True)
    for statement in posted.stated("link width"):
        what = f"a link has fewer lanes than it can: {statement.value}"
        step = "reseat the card or its riser, look which slot it is in: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'"
        yield Cause(("link", statement.value), what, step, evidence=statement.source, fault=True)


def _cause(cause: _StatedCause, statement: Statement) -> Cause:
    key = (cause.key, statement.key) if cause.key == "setting" else (cause.key,)
    what = cause.what.format(value=statement.value)
    # Most virtual machines copy at full rate: that lscpu shows one speaks for nothing.
    if cause.key == "virtual machine" and statement.value == BY_LSCPU:
        return Cause(key, what, cause.step, inconclusive=True)
    if cause.key == "others":  # it may only hold memory
        return Cause(key, what, cause.step, evidence=statement.source, inconclusive=True)
    return Cause(key, what, cause.step, evidence=statement.source)
