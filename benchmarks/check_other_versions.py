"""Captured outputs of tools as other versions, options, pages and terminals give them: how many are read as before.

    PYTHONPATH=tests .venv/bin/python benchmarks/check_other_versions.py

Of each rewriting it counts the outputs that it changes by what is read of them; then how many outputs that end at some
character have other figures than the whole one, and how many figures made four times as large move another row or by
another factor. Readings are those of the program of this checkout.
"""

from __future__ import annotations

import random
import re
from collections import Counter

from readers.rewritings import HELD_OUT, REWRITINGS, compared, outputs, rows
from readers.tool_versions import VERSIONS

_CUTS, _FIGURES = 6, 4
_FIGURE = re.compile(r"(?<![\w.,:/\-])(\d+)\.(\d+)(?=[\s|)]|$)")


def cut_anywhere(texts: dict[str, str], chance: random.Random) -> Counter[str]:
    """What is read of texts that end at some character in their last three quarters."""
    kinds: Counter[str] = Counter()
    for text in texts.values():
        whole = rows(text)
        for _ in range(_CUTS):
            rest = rows(text[: chance.randrange(len(text) // 4, len(text))])
            kind = compared(whole, rest)
            if kind == "others" and not isinstance(rest, str) and not isinstance(whole, str):
                values = [row.value for row in whole]
                plain = rest[0].how.get("tool") == "plain text"
                known = all(row.value in values for row in rest)
                kind = "plain text" if plain else "figures by other names" if known else "other figures"
            kinds[kind] += 1
    return kinds


def scaled(texts: dict[str, str], chance: random.Random) -> Counter[str]:
    """What a figure does that is made four times as large: nothing, its row four times or a quarter, or more."""
    kinds: Counter[str] = Counter()
    for text in texts.values():
        before, figures = rows(text), [*_FIGURE.finditer(text)]
        if isinstance(before, str):
            continue
        for match in chance.sample(figures, min(_FIGURES, len(figures))):
            larger = f"{4 * float(match[0]):.{len(match[2])}f}"
            after = rows(text[: match.start()] + larger + text[match.end() :])
            if isinstance(after, str) or len(after) != len(before):
                kinds["another number of rows"] += 1
                continue
            pairs = ((a.value or 1, b.value or 0) for a, b in zip(before, after, strict=True) if a.value != b.value)
            factors = [b / a for a, b in pairs]
            whole = all(min(abs(factor / 4 - 1), abs(4 * factor - 1)) < 0.03 for factor in factors)
            kinds["no row" if not factors else "its row" if len(factors) == 1 and whole else "others"] += 1
    return kinds


def main() -> None:
    """Print a line for each rewriting, of the open outputs and of those held out, then the cuts and the figures."""
    for title, texts in (("open", outputs()), ("held out", outputs(HELD_OUT))):
        before = {name: rows(text) for name, text in texts.items()}
        print(f"{title}: {len(texts)} outputs; rewriting: changed by it, and what is read of these")
        for what, rewriting in {**REWRITINGS, **VERSIONS}.items():
            new = {name: rewritten for name, text in texts.items() if (rewritten := rewriting(text)) != text}
            kinds = Counter(compared(before[name], rows(text)) for name, text in new.items())
            if new:
                print(f"{what}: {len(new)}, {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}")
        print(f"cut anywhere: {dict(cut_anywhere(texts, random.Random(1)))}")
        print(f"a figure times four: {dict(scaled(texts, random.Random(2)))}")


if __name__ == "__main__":
    main()
