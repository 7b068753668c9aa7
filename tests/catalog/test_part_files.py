"""Part files: what is read, what `extends` does, and how each mistake is reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.catalog import KEYS, KINDS, Catalog, Figure, Part, builtin, read_parts, write_parts
from lanewise.catalog.keys import BASES, TEXT, keys_of
from lanewise.errors import Contradiction, FormatError, InputError, UnknownName


def one_gpu(figures: str, head: str = "kind: gpu") -> str:
    """A part file of one part `x` with these lines in its `figures`."""
    body = "\n".join(f"      {line}" for line in figures.strip().splitlines())
    return f"parts:\n  - part: x\n    {head}\n    figures:\n{body}\n"


def test_a_figure_carries_value_unit_source_condition_and_basis() -> None:
    text = one_gpu('engine.h2d.gen4: {value: 25.1 GB/s, source: my bench, condition: "pinned", basis: calibrated}')
    assert read_parts(text, "mine.yaml").get("X").figure("engine.h2d.gen4") == Figure(
        25.1e9, "B/s", "my bench", "pinned", "calibrated"
    )


def test_a_figure_names_the_machines_that_it_was_measured_on_and_can_be_left_out_for_one_of_them() -> None:
    text = """
parts:
  - part: x
    kind: gpu
    from:
      - source: two blogs
        machines: [alpha, beta]
        figures:
          engine.h2d.gen4: 25 GB/s
          engine.d2h.gen4: {value: 26 GB/s, machines: [beta]}
  - {part: y, extends: x}
  - part: z
    extends: x
    figures: {engine.h2d.gen4: {value: 27 GB/s, source: one blog, machines: [gamma]}}
"""
    catalog = read_parts(text, "mine.yaml")
    figures = catalog.get("x").figures
    assert [figures[key].machines for key in sorted(figures)] == [("beta",), ("alpha", "beta")]
    left = catalog.without_machine("alpha")
    for name in ("x", "y"):
        assert left.get(name).number("engine.h2d.gen4") is None
        assert left.get(name).number("engine.d2h.gen4") == 26e9
    assert "alpha" in left.get("x").figure("engine.h2d.gen4").source
    assert catalog.without_machine("gamma").get("z").number("engine.h2d.gen4") == 25e9  # the inherited one
    assert catalog.without_machine("delta") is catalog


SEVERAL = """
parts:
  - part: x
    kind: cpu
    from:
      - source: three logs
        basis: calibrated
        figures: {intersocket.link_rate: {measured: {alpha: 36 GB/s, beta: 56 GB/s, gamma: 50 GB/s}, note: one way}}
"""


def test_a_figure_of_several_machines_is_their_median_and_without_one_that_of_the_others() -> None:
    def known(catalog: Catalog) -> tuple[object, ...]:
        figure = catalog.get("x").figure("intersocket.link_rate")
        return figure.value, figure.low, figure.high, figure.machines, figure.condition

    catalog = read_parts(SEVERAL, "mine.yaml")
    assert known(catalog) == (50e9, 36e9, 56e9, ("alpha", "beta", "gamma"), "one way")
    assert known(catalog.without_machine("gamma")) == (46e9, 36e9, 56e9, ("alpha", "beta"), "one way")
    left = catalog.without_machine("alpha").without_machine("beta").without_machine("gamma")
    assert left.get("x").number("intersocket.link_rate") is None
    assert read_parts(write_parts(catalog), "again.yaml") == catalog


def test_what_tenants_of_a_socket_got_counts_on_shared_sockets_and_elsewhere_only_without_a_whole_one() -> None:
    text = SEVERAL.replace("{measured: {alpha:", "{measured: {whole: 60 GB/s}, measured_shared: {alpha:")
    catalog = read_parts(text, "mine.yaml")

    def values(known: Catalog) -> tuple[object, object]:
        part, key = known.get("x"), "intersocket.link_rate"
        return part.number(key), part.on_shared_socket.number(key)

    assert values(catalog) == (60e9, 50e9)
    on_shared = catalog.get("x").on_shared_socket.figure("intersocket.link_rate")
    assert on_shared.condition == "one way; with other tenants on the socket"
    assert catalog.get("x").figure("intersocket.link_rate").machines == ("whole", "alpha", "beta", "gamma")
    assert values(catalog.without_machine("whole")) == (56e9, 50e9)  # the best that a tenant got
    assert values(catalog.without_machine("beta")) == (60e9, 43e9)
    alone = catalog.without_machine("alpha").without_machine("beta").without_machine("gamma")
    assert values(alone) == (60e9, 60e9)
    assert read_parts(write_parts(catalog), "again.yaml") == catalog
    assert read_parts(SEVERAL, "mine.yaml").get("x").on_shared_socket == read_parts(SEVERAL, "mine.yaml").get("x")


def test_a_word_that_several_machines_showed_stays_without_one_of_them() -> None:
    text = """
