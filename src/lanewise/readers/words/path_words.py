"""What the words around a figure say: which kind of path it is of, which way, and whether somebody expected it."""

from __future__ import annotations

from lanewise import late_re as re
from lanewise.readers.words.directions import D2H, H2D

_PATHS = (
    ("service", re.compile(r"\btok(?:en)?s?\b|\d ?t/s\b|\breq(?:uest)?s?\b|infer(?:ence)?s?\b|\bv?llm\b|triton|\bqps\b|"
                           r"\bsglang\b|tensorrt|throughput:.{0,40}tok", re.I)),
    ("device", re.compile(r"\bh(?:ost)?(?:2|to|->)d(?:ev(?:ice)?)?\b|\bd(?:ev(?:ice)?)?(?:2|to|->)h(?:ost)?\b|"
                          r"\bgpus?\b|\bcuda\b|\bnvlink\b|\bp2p\b|\bfpga\b|\bxdma\b|\bc2h\b|\bh2c\b|"
                          r"\bcapture card\b", re.I)),
    ("network", re.compile(
        r"iperf|netperf|gigabit|ntttcp|sockperf|network|ethernet|\bnics?\b|\btcp\b|\budp\b|rdma|roce|infiniband|\bib_\w+|"
        r"\bmpi\b|\bosu_|\bbond|\bvlan|\bvpn\b|wireguard|pkts?/s|\d ?[MKGk]?pps\b|packets?|\blan\b|wi-?fi|\bmtu\b|"
        r"\bsend(?:er)?\b|\brecv\b|receiver|\bdpdk\b|pod-to-pod|bits?/s|"
        r"(?-i:[kKmMgG]bps\b|[KMG]BPS\b|\d ?[MGT]b/s)", re.I)),
    ("storage", re.compile(
        r"\bdis[ck]s?\b|\bdrives?\b|nvme|\bssds?\b|\bhdds?\b|\braid|\bfio\b|\bdd\b|\bceph|\bosds?\b|\bnfs|\bsmb\b|"
        r"samba|\bzfs|zpool|lustre|gpfs|beegfs|\biops\b|\brbd\b|volumes?\b|\bs3\b|iscsi|hdparm|\bior\b|file ?system|"
        r"\b(?:seq|rand)\w*[ -]?(?:read|write)|\bbtrfs|\bext4|\bxfs|\bemmc\b|\bsd ?card|\busb\b|copy(?:ing)? files?",
        re.I)),
    ("host memory", re.compile(r"\bmemory bandwidth\b|\bstream\b.{0,20}triad|\bmemcpy\b|\bdram\b|\bddr[2-6]\b|"
                               r"\bdimms?\b|\bram (?:speed|bandwidth)", re.I)),
)  # fmt: skip
_READS = re.compile(r"(?-i:\bGETs?\b)|\bread(?:s|ing)?\b|\brd\b|download|\brx\b|recv|receiv\w*|\bc2h\b|" + D2H, re.I)
_WRITES = re.compile(
    r"(?-i:\bPUTs?\b)|\bwrit(?:e|es|ing|ten)\b|\bwrote\b|\bwr\b|upload|\btx\b|\bsen[dt]\w*|\bh2c\b|" + H2D,
    re.I,
)
# Before a figure: what its writer wants of it. "Slower than expected" and "as it should" are said of what was measured.
_EXPECTED = re.compile(
    r"(?<!than )(?<!as )\bexpect\w*|(?<!as it )(?<!than it )\bshould(?:n.?t)?\b|\bsupposed to\b|\binstead of\b|"
    r"\brather than\b|\bought to\b|\bhop(?:ed|ing) for\b|\bfar from\b|\b(?:way|well|far|much) below\b|"
    r"\bless than the\b|\bnot the\b|\bused to (?:be|get|have|reach|see)\b|\bcounted on\b|"
    r"\b(?:target|goal|acceptance)\b(?=[^.;]{0,40}$)|"
    r"\bother (?:people|users)\b|\bnormally\b|\bcompared (?:to|with) the\b|\bnowhere near\b|\bout of\b", re.I,
)  # fmt: skip
_NOMINAL = re.compile(
    r"\badvertis\w*|\brated\b|\bclaim\w*|\bpromis\w*|\bnominal\w*|\btheor(?:y|etical\w*)|\bspec(?:s|'d|ified|ifications?)?\b|"
    r"\bline[ -]?rate\b|\bcapable of\b|\bcan do\b|\bdata ?sheet\b|\bmarketed\b|\bvendor\b|\bsold (?:as|with)\b|"
    r"\bmax(?:imum)? (?:link|possible|theoretical)\b|\blimit is\b|\bceiling\b|\bsaid to\b|\battainable\b|"
    r"\d ?% of (?:the |its )?$|"
    # What follows from a line is no measurement: '10G uplink (so ~1.1 GB/s)', '25GbE, i.e. about 3 GB/s'.
    r"\b\d{1,3} ?G(?:bE|b(?:it)?(?:/s|ps)?)?\b[^.;:()]{0,24}[(,] ?"
    r"(?:so|i\.?e\.?,?|meaning|that is|that's|which is|=|~|\u2248)[ ~\u2248]{0,2}(?:about |around |roughly |some )?$|"
    r"(?<=[,;] )the (?:drive|disk|memory|link|card|port|line|slot|bus|wire) "
    r"(?:can|has|does|carries|manages|delivers)\b", re.I,
)  # fmt: skip
_EXPECTED_AFTER = re.compile(
    r"\s{0,2}(?:(?:is|are|was|were|would be|that is|which is|i|we)\s){0,2}(?:expect|what i|normal)", re.I
)
_NOMINAL_AFTER = re.compile(
    r"\s{0,2}according to (?:its|the|their) (?:vendor|maker|manufacturer|data ?sheet|spec\w*)|"
    r"\s{0,2}(?:\(?(?:as|is|was|in)\s)?(?:theor|advertised|nominal|rated|line[ -]?rate|spec\b|raw\b|claimed|"
    r"max\b)", re.I,
)  # fmt: skip
_LINE_AFTER = re.compile(
    r"[ -]{1,2}(?:[A-Za-z-]{1,14} ){0,1}(?:nics?|links?|network|ethernet|ports?|switch|cards?|connections?|interfaces?|"
    r"fabric|infiniband|adapters?|uplinks?|lan|internet|line|fib(?:re|er)s?|[fehnx]dr(?:\d{3})?|roce|rdma|"
    r"connectx-?\d?|cx-?\d)\b", re.I,
)  # fmt: skip
_LINE = re.compile(
    r"(?<![\w.])(\d{1,3}(?:\.\d)?) ?(?:GbE|GigE|"
    r"G(?=[ -](?:network|nics?|(?:up)?link|ethernet|ports?|lan|infiniband|switch|adapters?|interfaces?|fabric|roce)))\b"
)
_GIGABIT = re.compile(
    r"(?<![\w./])(?:(\d{1,3}(?:\.\d)?)[ -]|(?<!\d[ -])())gigabit\b(?![ -]?(?:per|/|s\b))", re.IGNORECASE
)
# InfiniBand's generations by their four lanes, in Gb/s (InfiniBand Trade Association's roadmap); NDR200 has two.
_INFINIBAND = {"FDR": 56, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800}
_IB_NAME = re.compile(r"(?<![\w/-])(FDR|EDR|HDR|NDR|XDR)-?(100|200|400)?\b(?! ?(?:10\b|video|display))")
# IEEE 802.3u is called so, whatever is faster today.
_FAST_ETHERNET = re.compile(r"\bfast ethernet\b|\b100BASE-TX\b", re.IGNORECASE)
# Said of what was measured and is thought too little.
_ONLY = re.compile(
    r"\b(?:only|just|merely|barely|mere|but get(?:ting)?|max(?:es|ed)? out|tops? out|stuck|cap(?:s|ped)|limited to|"
    r"drop\w* (?:down )?to|down to|falls? to|fell to|degrad\w+ to|slows? (?:down )?to|hardly)\b", re.I,
)  # fmt: skip
# Between two figures of one sentence: one is held against the other.
_CONTRAST = re.compile(
    r"\b(?:but|while|whereas|vs\.?|versus|against|however|though|although|compared|instead|than|yet)\b|;", re.I
)
# In a sentence whose figures are of one thing.
_SAME = re.compile(
    r"\b(?:the )?same (?:drive|disk|array|machine|server|host|hardware|network|link|card|nic|ssd|box|file|cable|port|"
    r"gpu|setup|pc|computer|model|volume|share|switch|system|vm|test|command)\b|\blocally\b", re.I,
)  # fmt: skip
_SEVERAL = re.compile(r"\b[2-9]\d? ?[x\u00d7*] ?$|\b(?:dual|two|four|quad|several) $", re.I)
# A data rate of a port: Ethernet's (IEEE 802.3) and InfiniBand's, in Gb/s.
_PORTS = (0.1, 1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800)
_OF_LINE = re.compile(
    r"(?<!rate )(?<!put )(?<!width )(?<!peed )(?:\bof|\bover|\bon|\bhas|\ban?|\bthe|\bethernet|\blinks?|\bcards?|"
    r"\bnics?|\broce|\binfiniband|\bport|\bbond|\b(?:connectx|bluefield|cx)-?\d(?: \w{2})?|\b[fehnx]dr) "
    r"(?:an? |the |up to )?$",
    re.IGNORECASE,
)
_SEVERAL_OF = re.compile(
    r"\b(?:[2-9]|two|three|four|six|eight|several) (?:(?!servers|hosts|machines|nodes)[a-z-]+ ){0,2}"
    r"(?:cards|nics|ports|links|adapters|rails|"
    r"interfaces) (?:\w+ ){0,2}of $",
    re.IGNORECASE,
)
_LINE_ENDS = re.compile(
    r"\s{0,2}(?:$|[:,.;()/]|(?:and|but|with|in|for|where|is|does|gives|gets?|reach\w*|bond|line)\b)", re.IGNORECASE
)
_SUFFIX_WAY = re.compile(r"\s{0,2}\(?(?:of |on |for |in )?(?:seq\w* |rand\w* )?([a-z0-9]+)", re.I)
_OVER_NETWORK = re.compile(
    r"\b(?:smb|samba|cifs|nfs\w*|iscsi|iser|ceph|rbd|s3|nas|share[sd]?|sftp|ftp|rsync|webdav)\b", re.IGNORECASE
)
# What a link is said to have is no measurement.
_OF_A_LINK = re.compile(r"\b(?:bridge|lane|pcie link|slot|bus|nvlinks?) of (?:about |some )?$", re.IGNORECASE)
_HEADS_EXPECTATION = re.compile(
    r"\W*(?:expected|desired|what (?:did|do|would) you expect|what (?:i|we|you) expect)\b"
    r"(?!.{0,40}\b(?:actual|observed|got)\b)",
    re.IGNORECASE,
)
_WINDOW = 90


