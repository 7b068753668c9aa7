"""What people post with their figures: settings of NCCL, its log, nvidia-smi -q, kernel messages, as statements.

Each line is looked at by itself. A statement is evidence for a cause; what is broken by itself is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.readers.posted.amd_smi import links_of_amd_smi
from lanewise.readers.posted.dimms import listed_modules
from lanewise.readers.posted.drives import listed_drives
from lanewise.readers.posted.gpu_memory import memory_modules, memory_rates
from lanewise.readers.posted.gpus import listed_gpu
from lanewise.readers.posted.links import (
    NumberedLine,
    lesser_ports,
    listed_links,
    narrow_links,
    narrow_links_of_pciconf,
    queried_gpu,
    queried_links,
    slow_links,
    slower_ports,
)
from lanewise.readers.posted.nvlink_states import nvlink_states
from lanewise.readers.posted.sata import sata_links
from lanewise.results.posted import BY_LSCPU, PostedFacts, Statement

# Every line that one of the patterns below could match has one of these; most lines of a text have none.
_RELEVANT = re.compile(
    r"NCCL|UCX_TLS|ackend|Size: |MT/s|Type: DDR|"
    r"iommu|IOMMU|ACSCtl|relax|CC status|onfidential|RDMA|GDR|peer_mem|Hypervisor|Virtuali|Thunder|USB4|Ridge|"
    r"esizable|off the bus|GPU is lost|Xid|Unable to|: Active|BAR1|Total|Max|Current|PCIe Gen|Link Width|"
    r"Lnk(?:Cap|Sta):|lspci .*-\w*s |[Ll]ink[_ ]?[Ww]idth|current_link|max_link|^[0-9a-f:]{5,12}\.[0-7] |"
    r"GPU [0-9A-Fa-f]{8}:|/dev/(?:nvme|sd)|odel Number|evice Model|Product:|SATA Version|Rotation|\bMODEL\b|"
    r"^(?:/dev/)?(?:sd[a-z]|[vx]vd[a-z]|nvme\d)|odel name|CPU model|limited by|Speed: |[Rr]ate:\s|mtu |"
    r"Bus Error|BadTLP|Replays Since|abric|_err|discard|out_of_|inactive|UUID|retrans|missed|enabled  |gpuId|"
    r"[UDX_] [UDX_] |Errors?: |^GPU \d{1,3}: |ercentage[ _][Uu]sed|"
    r"Comp\. Temp|_temp|pciconf|link x\d|[Mm]emory (?:[Bb]andwidth|[Cc]lock|[Bb]us)|using_dma|DDR[345]|"
    r"ibv_|allocate MR|hermal_?[ M]|thm_|ritical_warning|"
    r"SATA |rx-usecs|rtt min/avg|round-trip min/avg|timeout, abort|I/O error|failed command| C  |Unsupported|ompat"
)
_NCCL = re.compile(r"\b(NCCL_[A-Z0-9_]{2,40}|UCX_TLS)(?:=| set by environment to )\"?([\w:,./-]{1,80})")
_LINES: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("iommu", "translate", re.compile(r"DMAR: IOMMU enabled|iommu: Default domain type: Translated")),
    ("iommu", "translate", re.compile(r"\b(?:intel|amd)_iommu=on\b(?!.*\biommu=pt\b)")),
    ("acs", "redirect", re.compile(r"ACSCtl:.*ReqRedir\+")),
    ("relaxed ordering", "off", re.compile(r"PCIe relax order: ?OFF")),
    ("confidential computing", "on", re.compile(
        r"CC status: ?ON|Confidential Compute[^:]{0,80}: ?(?:ON|Enabled)", re.I)),
    ("GPUDirect RDMA", "off", re.compile(r"GPU ?Direct RDMA Disabled|GDR 0\b|nv_peer_mem(?:ory)? (?:is )?not loaded")),
    # gdscheck -p of drives (file systems that nobody uses are unsupported on healthy machines too), and cuFile's log.
    ("GPUDirect Storage", "off", re.compile(
        r"\bNVMe\s{1,40}: Unsupported|cuFile.{0,60}\bcompat(?:ibility)? mode\b|nvidia-fs.{0,30}\bnot loaded|"
        r"force_compat_mode\"?\s{0,4}: true")),
    ("virtual machine", BY_LSCPU, re.compile(r"Hypervisor vendor:|Virtualization Mode\s*: Pass-Through")),
    ("tunnel", "Thunderbolt or USB4", re.compile(
        r"Thunderbolt (?:[345]|Bridge)|USB4 |Barlow Ridge|Titan Ridge|Alpine Ridge|Maple Ridge|Goshen Ridge")),
    ("resizable BAR", "off", re.compile(r"Resizable BAR\s*: ?(?:Off|Disabled|No)", re.I)),
    ("mtu", "", re.compile(
        r"\d{1,4}: (?!lo:)\S{1,40}: <\S{1,80}> mtu (\d{3,5})|(?!lo)\w{2,16}: flags=\S{1,80} {1,4}mtu (\d{3,5})")),
    ("network transport", "Socket", re.compile(r"NCCL INFO Using network Socket")),
    # torch.distributed's backend as launchers and scripts print and set it.
    ("backend", "gloo", re.compile(r"\b(?:backend|Backend)\b[\"']?\s{0,4}[=:]\s{0,4}[\"']?gloo\b")),
    ("interrupt delay", "", re.compile(r"^rx-usecs:?\s{1,8}([1-9]\d{0,4})\s*$")),
    ("round trip", "", re.compile(r"(?:rtt|round-trip) min/avg/max/(?:mdev|stddev) = (\d[\d.]{0,8})/\S{1,40} (ms)")),
    ("lost packets", "", re.compile(
        r"\b((?:rx_)?(?:prio\d_)?(?:out_of_buffer|discards(?:_phy)?|missed_errors)|packet_seq_err|out_of_sequence"
        r"|local_ack_timeout_err|rnr_nak_retry_err|roce_adp_retrans\w{0,8})\s{0,20}[:=]?\s{0,20}([1-9]\d{0,18})\b")),
    # mlnx_qos: no priority of a RoCE port has flow control.
    ("flow control", "off", re.compile(r"^\s*enabled(?:\s+0){8}\s*$")),
    # The plugin for EFA (github.com/aws/aws-ofi-nccl) writes so where it finds no card, no provider or an old library.
    ("network plugin", "", re.compile(
        r"NET/OFI (?:.{0,40}(initialization failed)|Initializing plugin (failed)|"
        r"(No eligible providers were found)|Failed to initialize .{0,40}(provider))")),
    ("link errors", "", re.compile(
        r"PCIe Bus Error: severity=\w{1,12}.{0,20} type=(?:Data Link|Physical) Layer|BadTLP\+|BadDLLP\+"
        r"|Replays Since Reset\s{0,40}: ?[1-9]\d{2,9}")),
    ("NVLink errors", "", re.compile(r"\bXid\b.{0,40}: 74,")),
    ("fabric manager", "not running", re.compile(
        r"fabric-?manager\S{0,12}\b.{0,60}\b(?:inactive|failed|not running|dead)\b|CUDA_ERROR_SYSTEM_NOT_READY", re.I)),
    ("fabric manager", "", re.compile(r"(fabric manager .{0,60}don't match with driver version)")),
    ("drive health", "", re.compile(r"[Pp]ercentage[ _][Uu]sed\s{0,20}: {1,40}(?:9\d|[12]\d\d)%")),
    # NVMe base specification, SMART log: bit 1 of the critical warning is a temperature beyond its threshold.
    ("drive temperature", "", re.compile(
        r"critical_warning\s{1,8}: 0x[\da-f]?[2367abef]\b|"
        r"(?:Warning|Critical) +(?:Comp\.|Composite)? *Temp\w{0,8}\.? Time\s{0,4}: {1,20}[1-9]\d{0,9}|"
        r"(?:warning|critical)_temp_time\s{0,8}: [1-9]\d{0,9}|"
        r"Thermal Management T[12] (?:Trans Count|Total Time)\s{0,8}: [1-9]\d{0,9}|"
        r"thm_temp[12]_(?:trans_count|total_time)\s{0,8}: [1-9]\d{0,9}", re.I)),
    ("drive health", "", re.compile(
        r"I/O \d{1,5} .{0,40}timeout, abort\w{0,4}|blk_update_request: (?:critical medium|I/O) error|"
        r"ata\d{1,3}\.\d\d: failed command: [\w ]{1,24}")),
    ("drive setting", "", re.compile(r"using_dma\s{1,8}= {1,4}0 \(off\)")),
    # NCCL's own warnings (its troubleshooting guide, "Shared memory" and "Memory issues").
    ("shared memory", "", re.compile(
        r"failed to extend /dev/shm/nccl-\w{1,12} to \d{1,12} bytes|creating shared memory segment /dev/shm/nccl-")),
    ("locked memory", "", re.compile(
        r"(ibv_(?:reg_mr|create_cq|create_qp)\w{0,12}) failed.{0,40}Cannot allocate memory|(Couldn't allocate MR)\b")),
    ("off the bus", "", re.compile(
        r"fallen off the bus|GPU is lost|\bXid\b.*: 79,|Unable to determine the device handle for GPU")),
)  # fmt: skip
# A line of nvidia-smi's list of processes that compute: GPU, instances, number, type, name, memory.
_PROCESS = re.compile(
    r"\|\s{1,8}(\d{1,3})\s{1,8}(?:N/A\s{1,8}N/A\s{1,8})?\d{1,9}\s{1,8}C\s{1,8}(\S.{0,80}?)\s{1,80}(?:\d{1,9}MiB|N/A)\s{0,4}\|"
)
# What measures is no other program.
_MEASURES = re.compile(
    r"bandwidth|_perf\b|gdsio|lanewise|TransferBench|simpleP2P|perftest|osu_|nixlbench|gpu_copy", re.IGNORECASE
)
# What the kernel says of a device in a slot slower than itself: 31.504 Gb/s available PCIe bandwidth, limited by ...
_LIMITED = re.compile(
    r"limited by (\d{1,2}\.\d) GT/s PCIe x(\d{1,2}) link at (\S{1,40}) \(capable of .{1,40}"
    r" with (\d{1,2}\.\d) GT/s PCIe x(\d{1,2})"
)
_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
# ibstat, ibstatus and ethtool.
_RATE = re.compile(r"\s*(?:Rate: (\d{1,4})|rate:\s{1,20}(\d{1,4}) Gb/sec.{0,40}|Speed: (\d{1,4})000Mb/s)\s*$")
_CPU = re.compile(r"\s*(?:Model name|model name|CPU model)\s*: *(\S.{2,100})")
_CLOCKS = re.compile(r"((?:SW|HW) (?:Power Cap|Thermal Slowdown|Slowdown|Power Brake Slowdown))\s*: Active")
_BAR1 = re.compile(r"BAR1 Memory Usage")
_TOTAL = re.compile(r"\s*Total\s*: (\d{1,9} MiB)")
_BOARD = re.compile(r"GPU (\d{1,3}): \S.{0,100}\(UUID")
# Boards with NVSwitches use every NVLink; cards have bridges for some of them.
_ALL_NVLINKS = re.compile(r"A[18]00-SXM|H\d00(?! PCIe| NVL)|H20\b|B[23]00")
# One bridge carries four links of these (NVIDIA A100 PCIe and H100 PCIe product briefs: three bridges, twelve links).
_BRIDGED = re.compile(r"A100.{0,6}PCI|H100 (?:PCIe|NVL)|\bA[34]0\b|RTX A[56]\d00", re.IGNORECASE)
_OF_A_BRIDGE = 4
_INACTIVE = re.compile(r"\s{1,12}Link \d{1,2}: <inactive>")
_SECTION = re.compile(r"GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
_LINK_VALUE = re.compile(r"\s*(Max|Current|Device Max)\s*: (\d{1,2})(x?)$")
_VIA = re.compile(r"NCCL INFO Channel \S+ ?:? .* via (P2P|SHM|NET/\w+)(\S*)")


def posted_facts(lines: Sequence[str], file: str) -> PostedFacts:
    """All statements of a text, each once, with the line where it first stands."""
    statements: dict[tuple[str, str], Statement] = {}
    relevant = [(number, line) for number, line in enumerate(lines, 1) if line and _RELEVANT.search(line)]
    within_a_host = _only_within_a_host(relevant)
    for statement in (
        *_statements(relevant, file),
        *queried_links(lines, file),
        *listed_links(lines, file),
        *links_of_amd_smi(lines, file),
        *lesser_ports(lines, file),
        *slower_ports(lines, file),
    ):
        if statement.key != "network transport" or not within_a_host:
            statements.setdefault((statement.key, statement.value), statement)
    gpu = queried_gpu(lines) or listed_gpu(lines)
    return PostedFacts(listed_drives(relevant) | ({"gpu": gpu} if gpu else {}), tuple(statements.values()))


def _only_within_a_host(lines: Sequence[NumberedLine]) -> bool:
    """Whether all channels that NCCL lists lead to GPUs of one host, so that the network it found is not used."""
    ways = {match[1] for _, line in lines if (match := _VIA.search(line))}
    return bool(ways) and ways <= {"P2P", "SHM"}


def _statements(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    memory = False
    for number, line in lines:
        source = f"{file}:{number}"
        yield from (Statement(match[1], match[2].rstrip(".,"), source) for match in _NCCL.finditer(line))
        for key, value, pattern in _LINES:
            if match := pattern.search(line):
                yield Statement(key, value or _said(match), source)
        if (match := _PROCESS.match(line)) and not _MEASURES.search(match[2]):
            yield Statement("other programs", f"{match[2]} on gpu{int(match[1])}", source)
        if match := _CPU.match(line):
            yield Statement("cpu", match[1].strip(), source)
        if (match := _LIMITED.search(line)) and {match[1], match[4]} <= _GENERATIONS.keys():
            now, best = f"Gen{_GENERATIONS[match[1]]} x{match[2]}", f"Gen{_GENERATIONS[match[4]]} x{match[5]}"
            yield Statement("limited link", f"{now} at {match[3]}, a device there can {best}", source)
            # Tunnels of Thunderbolt print 2.5 GT/s; a host of an older generation is no fault.
            if int(match[2]) < int(match[5]) and match[1] != "2.5":
                yield Statement("narrow slot", f"{now} at {match[3]}, of a device that can {best}", source)
        if match := _RATE.match(line):
            rate = f"{next(filter(None, match.groups()))} Gb/s"
            yield from (Statement("line", rate, source), Statement("port rate", rate, source))
        if match := _CLOCKS.search(line):
            yield Statement("clocks", match[1].lower(), source)
        total = _TOTAL.match(line)
        if total and memory:
            yield Statement("BAR1", total[1], source)
        memory = bool(_BAR1.search(line)) or (memory and total is None)
    yield from memory_rates(lines, file)
    yield from memory_modules(lines, file)
    yield from listed_modules(lines, file)
    yield from _transports(lines, file)
    yield from _links(lines, file)
    yield from narrow_links(lines, file)
    yield from narrow_links_of_pciconf(lines, file)
    yield from sata_links(lines, file)
    yield from slow_links(lines, file)
    yield from _nvlinks(lines, file)
    yield from nvlink_states(lines, file)


def _said(match: re.Match[str]) -> str:
    """What a matched line says: its groups, else all that matched."""
    return " ".join(filter(None, match.groups())) or " ".join(match[0].split())


def _nvlinks(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """NVLinks of `nvidia-smi nvlink -s` that are down on a board that uses all of them, or in part of a bridge."""
    gpu, board = "", False
    partly: dict[tuple[str, int], list[int]] = {}  # by GPU and the line of its name: a text may list it twice
    named = 0
    for number, line in lines:
        if match := _BOARD.match(line):
            named = number
            board = _ALL_NVLINKS.search(line) is not None
            gpu = f"gpu{match[1]}" if board or _BRIDGED.search(line) else ""
        elif gpu and _INACTIVE.match(line):
            if board:
                yield Statement("NVLink errors", f"a link of {gpu} is inactive", f"{file}:{number}")
            else:
                partly.setdefault((gpu, named), []).append(number)
    for (gpu, _), numbers in partly.items():
        if down := len(numbers) % _OF_A_BRIDGE:
            text = f"{down} of the {_OF_A_BRIDGE} links of a bridge of {gpu}" + (" is" if down == 1 else " are")
            yield Statement("NVLink errors", f"{text} inactive", f"{file}:{numbers[0]}")


def _transports(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """How NCCL says that it moves data: through host memory within a host, without GPUDirect between hosts."""
    ways = [(number, match) for number, line in lines if (match := _VIA.search(line))]
    local = [(number, match[1]) for number, match in ways if match[1] in ("P2P", "SHM")]
    if local and all(way == "SHM" for _, way in local):
        yield Statement("peer transport", "SHM", f"{file}:{local[0][0]}")
    sockets = [number for number, match in ways if match[1] == "NET/Socket"]
    if sockets:
        yield Statement("network transport", "Socket", f"{file}:{sockets[0]}")
    network = [(number, match) for number, match in ways if match[1] == "NET/IB"]
    if network and not any("GDRDMA" in match[2] for _, match in network):
        yield Statement("GPUDirect RDMA", "off", f"{file}:{network[0][0]}")


def _links(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """Links of `nvidia-smi -q`: fewer lanes than GPU and slot have. An idle link keeps its lanes."""
    gpu, section = "", ""
    values: dict[str, int] = {}
    for number, line in lines:
        if match := _SECTION.search(line):
            gpu, values = match[1], {}
        text = line.strip()
        section = text if text in ("PCIe Generation", "Link Width") else section
        match = _LINK_VALUE.match(line)
        if match and section == "Link Width" and match[3]:
            values[match[1]] = int(match[2])
            if match[1] == "Current" and values["Current"] < values.get("Max", 0):
                yield Statement("link width", f"{gpu} x{match[2]} of x{values['Max']}", f"{file}:{number}")
