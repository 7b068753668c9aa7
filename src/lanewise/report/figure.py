"""matplotlib figures as small static SVG, and what all of them share: colours, frames, axes, notes and legends.

matplotlib is imported on first use. Text stays text, laid out by the metrics of matplotlib's DejaVu Sans
(wider than what browsers will show, so nothing runs over); the output holds no date and no random id.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from lanewise.errors import import_extra

# Okabe and Ito's colours, which colour-blind readers can tell apart, without yellow (too pale) and black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FONTS = "Helvetica Neue, Arial, Liberation Sans, sans-serif"
# A page changes these four by their attributes where it is read in the dark (page.css).
INK, SOFT, RULE, PAPER = "#1c2127", "#5b6570", "#d5dae0", "#fefefe"
SMALL = 8.2  # pt: letters of legends and notes


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


def import_charts() -> Any:
    """The module matplotlib; MissingDependency where it is not installed."""
    return import_extra("matplotlib", "report", "charts need matplotlib")


def painted(size: tuple[float, float], label: str, salt: str, paint: Callable[[Any], None]) -> str:
    """What `paint` draws on a figure of `size` inches, as an <svg> element that is read out as `label`.

    `salt` keeps the ids of several charts on a page apart. MissingDependency if matplotlib is not installed.
    """
    matplotlib = import_charts()
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "DejaVu Sans", "font.size": 9.0,
        "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": SOFT, "xtick.color": SOFT,
        "ytick.color": SOFT, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "hatch.linewidth": 0.8,
        "axes.linewidth": 0.8, "path.simplify": True, "axes.unicode_minus": True, "text.parse_math": False,
    }  # fmt: skip
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=size, facecolor="none")
        FigureCanvasSVG(figure)
        paint(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _clean(buffer.getvalue(), label)


def _clean(svg: str, label: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    # matplotlib's own style sheet says `*`, which would reach the whole page.
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[\w.]+_\d+"', "", svg)  # the names of its groups, the same in every chart
    svg = re.sub(r' style="([^"]*)"', lambda style: _attributes(style[1]), svg)
    svg = re.sub(r"\n\s*", "\n", svg)
    # A hundredth of a point is finer than any screen; six decimals double the page.
    svg = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    svg = svg.replace("<g>\n<text", "<g><text")
    root = f'<svg class="chart" role="img" font-family="{FONTS}" stroke-linejoin="round" aria-label={quoteattr(label)} '
    return svg.replace("<svg ", root, 1).strip()


def _attributes(style: str) -> str:
    """A style as presentation attributes, which any viewer reads and a page may override."""
    pairs = [declaration.split(": ", 1) for declaration in style.split("; ") if declaration]
    return "".join(f' {key}="{value}"' for key, value in pairs if key != "font-family")


def frame(size: tuple[float, float], left: float, right: float, top: float, bottom: float) -> tuple[float, ...]:
    """Margins in inches as the fractions of a figure that axes take."""
    width, height = size
    return (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)


def dress(axes: Any, x_label: str = "", grid: str = "y") -> None:
    """Axes without a box around them, with thin rules across `grid`."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel(x_label, labelpad=4)
    if grid:
        axes.grid(axis=grid, color=RULE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, width=0.8)


def log_axis(axes: Any, steps: Sequence[float], form: str) -> None:
    """Ticks of a logarithmic y axis at these multiples of powers of ten, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.yaxis.set_major_locator(LogLocator(base=10, subs=steps, numticks=30))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,{form}}"))


def quantity(axes: Any, text: str, ha: str = "center", shift: tuple[float, float] = (0, 8)) -> None:
    """The quantity of the y axis above it, level and readable, instead of turned on its side."""
    note(axes, text, (0, 1), shift, ha, "bottom", axes.transAxes, size=9.0)


def note(
    axes: Any, text: str, at: tuple[float, float], off: tuple[float, float], ha: str, va: str, transform: Any,
    size: float = 8.4,
) -> None:  # fmt: skip
    """A text `off` points from a place."""
    axes.annotate(text, xy=at, xycoords=transform, xytext=off, textcoords="offset points", ha=ha, va=va, fontsize=size,
                  color=INK, annotation_clip=False, zorder=6)  # fmt: skip


def legend(figure: Any, keys: Sequence[Any], at: tuple[float, float] = (1.0, 1.0), corner: str = "upper right") -> None:
    """A line of keys above the axes, where it can cover nothing."""
    if keys:
        figure.legend(handles=keys, loc=corner, bbox_to_anchor=at, ncols=len(keys), frameon=False, fontsize=SMALL,
                      handlelength=1.6, handletextpad=0.5, columnspacing=1.3, borderaxespad=0.2)  # fmt: skip