def path_in(words: str) -> str:
    """The kind of path that words name; empty if none."""
    return next((path for path, pattern in _PATHS if pattern.search(words)), "")


def paths_in(words: str) -> set[str]:
    """All kinds of paths that words name."""
    return {path for path, pattern in _PATHS if pattern.search(words)}


def direction(words: str) -> str:
    """'read', 'write' or nothing, by the words nearest before a figure."""
    reads, writes = (
        max((match.end() for match in pattern.finditer(words)), default=-1) for pattern in (_READS, _WRITES)
    )
    return "" if reads == writes else "read" if reads > writes else "write"


def way_after(after: str) -> str:
    """The direction that the word right after a figure says: '3 GB/s read'."""
    match = _SUFFIX_WAY.match(after)
    return direction(match[1]) if match else ""


def is_contrast(between: str, line: str) -> bool:
    """Whether the words between two figures of a line hold one against the other, or the line calls them the same."""
    return _CONTRAST.search(between) is not None or _SAME.search(line) is not None


def falls(before: str, between: str) -> bool:
    """Whether two figures are said as 'from ... to ...': the first is what was there before."""
    return re.search(r"\bfrom (?:about |around |~ ?)?$", before) is not None and re.match(
        r"\W{1,3}(?:down |up |back )?to\b", between
    ) is not None  # fmt: skip


