"""The part file to fill in."""

import re

import pytest

from lanewise.catalog import read_parts
from lanewise.catalog.keys import KINDS
from lanewise.catalog.template import part_template
from lanewise.errors import FormatError, UnknownName


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_reads_as_it_is_and_with_every_comment_taken_in(kind: str) -> None:
    text = part_template(kind, "new-part")
    part = read_parts(text, "new.yaml").get("new-part")
    assert part.kind == kind
    everything = read_parts(re.sub(r"(?m)^          # (?=\S+: )", "          ", text), "new.yaml").get("new-part")
    assert len(everything.figures) >= len(part.figures) > 0


def test_a_kind_or_a_name_that_cannot_be() -> None:
    with pytest.raises(UnknownName, match="kind of part 'tpu'"):
        part_template("tpu")
    with pytest.raises(FormatError, match="cannot be the name"):
        part_template("gpu", "a: b")