parts:
  - part: new
    kind: gpu
    title: A GPU
    from:
      - {source: two logs, basis: calibrated, machines: [alpha, beta], figures: {staging.port: in turns}}
"""
    catalog = read_parts(text, "mine.yaml")
    assert catalog.without_machine("alpha").get("new").text("staging.port") == "in turns"
    assert catalog.without_machine("alpha").without_machine("beta").get("new").text("staging.port") is None


@pytest.mark.parametrize("entries", ["{}", "{alpha: null}", "3 GB/s"])
def test_what_machines_measured_is_a_number_of_each(entries: str) -> None:
    text = re.sub(r"measured: {.*?}", f"measured: {entries}", SEVERAL)
    with pytest.raises(FormatError) as caught:
        read_parts(text, "mine.yaml")
    assert str(caught.value.location) == "mine.yaml:8"


def test_a_figure_left_out_gives_way_to_an_inherited_one_only_where_the_specification_is_the_same() -> None:
    text = """
parts:
  - part: old
    kind: cpu
    figures:
      intersocket.raw: {value: 32 GB/s, source: data sheet}
      intersocket.link_rate: {value: 22 GB/s, source: blog, basis: calibrated}
  - part: new
    extends: old
    figures:
      intersocket.raw: {value: 64 GB/s, source: data sheet}
      intersocket.link_rate: {value: 40 GB/s, source: blog, basis: calibrated, machines: [alpha]}
  - part: newer
    extends: new
    figures: {intersocket.link_rate: {value: 50 GB/s, source: blog, basis: calibrated, machines: [beta]}}
"""
    catalog = read_parts(text, "mine.yaml")
    assert catalog.without_machine("alpha").get("new").number("intersocket.link_rate") is None
    assert catalog.without_machine("beta").get("newer").number("intersocket.link_rate") == 40e9


def test_a_share_of_the_memory_left_out_gives_way_to_an_inherited_one_whatever_the_memory() -> None:
    text = """
parts:
  - part: old
    kind: cpu
    figures:
      memory.rate: {value: 512 GB/s, source: data sheet}
      memory.dma_writes: {value: 0.73, source: blog, basis: calibrated}
  - part: new
    extends: old
    figures:
      memory.rate: {value: 384 GB/s, source: data sheet}
      memory.dma_writes: {value: 0.92, source: blog, basis: calibrated, machines: [alpha]}
"""
    assert read_parts(text, "mine.yaml").without_machine("alpha").get("new").number("memory.dma_writes") == 0.73


def test_a_block_lends_its_source_and_a_figure_may_overrule_it() -> None:
    text = """
parts:
  - part: x
    kind: gpu
    from:
      - source: data sheet
        condition: new
        figures:
          pcie.gen: 4
          memory.rate: {value: 300 GB/s, source: me, basis: calibrated}
