"""How a text that breaks the format is refused."""

from __future__ import annotations

from collections.abc import Callable

from inline_snapshot import snapshot

Shown = Callable[..., str]


def test_a_text_that_is_cut_off(refused: Shown) -> None:
    body = """\
lanewise: 1
system: x
devices:
  cpu0: {cpu: xeon
"""
    assert refused(body, head="") == snapshot("""\
error: s.yaml:4: not YAML: did not find expected ',' or '}'
hint:  the file ends too early, as if cut off: close what is open, or get the whole file\
""")


def test_a_name_with_braces_that_lacks_quotes(refused: Shown) -> None:
    body = """\
lanewise: 1
system: x
devices:
  gpu[0-{gpus-1}]: {gpu: l40s}
links:
  - {from: cpu0, to: gpu[0-{gpus-1}], pcie: auto}
"""
    assert refused(body, head="") == snapshot("""\
error: s.yaml:6: not YAML: did not find expected ',' or '}'
hint:  look for a bracket or quote left open, a tab or wrong indent, or a name with [ ] { } that lacks quotes\
""")


def test_a_source_with_a_colon_that_lacks_quotes(refused: Shown) -> None:
    assert refused("lanewise: 1\nsystem: x\nsource: product page: block diagram\n", head="") == snapshot("""\
error: s.yaml:3: not YAML: mapping values are not allowed in this context
hint:  put a text that holds ': ' into quotes, or look for a wrong indent\
""")


def test_an_empty_text(refused: Shown) -> None:
    body = """\

"""
    assert refused(body, head="") == snapshot("""\
error: s.yaml: the description is empty
hint:  start it with 'lanewise: 1' and 'system: <name>'\
""")


def test_a_text_that_is_no_mapping(refused: Shown) -> None:
    body = """\
- cpu0
- gpu0
"""
    assert refused(body, head="") == snapshot("""\
error: s.yaml:1: a description is made of 'name: value' lines
hint:  start it with 'lanewise: 1' and 'system: <name>'\
""")


def test_a_description_without_version(refused: Shown) -> None:
    body = """\
system: x
devices: {}
"""
    assert refused(body, head="") == snapshot("""\
error: s.yaml:1: the format version is missing
hint:  put 'lanewise: 1' at its top, if this is a system description\
""")


def test_another_format_version(refused: Shown) -> None:
    body = """\
lanewise: 2
system: x
devices: {}
"""
    assert refused(body, head="") == snapshot("""\
error: s.yaml:1: format version 2 is not known
hint:  this Lanewise reads version 1: write 'lanewise: 1', or update Lanewise\
""")


def test_an_unknown_key(refused: Shown) -> None:
    body = """\
device:
  cpu0: {cpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:3: unknown key 'device' in the description
hint:  did you mean devices?
also:  s.yaml:1: the description has no 'devices'\
""")


def test_an_unknown_key_of_a_device(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null, nuna: 0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: unknown key 'nuna' in device 'cpu0'
hint:  did you mean numa?\
""")


def test_an_unknown_key_of_a_link(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null}
  gpu0: {gpu: null}
links:
  - {from: cpu0, to: gpu0, pci: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: unknown key 'pci' in a link
hint:  did you mean pcie or pairs or chain?\
""")


def test_a_value_of_the_wrong_sort(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null, numa: [1]}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: 'numa' must be a whole number or a text, not a list
hint:  it is the NUMA node within the host; '+0' counts up over a range\
""")


def test_a_device_that_is_only_a_word(refused: Shown) -> None:
    body = """\
devices:
  cpu0: xeon-gold-6530
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: 'cpu0' must be 'name: value' lines, not 'xeon-gold-6530'
hint:  write cpu0: {gpu: l40s}, with what it is and its part\
""")


def test_a_missing_entry(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null}
domains:
  d0: {devices: []}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: domain 'd0' has no 'root'
hint:  add 'root:', the CPU whose root port sees it\
""")


def test_a_key_that_stands_twice(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null}
  cpu0: {cpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'cpu0' is given twice, first in line 4
hint:  keep one of the two\
""")


def test_a_key_that_is_no_text(refused: Shown) -> None:
    body = """\
devices:
  ? [cpu0]
  : {cpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: a key must be plain text
hint:  put quotes around a name that has brackets or braces\
""")


def test_an_alias_that_holds_itself(refused: Shown) -> None:
    body = """\
devices: &d
  cpu0: *d
"""
    assert refused(body) == snapshot("""\
error: s.yaml:3: the text unfolds without end
hint:  write the entries out, without & and *\
""")


def test_an_unknown_policy_word(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null}
policies: {iommu: enabled}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'iommu' must be 'off', 'passthrough', 'translate', not 'enabled'
hint:  it is the IOMMU mode: off, passthrough or translate; leave it out if nobody knows it\
""")


def test_an_unknown_raid_level(refused: Shown) -> None:
    body = """\
devices:
  s0: {ssd: null}
volumes:
  v: {raid: 6, drives: s0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: 'raid' must be 0, 5 or 10, not '6'
hint:  it is the RAID level: 0, 5 or 10\
""")


def test_what_manuals_call_a_link_between_sockets(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
links:
  - {from: cpu0, to: cpu1, upi: 4}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: unknown key 'upi' in a link
hint:  write socket: with the number of links between the two CPUs\
""")


def test_a_card_that_the_catalogue_lacks(refused: Shown) -> None:
    body = """\
devices:
  nic0: {nic: Chelsio T6}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: unknown nic part 'Chelsio T6'
hint:  lanewise parts list --kind nic has the names; write null, or add it: \
lanewise parts template nic NAME -o new.yaml, and parts: [new.yaml] at the top\
""")


def test_a_cpu_of_which_only_the_maker_is_known(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: Intel Xeon}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: unknown cpu part 'Intel Xeon'
hint:  of a maker alone write the generation that its slots tell: skylake-sp (Gen3), ice-lake-sp (Gen4), \
sapphire-rapids (Gen5)\
""")
