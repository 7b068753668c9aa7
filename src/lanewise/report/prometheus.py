"""Prometheus' text format, for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def family(metric: str, help: str, values: Iterable[tuple[Mapping[str, str], float]], kind: str = "gauge") -> str:
    """One metric with its help, its kind (gauge or counter) and its series: labels and value of each."""
    lines = [f"# HELP {metric} {help}", f"# TYPE {metric} {kind}"]
    for labels, value in values:
        label_text = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{metric}{{{label_text}}} {value!r}" if label_text else f"{metric} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
