"""Colours of cells: a perceptually even scale that colour-blind readers can follow, and what is legible on a colour."""

from __future__ import annotations

# Cividis (Nunez, Anderton, Renslow, PLOS ONE 13, 2018) at every sixteenth; straight lines between them lie within 1 %.
EVEN = (
    "#00224e", "#002e6a", "#1a386f", "#32436d", "#434e6c", "#535a6d", "#61656f", "#6f7073", "#7d7c78", "#8c8878",
    "#9b9476", "#aba072", "#bcae6c", "#cdbb63", "#dec958", "#f0d846", "#fee838",
)  # fmt: skip


def even(share: float) -> str:
    """The colour of a share 0..1 of the scale, dark to light."""
    at = min(1.0, max(0.0, share)) * (len(EVEN) - 1)
    below = min(int(at), len(EVEN) - 2)
    mixed = (
        round(low + (at - below) * (high - low))
        for low, high in zip(_parts(EVEN[below]), _parts(EVEN[below + 1]), strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


def on(colour: str) -> str:
    """Black or white, whichever reads better on a colour (WCAG's relative luminance)."""
    parts = [part / 255 for part in _parts(colour)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def _parts(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