"""
    part = read_parts(text, "mine.yaml").get("x")
    assert part.figure("pcie.gen") == Figure(4.0, "1", "data sheet", "new", "physics")
    assert part.figure("memory.rate") == Figure(300e9, "B/s", "me", "new", "calibrated")


def test_a_figure_has_a_range_and_the_part_it_was_measured_on() -> None:
    text = """
parts:
  - part: x
    kind: gpu
    from:
      - source: me
        basis: calibrated
        carried_from: y
        figures:
          engine.h2d.gen4: {value: 26 GB/s, low: 24 GB/s, high: 27 GB/s}
"""
    known = read_parts(text, "mine.yaml").get("x").figure("engine.h2d.gen4")
    assert (known.low, known.high, known.carried_from) == (24e9, 27e9, "y")


def test_a_note_is_added_to_the_condition_of_the_block() -> None:
    text = """
parts:
  - part: x
    kind: gpu
    from:
      - source: me
        condition: near
        figures:
          pcie.gen: {value: 4, note: cold}
          pcie.lanes: {value: 16, condition: far, note: cold}
    figures:
      memory.rate: {value: 300 GB/s, source: me, note: cold}
"""
    part = read_parts(text, "mine.yaml").get("x")
    seen = [part.figure(key).condition for key in ("pcie.gen", "pcie.lanes", "memory.rate")]
    assert seen == ["near; cold", "far; cold", "cold"]


def test_null_is_unknown_and_keeps_its_reason() -> None:
    part = read_parts(one_gpu("engine.h2d.gen4: {value: null, source: nobody measured it}"), "f").get("x")
    assert part.number("engine.h2d.gen4") is None
    assert part.figure("engine.h2d.gen4").source == "nobody measured it"


def test_a_legal_key_that_is_not_stated_is_unknown() -> None:
    part = read_parts(one_gpu("pcie.gen: {value: 4, source: s}"), "f").get("x")
    assert part.figure("memory.rate") == Figure(None, "B/s", "not in the catalogue")


def test_an_illegal_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        builtin().get("l40s").figure("engine.h2d.gen7")
    assert "engine.h2d.gen" in caught.value.hint
    with pytest.raises(UnknownName, match=r"gpu figure 'net\.rate'"):
        builtin().get("l40s").number("net.rate")


def test_a_word_is_not_a_number() -> None:
    gpu = builtin().get("h200")
    assert gpu.text("nvlink.part") == "nvlink4"
    with pytest.raises(FormatError, match="not a number"):
        gpu.number("nvlink.part")
    with pytest.raises(FormatError, match="not a word"):
        gpu.text("pcie.gen")


def test_yes_and_no_need_no_quotes() -> None:
    assert read_parts(one_gpu("bar.above_4g: {value: no, source: s}"), "f").get("x").text("bar.above_4g") == "no"


def test_extends_takes_all_figures_and_overrules_some() -> None:
    text = one_gpu("engine.h2d.gen4: {value: 26 GB/s, source: me, basis: calibrated}", "extends: l40s")
    part = read_parts(text, "mine.yaml").get("x")
    assert part.kind == "gpu"
    assert part.aliases == ()
    assert part.number("engine.h2d.gen4") == 26e9
    assert part.figure("memory.rate") == builtin().get("l40s").figure("memory.rate")


def test_what_was_measured_on_an_extended_part_is_carried_over_unless_peers_alone_differ() -> None:
    text = """
parts:
  - part: card
    kind: gpu
    figures:
      engine.h2d.gen4: {value: 20 GB/s, source: me, basis: calibrated}
      pcie.gen: {value: 4, source: me}
  - {part: more-memory, extends: card, figures: {memory.size: {value: 48 GiB, source: me}}}
  - {part: patched, extends: card, figures: {peer.access: {value: "yes", source: me}}}
