"""Measure, predict and compose the data paths that feed GPUs.

Every verb of the command line is a function here (docs/reference/api.md, help(lanewise.predict)):

systems   discover, capture, ready_systems, load_system, system_of_options, load_catalog, attach, detach, draw,
          nccl_topology
routes    route, all_routes, class_matrix, peers
speed     predict, predict_paths, predict_collective, collective_rows, predict_blocks, block_rows, kv_pieces,
          predict_load, load_rows, predict_sweep, finish_times, matrix, calibrate_host, serve
scores    accuracy
services  predict_service, simulate, peak, trace, ready_workloads, load_workload
plans     plan
studies   ready_studies, load_study, new_study, run_studies, calibrate, write_parts
measured  measure_host, measure_gpu, measure_collectives, measure_storage, measure_kv, measure_load,
          measure_network, as_measured_run, read_results, check, check_data, check_metrics, as_checked_run
runs      as_run, save_run, load_run, render_report, compare, compare_sources, compare_systems, study_accuracy
loads     loadtest_peak, loadtest_divisions, loadtest_run, loadtest_sweep, sweep_data, as_sweep_run,
          loadtest_training, loadtest_selftest, serve_node
director  open_director, serve_director, backup_director, restore_director
fleet     plan_fleet, check_fleet, fleet_data, fleet_metrics, fleet_junit, fleet_page, add_to_history, read_history,
          drift
machine   doctor
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of typing takes milliseconds to load
if TYPE_CHECKING:
    from typing import Any

    from lanewise.api import *  # noqa: F403


def __dir__() -> list[str]:
    from importlib import import_module

    return sorted({*globals(), *import_module("lanewise.api").__all__})


def __getattr__(name: str) -> Any:
    # Late, so that `import lanewise` costs nothing until a verb is used. `from lanewise import units` asks here
    # first as well, and api itself does so while it loads: names that are modules must not lead back to api.
    import sys
    from importlib import import_module
    from importlib.util import find_spec

    api = sys.modules.get("lanewise.api")
    if api is None and find_spec(f"lanewise.{name}") is None:
        api = import_module("lanewise.api")
    if api is not None and name in getattr(api, "__all__", ()):
        return getattr(api, name)
    raise AttributeError(f"module 'lanewise' has no attribute '{name}'")
