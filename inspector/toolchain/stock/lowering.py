"""Lowers exported programs with the package and writes the files of its own interface."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inspector.toolchain.stock.flows import flow_of, lowered_by
from inspector.toolchain.stock.package import StockError, part, part_or_none
from inspector.toolchain.stock.partitioners import make, takes
from inspector.toolchain.stock.partitioning import Partitioned, steered
from inspector.toolchain.stock.rules import StockRules
from inspector.worker.exporter import sentence_of, timed_stage

Say = Callable[..., None]
PROGRAM, RECORD = "model.pte", "model.etrecord"
_QUANTIZED = "kernels.quantized"  # registers the operators of quantized programs


class StockWriteError(Exception):
    """A disk that refuses."""


def lowered(
    programs: Mapping[str, Any],
    constants: Mapping[str, Any],
    job: Mapping[str, Any],
    notify: Say,
) -> tuple[Any, dict[str, Partitioned]]:
    """Return edge programs, delegated by a recipe, and the decisions of partitioners.

    Raises: StockError; errors of the package
    """
    exir = part("exir")
    part_or_none(_QUANTIZED)
    flow = flow_of(job)
    if flow is not None:
        return lowered_by(flow, programs, constants, job, notify)
    more = {"constant_methods": dict(constants)} if constants else {}
    found = {method: Partitioned() for method in programs}
    if not job["partitioners"]:
        with timed_stage(notify, "edge"):
            return _recorded(exir.to_edge, dict(programs), **more), found
    graphs = frozenset(id(program.graph) for program in programs.values())
    rules = StockRules(job["rules"], graphs)
    chosen = {
        method: [steered(one, rules, found[method], notify) for one in _partitioners(job, notify)]
        for method in programs
    }
    start = time.perf_counter()
    notify("stage", stage="edge", method="")
    lower = exir.to_edge_transform_and_lower
    edge = _recorded(lower, dict(programs), partitioner=chosen, **more)
    _report_stages(start, found, notify)
    return edge, found


def _partitioners(job: Mapping[str, Any], notify: Say) -> list[Any]:
    """Return the partitioners of a recipe, new ones for each method."""
    built: list[Any] = []
    for asked in job["partitioners"]:
        options = dict(asked["options"])
        if job["rules"].get("granularity") == "operator":
            if takes(asked["name"], "per_op_mode"):
                options["per_op_mode"] = True
            else:
                words = f"{asked['name']} has no option for a partition for each operator"
                notify("warning", text=words, file="", line=0)
        built.append(make({"name": asked["name"], "options": options}))
    return built


def _recorded(function: Any, programs: Any, **more: Any) -> Any:  # noqa: ANN401
    """Call a function of the package with recording, if this release supports it."""
    try:
        return function(programs, generate_etrecord=True, **more)
    except TypeError as error:
        if "generate_etrecord" not in str(error):
            raise
    return function(programs, **more)


def _report_stages(start: float, found: Mapping[str, Partitioned], notify: Say) -> None:
    """Report the durations of the parts of one call of the package, if known."""
    end = time.perf_counter()
    began = min((one.began for one in found.values() if one.began), default=end)
    spent = sum(one.seconds for one in found.values())
    notify("stage", stage="edge", method="", seconds=began - start)
    for method, one in found.items():
        notify("stage", stage="partition", method=method, seconds=one.seconds)
    notify("stage", stage="lower", method="", seconds=max(0.0, end - began - spent))


def emitted(edge: Any, job: Mapping[str, Any], notify: Say) -> Any:  # noqa: ANN401
    """Return the program, planned and emitted by the package."""
    exir = part("exir")
    flow = flow_of(job)
    given: dict[str, Any] = {} if flow is None else flow.emission()
    if job["external_constants"]:
        given["external_constants"] = True
    given.update(job["backend_config"])
    planner = _planner(job["memory_planner"], job["memory_planning"])
    if planner is not None:
        given["memory_planning_pass"] = planner
    elif job["memory_planner"]:
        words = f"the stock tool has no memory planner {job['memory_planner']!r}; its own is used"
        notify("warning", text=words, file="", line=0)
    try:
        config = exir.ExecutorchBackendConfig(**given)
    except TypeError as error:
        raise StockError(f"this executorch does not accept an option: {error}") from error
    with timed_stage(notify, "plan and emit"):
        return edge.to_executorch(config)


def _planner(name: str, options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - None: its own
    home = part_or_none("exir.memory_planning")
    algorithm = getattr(home, name, None) if name in ("greedy", "naive") else None
    if algorithm is None and not options:
        return None
    given = dict(options)
    if algorithm is not None:
        suite = getattr(home, "MemoryPlanningAlgorithmSuite", None)
        given["memory_planning_algo"] = (
            suite(algo_list=[algorithm]) if suite is not None else algorithm
        )
    try:
        return part("exir.passes").MemoryPlanningPass(**given)
    except TypeError as error:
        raise StockError(f"this executorch does not accept an option: {error}") from error


def written(program: Any, folder: Path, notify: Say) -> None:  # noqa: ANN401
    """Write program, external constants and record.

    Raises: NotWrittenError
    """
    with timed_stage(notify, "write"):
        try:
            with (folder / PROGRAM).open("wb") as stream:
                program.write_to_file(stream)
            beside = getattr(program, "write_tensor_data_to_file", None)
            if beside is not None:
                beside(str(folder))
        except OSError as error:
            raise StockWriteError(f"{PROGRAM} cannot be written: {_why(error)}") from error
    with timed_stage(notify, "record"):
        _write_record(program, folder / RECORD, notify)


def _write_record(program: Any, path: Path, notify: Say) -> None:  # noqa: ANN401
    try:
        program.get_etrecord().save(str(path))
    except OSError as error:
        raise StockWriteError(f"{RECORD} cannot be written: {_why(error)}") from error
    except Exception as error:  # noqa: BLE001 - the program is good without it
        path.unlink(missing_ok=True)
        words = f"this executorch could not record the program: {sentence_of(error)}"
        notify("warning", text=words, file="", line=0)


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def planners(program: Any, name: str) -> dict[str, str]:  # noqa: ANN401
    """Return the memory planner of each method."""
    plans = program.executorch_program.execution_plan
    return {
        plan.name: name if name in ("greedy", "naive") else "stock"
        for plan in plans
        if plan.chains and plan.chains[0].instructions
    }
