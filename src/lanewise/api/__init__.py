"""Everything a user can do, as functions: the CLI's verbs under the same names, for Python programs and notebooks.

import lanewise
system = lanewise.load_system("composable-server-gen4", {"path": 4})
print(lanewise.predict(system, "host0->gpu0, host0->gpu1").total)

Where a function takes a system, the name of a ready one or the path of a file will do; likewise for a run.

Each is imported when it is first used: a verb loads what it needs, and `lanewise measure` no model of a fleet. So no
module here is called as a function is: importing it would put the module in the function's place.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of typing takes milliseconds to load
if TYPE_CHECKING:
    from lanewise.api.blocks import block_rows, kv_pieces, predict_blocks
    from lanewise.api.checking import as_checked_run, check, check_data, check_metrics, read_results
    from lanewise.api.collectives import collective_rows, nccl_topology, predict_collective
    from lanewise.api.director import backup_director, open_director, restore_director, serve_director
    from lanewise.api.discovery import capture, discover
    from lanewise.api.divisions import loadtest_divisions
    from lanewise.api.fleet import check_fleet, fleet_data, fleet_junit, fleet_metrics, fleet_page, plan_fleet
    from lanewise.api.history import add_to_history, drift, read_history
    from lanewise.api.host_calibration import calibrate_host
    from lanewise.api.loading import (
        load_catalog,
        load_run,
        load_study,
        load_system,
        load_workload,
        ready_studies,
        ready_systems,
        ready_workloads,
        system_of_options,
    )
    from lanewise.api.loadtest import (
        as_sweep_run,
        loadtest_peak,
        loadtest_run,
        loadtest_selftest,
        loadtest_sweep,
        loadtest_training,
        sweep_data,
    )
    from lanewise.api.measure import (
        measure_collectives,
        measure_gpu,
        measure_host,
        measure_kv,
        measure_load,
        measure_network,
        measure_storage,
    )
    from lanewise.api.model_load import load_rows, predict_load
    from lanewise.api.node import serve_node
    from lanewise.api.provenance import doctor
    from lanewise.api.runs import (
        as_measured_run,
        as_run,
        compare,
        compare_sources,
        compare_systems,
        render_report,
        save_run,
        study_accuracy,
    )
    from lanewise.api.scores import accuracy
    from lanewise.api.services import peak, predict_service, serve, simulate, trace
    from lanewise.api.studies import calibrate, new_study, run_studies
    from lanewise.api.sweep import predict_sweep
    from lanewise.api.systems import (
        all_routes,
        attach,
        class_matrix,
        detach,
        draw,
        finish_times,
        matrix,
        peers,
        plan,
        predict,
        predict_paths,
        route,
    )
    from lanewise.catalog import write_parts

# The functions of each module of this package; mypy reads them above.
_FUNCTIONS = {
    "lanewise.api.blocks": "block_rows kv_pieces predict_blocks",
    "lanewise.api.checking": "as_checked_run check check_data check_metrics read_results",
    "lanewise.api.collectives": "collective_rows nccl_topology predict_collective",
    "lanewise.api.director": "backup_director open_director restore_director serve_director",
    "lanewise.api.discovery": "capture discover",
    "lanewise.api.divisions": "loadtest_divisions",
    "lanewise.api.fleet": "check_fleet fleet_data fleet_junit fleet_metrics fleet_page plan_fleet",
    "lanewise.api.history": "add_to_history drift read_history",
    "lanewise.api.host_calibration": "calibrate_host",
    "lanewise.api.loading": (
        "load_catalog load_run load_study load_system load_workload ready_studies ready_systems "
        "ready_workloads system_of_options"
    ),
    "lanewise.api.loadtest": (
        "as_sweep_run loadtest_peak loadtest_run loadtest_selftest loadtest_sweep loadtest_training sweep_data"
    ),
    "lanewise.api.measure": (
        "measure_collectives measure_gpu measure_host measure_kv measure_load measure_network measure_storage"
    ),
    "lanewise.api.model_load": "load_rows predict_load",
    "lanewise.api.node": "serve_node",
    "lanewise.api.provenance": "doctor",
    "lanewise.api.runs": (
        "as_measured_run as_run compare compare_sources compare_systems render_report save_run study_accuracy"
    ),
    "lanewise.api.scores": "accuracy",
    "lanewise.api.services": "peak predict_service serve simulate trace",
    "lanewise.api.studies": "calibrate new_study run_studies",
    "lanewise.api.sweep": "predict_sweep",
    "lanewise.api.systems": (
        "all_routes attach class_matrix detach draw finish_times matrix peers plan predict predict_paths route"
    ),
    "lanewise.catalog": "write_parts",
}
_MODULE_OF = {name: module for module, names in _FUNCTIONS.items() for name in names.split()}

__all__ = [
    "accuracy",
    "add_to_history",
    "all_routes",
    "as_checked_run",
    "as_measured_run",
    "as_run",
    "as_sweep_run",
    "attach",
    "backup_director",
    "block_rows",
    "calibrate",
    "calibrate_host",
    "capture",
    "check",
    "check_data",
    "check_fleet",
    "check_metrics",
    "class_matrix",
    "collective_rows",
    "compare",
    "compare_sources",
    "compare_systems",
    "detach",
    "discover",
    "doctor",
    "draw",
    "drift",
    "finish_times",
    "fleet_data",
    "fleet_junit",
    "fleet_metrics",
    "fleet_page",
    "kv_pieces",
    "load_catalog",
    "load_rows",
    "load_run",
    "load_study",
    "load_system",
    "load_workload",
    "loadtest_divisions",
    "loadtest_peak",
    "loadtest_run",
    "loadtest_selftest",
    "loadtest_sweep",
    "loadtest_training",
    "matrix",
    "measure_collectives",
    "measure_gpu",
    "measure_host",
    "measure_kv",
    "measure_load",
    "measure_network",
    "measure_storage",
    "nccl_topology",
    "new_study",
    "open_director",
    "peak",
    "peers",
    "plan",
    "plan_fleet",
    "predict",
    "predict_blocks",
    "predict_collective",
    "predict_load",
    "predict_paths",
    "predict_service",
    "predict_sweep",
    "read_history",
    "read_results",
    "ready_studies",
    "ready_systems",
    "ready_workloads",
    "render_report",
    "restore_director",
    "route",
    "run_studies",
    "save_run",
    "serve",
    "serve_director",
    "serve_node",
    "simulate",
    "study_accuracy",
    "sweep_data",
    "system_of_options",
    "trace",
    "write_parts",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULE_OF:
        raise AttributeError(f"module 'lanewise.api' has no attribute '{name}'")
    function = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return function
