"""What the words of a figure's name say of it: a version, a condition, how much work, which machine or device.

Two figures whose names differ in a condition alone are a question about the lower one; figures of other work or of
another machine are no measure of each other.
"""

from __future__ import annotations

from lanewise import late_re as re

# What `tool` says of rows that were read from sentences and tables of no known tool.
# What people call memory or a device of another socket or NUMA node.
FAR_WORDS = re.compile(
    r"\b(?:across|between|over) (?:the )?(?:two |both )?(?:sockets|cpus|numa nodes)|\bcross[- ]?(?:socket|numa|cpu)|"
    r"\b(?:other|remote|far|opposite|second|another|wrong) (?:numa(?: node)?|socket|cpu|node|memory)\b|\bfar\b",
    re.IGNORECASE,
)  # fmt: skip
# Of a gather or an all-to-all people count the bytes of a rank or of all ranks.
BYTES_OF, OF_A_RANK_OR_ALL = "bytes of", "a rank or all"
PLAIN_TEXT, TABLE, OWN_PROGRAM = "plain text", "table", "a program's own lines"
RANDOM = re.compile(r"\b(?:rand|rnd)", re.IGNORECASE)  # requests in no order

VERSION = re.compile(
    r"\b(?:before|after|old|new|older|newer|previous(?:ly)?|earlier|upgrad\w*|downgrad\w*|update\w*|regress\w*|"
    r"patch\w*|version|release|main|master|nightly|stable|commit|v\d+(?:\.\d+)*)\b|"
    r"(?<![\d.])v?\d{1,2}\.\d{1,3}\.\d{1,4}\w*", re.I,
)  # fmt: skip
CONDITION = re.compile(
    rf"{VERSION.pattern}|\b(?:with|without|w/o?|no|on|off|enabled?|disabled?|default|tuned|untuned|using|api|mode|"
    r"backend|driver|kernel|software|hardware|raid\w*|engine|native(?:ly)?|host|in|inside|outside|bare ?metal|"
    r"vms?|guest|container|docker|virtual\w*|config\w*|setting|set to|option|through|via|direct|cached|encrypt\w*|"
    r"compress\w*|collective)\b|"
    r"(?<!\S)--?[a-z][\w-]+|\b[A-Za-z_]{3,}=(?!\d)\w+", re.I,
)  # fmt: skip
# What says that two figures are of one path: they are compared, one is a program or a layer on the
# way of the other, or it is called the same.
_HELD = (
    r"\b(?:but|only|while|whereas|where|though|although|however|yet|instead|than|versus|vs|against|just|merely|barely|"
    r"slow\w*|slower|drop\w*|falls?|fell|loses?|lost|worse|poor\w*|should|expect\w*|why|no more|stops? at|stuck|"
    r"same|alone|itself|direct(?:ly)?|local(?:ly)?|others?|another|else(?:where)?|each|later|again|now|"
    r"together|at once|both|less|up to|of which|tested)\b"
)
_PROGRAMS = (
    r"\b(?:iperf\d?|netperf|ntttcp|qperf|sockperf|perftest|ib_\w+|ucx\w*|osu\w*|mpi\w*|nccl\w*|rccl|msccl\w*|gloo|oneccl|"
    r"fio|dd|hdparm|diskspd|iozone|ior|bonnie\S*|crystaldiskmark|spdk|bdevperf|sqlio|rsync|scp|sftp|ssh|ftp|wget|curl|cp|"
    r"robocopy|samba|smb\w*|cifs|nfs\w*|iscsi|iser|ceph|rbd|krbd|librbd|drbd|zfs|btrfs|md|lvm|luks|gocryptfs|fuse|virtio|"
    r"vhost|sr-?iov|dpdk|testpmd|tcp|udp|rdma|roce|efa|verbs|libfabric|ipoib|sockets?|gpudirect|gdr|vpn|wireguard|ipsec|openvpn|tls|nebula|tailscale|bridge|bond|overlay|"
    r"flannel|calico|cilium|pods?|containers?|docker|wsl|vms?|guests?|hosts?|bare|native\w*|proxy|gateway|router|"
    r"cuda|rocm|hip\w*|opencl|sycl|vulkan|torch|pytorch|tensorflow|jax|numpy|python|trtexec|triton|vllm|sglang|tensorrt|"
    r"llama\.cpp|bandwidthtest|nvbandwidth|p2p|gds|buffers?|alloc\w*|window\w*|timings?|algorithms?|protocols?|clocks?|"
    r"governor|gdrcopy|copy engine|kernel|pinned|pageable|numa|node \d|transfer\w*)\b"
)
OF_ONE_PATH = re.compile(rf"{CONDITION.pattern}|{_HELD}|{_PROGRAMS}", re.IGNORECASE)
# How much is asked for at once, of how many, in which size: other work, which no condition explains.
WORK = re.compile(
    r"\b\d{1,6} ?(?:threads?|jobs?|clients?|streams?|connections?|cores?|ranks?|users?|workers?|procs?|process\w*|"
    r"gpus?|nodes?|hosts?|osds?|servers?|vms?|pods?|files|vcpus?|queues?|hours?|flows?)\b|"
    r"\b(?:concurren\w*|batch\w*|bs|qd|depth|iodepth|threads?|clients?|users?|connections?|ranks?|nodes?|numjobs|"
    r"streams?|size|block|length|input|output|context|isl|osl|qps|rate)\W{0,3}\d{1,9}\w{0,3}\b|"
    r"^\W*\d{1,9} ?(?:[kKmMgG]i?)?[bB]?\b|\b\d{1,6} ?(?:[kKmMgG]i?)?[bB]\b|\b(?:fp|bf|int|q)\d{1,2}\w*\b|"
    r"\b(?:prefill|decode|prompt|generat\w*|ttft|tpot|itl|copy|scale|add|triad|random|rand\w*|rnd\w*|seq\w*|"
    r"single|multi\w*|up|down|avg|average|mean|median|min|max|peak|p\d\d|stdev|udp|tcp)\b", re.I,
)  # fmt: skip
# Machines, devices and ends of paths, which are no measure of each other.
THINGS = re.compile(
    r"\b(?:(?:node|host|server|client|machine|rack|gpu|nvme|vol|disk|drive|port|nic|eth|sd[a-z]|mlx\d_|pc|zone|rank|dev|"
    r"instance|cpu|socket|numa|osd)[ #_-]?\d+\w*|sd[a-z]\d?|pod|pods|same-node|other-node|intra|inter|local|remote|"
    r"loopback|[A-Z]{1,4}-?\d{3,5}\w{0,3})\b", re.I,
)  # fmt: skip
_COUNTS = {word: at for at, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"), 1)}
_COUNTS |= {"single": 1, "sixteen": 16}
_COUNT = re.compile(
    rf"\b(?:({'|'.join(_COUNTS)})|(?<![\w.])(\d{{1,6}})(?![.\d]) ?x?)\b ?"
    r"(?:threads?|jobs?|clients?|streams?|connections?|cores?|ranks?|users?|workers?|process\w*|gpus?|cards?|nodes?|hosts?|servers?|senders?|pairs?|drives?|disks?|osds?|nics?|ports?|"
    r"vms?|pods?|copies|flows?|files?|queues?|concurrent|of them|at once|together|"
    r"(?:nvidia |rtx |gtx |tesla |amd )?(?-i:[ABHLTVPM]I?)\d{1,3}[A-Z0-9]{0,3}\b|(?=\W*$))", re.I,
)  # fmt: skip
# 'three drives have 15 GB/s, six 20'
_SPELLED = re.compile(rf"\b({'|'.join(_COUNTS)})(?= \d)", re.IGNORECASE)
# What a tool counted besides: io=285240KB, runt=900011msec.
_COUNTED = re.compile(r"\b(?:io|runt|total|time|elapsed|duration|bytes|transferred|cycles?\w*)=\S{1,40}")


def without_counts(words: str) -> str:
    """Words without what a tool counted besides the figure."""
    return _COUNTED.sub(" ", words)


def work_in(words: str) -> frozenset[str]:
    """How much was asked for at once, in which size, of how many, as words say."""
    return frozenset(re.sub(r"\W", "", word.lower()) for word in WORK.findall(without_counts(words)))


def count_in(words: str) -> int:
    """How many of something words name last, 0 if they name none."""
    found = [_COUNTS[match[1].lower()] if match[1] else int(match[2]) for match in _COUNT.finditer(words)]
    found = found or [_COUNTS[match[1].lower()] for match in _SPELLED.finditer(words)]
    return found[-1] if found else 0
