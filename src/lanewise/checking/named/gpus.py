"""GPUs that a text names and the catalogue does not have."""

from __future__ import annotations

import re

from lanewise.catalog import Catalog
from lanewise.checking.named.abilities import ability, part_of_title
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts


def not_in_the_catalogue(row: Observation, posted: PostedFacts, catalog: Catalog) -> str:
    """The names that the text gives GPUs of a row without a part of that name, in quotes."""
    gpus = dict.fromkeys(re.findall(r"\bgpu\d*\b", row.how.get("flows", row.flow)))
    titles = dict.fromkeys(title for gpu in gpus if (title := posted.title(gpu)))
    unknown = [title for title in titles if ability(title, catalog) is None and part_of_title(title, catalog) is None]
    return ", ".join(f"'{title}'" for title in unknown)
