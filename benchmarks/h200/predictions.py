"""What the model says of a pair of H200, written to a file before anything is measured on such a machine.

    python benchmarks/h200/predictions.py [-o benchmarks/runs/DATE-h200-predictions.json]

The file is a run like any other: `lanewise compare` lays it beside a measured one. Scenarios and flows are called as
`lanewise measure gpu` calls them. The ready system h200-pair rests on figures published for such machines, so most
rows are calibrated; what is staged or both ways over NVLink is worked out from them.
"""

from __future__ import annotations

import argparse
from datetime import date
from typing import TYPE_CHECKING

import lanewise
from lanewise.api.provenance import now, version
from lanewise.perf.flow import parse_flows
from lanewise.perf.latency import latency
from lanewise.perf.predict import predict
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.run import Run
from lanewise.serving.simulation import COPY_SETUP

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEM = "h200-pair"
QUERY = 150_528  # bytes of one query of resnet50
BATCHES = (1, 8, 32, 128)
# Scenario, flows that run together, whether peers reach each other.
COPIES = (
    ("host_to_device_memcpy_ce", "host0->gpu0", True),
    ("device_to_host_memcpy_ce", "gpu0->host0", True),
    ("host_to_device_bidirectional_memcpy_ce", "host0->gpu0, gpu0->host0", True),
    ("host_to_all_memcpy_ce", "host0->gpu0, host0->gpu1", True),
    ("all_to_host_memcpy_ce", "gpu0->host0, gpu1->host0", True),
    ("device_to_device_memcpy_write_ce", "gpu0->gpu1", True),
    ("device_to_device_memcpy_read_ce", "gpu1->gpu0 read", True),
    ("device_to_device_bidirectional_memcpy_write_ce", "gpu0->gpu1, gpu1->gpu0", True),
    ("device_to_device_bidirectional_memcpy_read_ce", "gpu1->gpu0 read, gpu0->gpu1 read", True),
    ("device_to_device_memcpy_no_p2p", "gpu0->gpu1", False),
    ("device_to_device_bidirectional_memcpy_no_p2p", "gpu0->gpu1, gpu1->gpu0", False),
)
LAUNCHES = (("device_to_device_launch_latency", True), ("device_to_device_launch_latency_no_p2p", False))


def rows() -> Iterator[Observation]:
    """Every prediction, in the order in which it would be measured."""
    system = lanewise.load_system(SYSTEM)
    for scenario, text, p2p in COPIES:
        found = predict(system, parse_flows(text, p2p))
        how = {"flows": text, "p2p": "on" if p2p else "off"}
        for flow in found.rates:
            low, high = (None, None) if flow.low == flow.high else (flow.low, flow.high)
            yield Observation(
                scenario, flow.flow.name, "goodput", flow.rate, "GB/s", Source.PREDICTED, system=system.name,
                basis=Basis(flow.basis), limit=flow.limit, rests_on=flow.rests_on, low=low, high=high, how=how,
            )  # fmt: skip
    for scenario, p2p in LAUNCHES:
        small = latency(system, "gpu0", "gpu1", p2p)
        yield Observation(
            scenario, "gpu0->gpu1", "latency", small.api, "us", Source.PREDICTED,
            system=system.name, basis=Basis(small.basis), limit=small.limit, rests_on=small.rests_on, note=small.note,
            how={"flows": "gpu0->gpu1", "p2p": "on" if p2p else "off"},
        )  # fmt: skip
    yield from queries(predict(system, parse_flows("host0->gpu0")).rates[0].rate, system.name)


def queries(rate: float, system: str) -> Iterator[Observation]:
    """Scattered queries at `rate` B/s: one copy call each pays the set-up for each, one call for a batch only once."""
    rests_on = (f"{COPY_SETUP * 1e6:g} us to issue a copy (lanewise.serving.simulation)", f"{rate / 1e9:g} GB/s")
    for batch in BATCHES:
        for scenario, calls in (("queries_one_by_one", batch), ("queries_in_one_call", 1)):
            value = QUERY * batch / (calls * COPY_SETUP + QUERY * batch / rate)
            yield Observation(
                scenario, "host0->gpu0", "goodput", value, "GB/s", Source.PREDICTED, system=system,
                settings={"bytes": QUERY, "batch": batch}, basis=Basis.CALIBRATED, rests_on=rests_on,
                limit="copy set-up and copy engine", how={"flows": "host0->gpu0"},
            )  # fmt: skip


def main() -> None:
    """Write the file and print its rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", default=f"benchmarks/runs/{date.today()}-h200-predictions.json")
    path = parser.parse_args().output
    made = tuple(rows())
    command = "python benchmarks/h200/predictions.py"
    lanewise.save_run(Run((), now(), version(), command, {"system": SYSTEM}, rows=made), path)
    for row in made:
        value = "unknown" if row.value is None else f"{row.display(row.value):8.2f} {row.display_unit}"
        print(f"{row.scenario:48} {row.flow:14} {' '.join(f'{k}={v}' for k, v in row.settings.items()):22} {value}")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
