"""How wide text runs in a drawing: advance widths of Arial, with a margin for fonts that stand in for it."""

from __future__ import annotations

# Advance widths in thousandths of the font size (Arial, and Liberation Sans, which has the same metrics).
_NARROW = {
    **dict.fromkeys("ijl|'", 222),
    **dict.fromkeys("fIt!,.:;/\\ []()`", 280),
    **dict.fromkeys("r-{}", 333),
}
_WIDE = {**dict.fromkeys("mM", 833), **dict.fromkeys("wW%@", 890), **dict.fromkeys("ABEKPSVXY&", 667)}
_MORE = {
    **dict.fromkeys("CDHNRUGOQ", 750),
    **dict.fromkeys("ckxyzsvJ", 500),
    **dict.fromkeys("→←↓↑↔×+=<>~", 600),
}
_ADVANCE = {**_NARROW, **_WIDE, **_MORE}
_MARGIN = 1.06


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of one line of text in px at a font size in px, on the safe side."""
    units = sum(_ADVANCE.get(letter, 560) for letter in text)
    return units / 1000 * size * _MARGIN * (1.06 if bold else 1.0)


def clip(text: str, size: float, width: float, bold: bool = False) -> str:
    """The text, cut with an ellipsis where it would run over `width` px."""
    if text_width(text, size, bold) <= width:
        return text
    while text and text_width(text + "…", size, bold) > width:
        text = text[:-1]
    return text.rstrip() + "…" if text else ""


def wrap(text: str, size: float, width: float, lines: int) -> list[str]:
    """The text broken at spaces into at most `lines` lines of `width` px, the last one clipped."""
    out: list[str] = []
    words = text.split()
    while words and len(out) < lines:
        line = words.pop(0)
        while words and text_width(f"{line} {words[0]}", size) <= width:
            line = f"{line} {words.pop(0)}"
        out.append(line)
    if words and out:
        out[-1] = " ".join([out[-1], *words])
    return [clip(line, size, width) for line in out]


def cut(text: str, size: float, width: float, lines: int) -> bool:
    """Whether `wrap` cannot show all of the text."""
    return any(line.endswith("…") for line in wrap(text, size, width, lines))