"""
    catalog = read_parts(text, "mine.yaml")
    carried = {name: catalog.get(name).figure("engine.h2d.gen4").carried_from for name in catalog.names()}
    assert carried == {"card": "", "more-memory": "card", "patched": ""}
    assert catalog.get("more-memory").figure("pcie.gen").carried_from == ""


def test_a_part_that_extends_its_own_name_revises_the_shipped_one() -> None:
    text = "parts:\n  - part: K40\n    extends: k40\n    figures:\n      pcie.tags: {value: 32, source: me}\n"
    merged = builtin().merge(read_parts(text, "mine.yaml"))
    assert merged.names() == builtin().names()
    assert merged.get("tesla-k40m").number("pcie.tags") == 32


def test_extends_may_name_a_part_further_down() -> None:
    text = """
parts:
  - {part: b, extends: a}
  - part: a
    kind: ssd
    figures: {read.rate: {value: 3 GB/s, source: s}}
"""
    assert read_parts(text, "f").get("b").number("read.rate") == 3e9


def test_with_part_replaces_and_with_figure_leaves_the_first_untouched() -> None:
    part = builtin().get("l40s")
    fitted = part.with_figure("engine.h2d.gen4", Figure(26e9, "B/s", "my box", "", "fitted"))
    catalog = builtin().with_part(fitted)
    assert catalog.get("l40s").number("engine.h2d.gen4") == 26e9
    assert builtin().get("l40s").number("engine.h2d.gen4") == 26.8e9


def test_with_figure_checks_the_unit_and_the_key() -> None:
    with pytest.raises(FormatError, match="it must be in B/s"):
        builtin().get("l40s").with_figure("engine.h2d.gen4", Figure(1.0, "s", "me"))
    with pytest.raises(UnknownName):
        builtin().get("l40s").with_figure("read.rate", Figure(1.0, "B/s", "me"))


def test_an_alias_that_another_part_has_is_refused_on_merging() -> None:
    with pytest.raises(Contradiction, match="both called"):
        builtin().with_part(Part("mine", "gpu", "Mine", ("l40s",)))


HEAD = "parts:\n  - part: x\n    kind: gpu\n"


def figure(line: str) -> str:
    """A part file whose line 5 is this figure."""
    return f"{HEAD}    figures:\n      {line}\n"


def block(line: str) -> str:
    """A part file whose line 5 begins a `from` block with this entry."""
    return f"{HEAD}    from:\n      - {line}\n"


TWICE = figure("pcie.gen: {value: 4, source: s}") + "    from: [{source: s, figures: {pcie.gen: 5}}]\n"
CIRCLE = "parts:\n  - {part: a, extends: b}\n  - {part: b, extends: a}\n"
NAMESAKE = HEAD + "  - {part: y, kind: gpu, aliases: [x]}\n"
BAD = {
    "an empty file": ("", 1, FormatError, "holds no parts", "parts:"),
    "no parts": ("{}", 1, FormatError, "holds no parts", "parts:"),
    "a list at the top": ("- a", 1, FormatError, "name: value", ""),
    "an unknown entry at the top": ("part: []", 1, UnknownName, "unknown key 'part' in the file", "parts"),
    "parts that are no list": ("parts: 3", 1, FormatError, "must be a list", "dash"),
    "a cut-off file": (HEAD + "    figures: {pcie.gen: {value: 4", 4, FormatError, "not YAML", "cut off"),
    "a bad indent": (HEAD + "   title: x\n", 4, FormatError, "not YAML", "indent"),
    "a control character": (HEAD + "    title: a\x00b\n", 0, FormatError, "not YAML", ""),
    "no name": ("parts:\n  - kind: gpu\n", 2, FormatError, "no name", "part: <name>"),
    "no kind": ("parts:\n  - part: x\n", 2, FormatError, "no kind", "gpu"),
    "a wrong kind": ("parts:\n  - {part: x, kind: gpux}\n", 2, UnknownName, "kind of part 'gpux'", "gpu"),
    "an unknown entry": (HEAD + "    alias: [y]\n", 4, UnknownName, "key 'alias' in a part", "aliases"),
    "an entry twice": (HEAD + "    kind: cpu\n", 4, Contradiction, "is given twice", "keep one"),
    "a wrong key": (figure("pcie.gn: {value: 4, source: s}"), 5, UnknownName, "pcie.gn", "pcie.gen"),
    "another kind's key": (figure("net.rate: {value: 4, source: s}"), 5, UnknownName, "net.rate", ""),
    "a wrong unit": (
        figure("memory.rate: {value: 3 GB, source: s}"),
        5,
        FormatError,
        "'3 GB' is in GB",
        "GB/s",
    ),
    "an unknown unit": (
        figure("memory.rate: {value: 3 GX, source: s}"),
        5,
        FormatError,
        "unit 'GX'",
        "units:",
    ),
    "no number": (figure("pcie.gen: {value: four, source: s}"), 5, FormatError, "not a number", "number"),
    "a negative number": (figure("pcie.gen: {value: -4, source: s}"), 5, FormatError, "not negative", ""),
    "an infinite number": (figure("pcie.gen: {value: 1e999, source: s}"), 5, FormatError, "finite", ""),
    "a rate of zero": (
        figure("engine.h2d.gen4: {value: 0 GB/s, source: s}"),
        5,
        FormatError,
        "'engine.h2d.gen4' cannot be 0",
        "write null and say why",
    ),
    "a size of zero": (figure("pcie.max_payload: {value: 0, source: s}"), 5, FormatError, "cannot be 0", "null"),
    "no lanes": (figure("pcie.lanes: {value: 0, source: s}"), 5, FormatError, "cannot be 0", "null"),
    "no tags": (figure("pcie.tags: {value: 0, source: s}"), 5, FormatError, "cannot be 0", "null"),
    "no queries": (figure("service.x.server: {value: 0, source: s}"), 5, FormatError, "cannot be 0", "null"),
    "no source": (figure("pcie.gen: 4"), 5, FormatError, "has no source", "source:"),
    "a blank source": (
        figure("pcie.gen: {value: 4, source: ' '}"),
        5,
        FormatError,
        "must be a text",
        "source",
    ),
    "no value": (figure("pcie.gen: {source: s}"), 5, FormatError, "has no value", "null"),
    "a wrong word": (
        figure("bar.above_4g: {value: x, source: s}"),
        5,
        FormatError,
        "cannot be 'x'",
        "yes, no",
    ),
    "a wrong basis": (figure("pcie.gen: {value: 4, basis: x}"), 5, UnknownName, "basis 'x'", "physics"),
    "a range beside its value": (
        figure("memory.rate: {value: 3 GB/s, low: 4 GB/s, source: s}"),
        5,
        FormatError,
        "does not hold its value",
        "at most the value",
    ),
    "a range of an unknown": (
        figure("memory.rate: {value: null, high: 4 GB/s, source: s}"),
        5,
        FormatError,
        "has a range but no number",
        "value:",
    ),
    "a range of a word": (
        figure("bar.above_4g: {value: yes, low: no, source: s}"),
        5,
        FormatError,
        "a word has no range",
        "leave",
    ),
    "a misspelt field": (figure("pcie.gen: {value: 4, sorce: s}"), 5, UnknownName, "'sorce'", "source"),
    "a block without source": (block("figures: {pcie.gen: 4}"), 5, FormatError, "no source", "source"),
    "a block without figures": (block("source: s"), 5, FormatError, "no figures", "figures"),
    "a figure twice": (TWICE, 6, Contradiction, "is given twice in this part, first in line 5", "keep"),
    "a part twice": (
        HEAD + "  - {part: X, kind: gpu}\n",
        4,
        Contradiction,
        "part 'x' (bad.yaml:2)",
        "rename",
    ),
    "an alias twice": (NAMESAKE, 4, Contradiction, "'x' is taken", "rename"),
    "an unknown parent": (HEAD + "    extends: l40z\n", 2, UnknownName, "unknown part 'l40z'", "l40s"),
    "a parent of another kind": (HEAD + "    extends: rome\n", 2, Contradiction, "a gpu but extends", "kind"),
    "a circle": (CIRCLE, 2, Contradiction, "a -> b -> a", "extends"),
}


@pytest.mark.parametrize(("text", "line", "kind", "cause", "hint"), BAD.values(), ids=BAD)
def test_a_mistake_is_reported_with_file_line_cause_and_hint(
    text: str, line: int, kind: type[InputError], cause: str, hint: str
) -> None:
    with pytest.raises(kind) as caught:
        read_parts(text, "bad.yaml")
    error = caught.value
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("bad.yaml", line)
    assert cause in error.cause
    assert hint in error.hint


def test_a_time_may_be_zero_and_an_unknown_rate_is_null() -> None:
    text = figure("latency.chase_peer: {value: 0 s, source: s}\n      staging.rate: {value: null, source: unknown}")
    part = read_parts(text, "good.yaml").get("x")
    assert part.number("latency.chase_peer") == 0
    assert part.number("staging.rate") is None


def test_the_shipped_catalogue_survives_writing_and_reading() -> None:
    assert read_parts(write_parts(builtin()), "again.yaml") == builtin()


DOCS = Path(__file__).parents[2] / "docs" / "reference" / "catalogue.md"


def test_the_reference_page_lists_every_key() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert not [key for key in KEYS if f"| `{re.sub('gen[1-6]$', 'genN', key)}` |" not in page]


def test_the_examples_on_the_reference_page_read() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    assert len(examples) == 3
    for text in examples:
        assert builtin().merge(read_parts(text, "catalogue.md")).names()


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)


@st.composite
def figures_of(draw: st.DrawFn, kind: str) -> dict[str, Figure]:
    """Some figures of a part of this kind, known and unknown."""
    found: dict[str, Figure] = {}
    for name in draw(st.lists(st.sampled_from(keys_of(kind)), max_size=6, unique=True)):
        key = KEYS[name]
        words = st.sampled_from(key.choices) if key.choices else WORDS
        value = draw(words) if key.unit == TEXT else draw(st.floats(1e-12, 1e18))
        known = value if draw(st.booleans()) else None
        low, high = (known / 2, known * 2) if isinstance(known, float) and draw(st.booleans()) else (None, None)
        words = st.just("") | WORDS
        found[name] = Figure(
            known, key.unit, draw(WORDS), draw(words), draw(st.sampled_from(BASES)),
            machines=tuple(draw(st.lists(WORDS, max_size=2, unique=True))),
            low=low, high=high, carried_from=draw(words),
        )  # fmt: skip
    return found


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """A few parts with names that do not clash."""
    names = draw(st.lists(WORDS, max_size=4, unique_by=lambda name: name.strip().casefold()))
    parts: dict[str, Part] = {}
    for name in names:
        kind = draw(st.sampled_from(KINDS))
        parts[name] = Part(name, kind, draw(WORDS), (), draw(figures_of(kind)))
    return Catalog(parts)


@given(catalogs())
def test_any_catalogue_survives_writing_and_reading(catalog: Catalog) -> None:
    assert read_parts(write_parts(catalog), "again.yaml") == catalog


def test_a_figure_without_a_unit_is_refused_with_the_unit_people_mean() -> None:
    figures = "engine.h2d.gen4: 25.4"
    head = "parts:\n  - part: mine\n    kind: gpu\n    title: mine\n    from:\n      - source: me\n"
    text = f"{head}        figures: {{{figures}}}\n"
    with pytest.raises(FormatError, match="has no unit") as caught:
        read_parts(text, "mine.yaml")
    assert caught.value.hint == "write the unit: 25.4 GB/s"
    assert str(caught.value.location) == "mine.yaml:7"
