"""`lanewise predict --load` as text: the time of each loader, what limits it, and what each stage would pass."""

from __future__ import annotations

from lanewise import units
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, number_columns, render_table
from lanewise.report.words import NONE, clock, heading, plural
from lanewise.weights.prediction import LoadLimit, ModelLoad, ModelLoadPrediction


def render_model_load(prediction: ModelLoadPrediction, screen: Screen = PLAIN) -> str:
    """One line a loader, what limits the first, then where the figures come from."""
    notes = Footnotes()
    stages = [limit for limit in LoadLimit if any(limit in load.stages for load in prediction.loads)]
    columns = [
        Column("loader"), *number_columns("time"), Column("interval", drop_order=1), Column("GB/s", number=True),
        Column("limit"), *(Column(str(stage), number=True, drop_order=2 + i) for i, stage in enumerate(stages)),
        Column("source"),
    ]  # fmt: skip
    table = Table(columns, [_line(load, stages, notes) for load in prediction.loads])
    advice = [screen.wrap(_advice(load), indent=2) for load in prediction.loads]
    return "\n".join([
        heading(prediction.plan.system), screen.wrap(_question(prediction), indent=2), render_table(table, screen), "",
        "columns after limit: GB/s of the model that each stage passes", *dict.fromkeys(advice), notes.render(screen),
    ])  # fmt: skip


def _question(prediction: ModelLoadPrediction) -> str:
    plan = prediction.plan
    source = plan.source
    origin = source.name or f"storage of {units.readable(source.rate, 'B/s', 4)}"
    targets = plan.targets
    ends = targets[0] if len(targets) == 1 else f"{plural(len(targets), 'GPU')} ({targets[0]} to {targets[-1]})"
    how = ""
    if len(targets) > 1:
        how = ", each gets its part"
        if plan.replicated:
            how = ", each gets all of it" + (" and reads a part" if plan.spread else "")
    state = "from the page cache" if any(load.warm for load in prediction.loads) else f"from {origin}, cold"
    return f"{units.show(plan.size, 'GB')} {state}, to {ends}{how}"


def _line(load: ModelLoad, stages: list[LoadLimit], notes: Footnotes) -> tuple[str, ...]:
    loader = f"{load.loader.title} ({load.loader.version}): {load.loader.source}"
    limiting = load.stages.get(load.limit)
    sources = [] if limiting is None else [text for text in limiting.rests_on if text != load.loader.source]
    marks = notes.mark([loader, *sources])
    passed = [
        units.number(load.stages[stage].rate.value / 1e9, 3) if stage in load.stages else NONE for stage in stages
    ]
    return (
        load.loader.name, clock(load.time), f"{clock(load.low)} to {clock(load.high)}",
        units.number(load.rate / 1e9, 3), str(load.limit), *passed, marks,
    )  # fmt: skip


def _advice(load: ModelLoad) -> str:
    if load.limit is LoadLimit.START:
        return f"{load.limit}: what a load takes that has nothing to read"
    stage = load.stages[load.limit]
    if load.limit is LoadLimit.STORAGE and stage.doubt:
        known = "name the drive's part, or measure (lanewise measure storage FILE) and write --from '3 GB/s'"
        return f"{load.limit}: {stage.detail}; {stage.doubt}: {known}"
    return f"{load.limit}: {stage.detail}{f' ({stage.doubt})' if stage.doubt else ''}"