def role(before: str, after: str, *, is_bits: bool) -> str:
    """What a figure is by the words before it and after: 'expected', 'nominal', 'line', 'only', or a result ('')."""
    before, after = before[-_WINDOW:], after[:_WINDOW]
    if _OF_A_LINK.search(before):
        return "several lines"
    if is_bits and _LINE_AFTER.match(after):
        return "several lines" if _SEVERAL.search(before) else "line"
    found = [
        (max((match.end() for match in pattern.finditer(before)), default=-1), name)
        for pattern, name in ((_EXPECTED, "expected"), (_NOMINAL, "nominal"), (_ONLY, "only"))
    ]
    last, name = max(found)
    if last >= 0:
        return name
    if _EXPECTED_AFTER.match(after):
        return "expected"
    return "nominal" if _NOMINAL_AFTER.match(after) else ""


def line_of(before: str, after: str, value: float, unit: str) -> str:
    """'line' or 'several lines' for the data rate of a port as sentences name it: 'over 100 Gb/s'; else nothing."""
    rate = round(value * 8 / 1e9, 3)
    before = before[-_WINDOW:]
    begins = re.match(r"\W*$", before) is not None
    if not unit.endswith("b/s") or rate not in _PORTS:
        return ""
    if begins and re.match(r"\s{1,2}between\b", after):
        return "line"
    if not _LINE_ENDS.match(after):
        return ""
    if begins and re.match(r"\s{0,2}:", after):
        return "line"
    if not _OF_LINE.search(before):
        return ""
    return "several lines" if _SEVERAL_OF.search(before) else "line"


def heads_expectation(heading: str) -> bool:
    """Whether a heading says that what stands below is what somebody wants: 'Expected behavior' of a form."""
    return _HEADS_EXPECTATION.match(heading) is not None


def is_over_network(words: str) -> bool:
    """Whether words name files or a volume that lie beyond a network."""
    return _OVER_NETWORK.search(words) is not None


def lines_in(line: str) -> list[str]:
    """Rates of networks by the names of their ports: 10GbE, 25G NIC, NDR."""
    named = [f"{match[1] or match[2] or 1} Gb/s" for match in _GIGABIT.finditer(line)]
    named += ["100 Mb/s" for _ in _FAST_ETHERNET.finditer(line)]
    named += [f"{match[2] or _INFINIBAND[match[1]]} Gb/s" for match in _IB_NAME.finditer(line)]
    return [*named, *(f"{match[1]} Gb/s" for match in _LINE.finditer(line))]
