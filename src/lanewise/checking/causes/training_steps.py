"""Why steps of training wait for data: too few processes that load and decode, or what they read from."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.references.training_steps import waiting_share
from lanewise.checking.symptom import RowSymptom

_STEP = "raise the loader's processes (-j, num_workers) until steps no longer wait; nproc; top: are their cores busy?"


def waiting_for_data(symptom: RowSymptom) -> Iterator[Cause]:
    """Processes of the loader first: without a copy to the GPU in it, the time is theirs."""
    row = symptom.row
    if not row.how.get("waits"):
        return
    workers = row.settings.get("workers", 0)
    better = next((each.row for each in symptom.results
                   if each.row.settings.get("workers", 0) > workers > 0 and each.row.how.get("waits")
                   and waiting_share(each.row) < waiting_share(row) / 2), None)  # fmt: skip
    what = f"each step waits {row.how['waits']} for data: too few processes load and decode it"
    evidence = "the times of the steps"
    if better is not None:
        evidence += f"; with {better.settings['workers']} processes it waits {better.how['waits']}"
    yield Cause(("setting", "loader"), what, _STEP, evidence=evidence)
    what = "what the loader does to each sample, or where it reads from: decoding, small files, a shared file system"
    step = "run the loop on data that is in memory already; decode on the GPU, or pack small files"
    yield Cause(("software",), what, step, inconclusive=better is not None)
