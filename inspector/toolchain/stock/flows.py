"""Flows of vendors that compile a whole program by passes, without a partitioner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compiler.backends.vendors.create import VendorError, create_flow_of, create_quantizer_of
from compiler.interface.passed_handles import following, marked, recorded_nodes, settle
from inspector.toolchain.stock.nodes import calls_in, operator_of, source_line, unit_of
from inspector.toolchain.stock.package import StockError, part_or_none
from inspector.toolchain.stock.partitioning import Partitioned
from inspector.worker.exporter import timed_stage
from schema.vendors.names import flow_vendor, quantizer_vendor

Say = Callable[..., None]
Verdict = dict[str, Any]


def flow_of(job: Mapping[str, Any]) -> Any:  # noqa: ANN401 - None without one
    """Return the flow that a recipe names in place of partitioners, else None.

    Raises: StockError if it is not here, refuses its options, or is not alone
    """
    named = [one for one in job["partitioners"] if flow_vendor(str(one["name"])) is not None]
    if not named:
        return None
    vendor = flow_vendor(str(named[0]["name"]))
    assert vendor is not None
    if len(job["partitioners"]) > 1:
        raise StockError(f"{vendor.alias} compiles the whole program, so it is named alone")
    try:
        return create_flow_of(vendor, named[0]["options"])
    except VendorError as error:
        raise StockError(str(error)) from error


def lowered_by(
    flow: Any,  # noqa: ANN401 - of a vendor
    programs: Mapping[str, Any],
    constants: Mapping[str, Any],
    job: Mapping[str, Any],
    notify: Say,
) -> tuple[Any, dict[str, Partitioned]]:
    """Return edge programs after the passes of a flow, and the verdict on each node.

    Raises: StockError; errors of the package
    """
    with timed_stage(notify, "edge"):
        edge = flow.edge(programs, constants, _quantizer(job))
    before = {name: list(_calls(program)) for name, program in edge._edge_programs.items()}
    modules = {name: program.graph_module for name, program in edge._edge_programs.items()}
    marks = {name: marked(module) for name, module in modules.items()}
    passes: Any = part_or_none("exir.pass_base")
    with timed_stage(notify, "vendor passes"), following(_computing_again(passes)):
        edge = flow.transform(edge)
    alias = str(job["partitioners"][0]["name"])
    found: dict[str, Partitioned] = {}
    for name, calls in before.items():
        module = edge._edge_programs[name].graph_module
        handles = dict(settle(module, marks[name]))
        after = _became(module, handles)
        found[name] = Partitioned(verdicts=verdicts(calls, after, alias, flow.space))
    return edge, found


def values_of(program: Any) -> dict[str, dict[int, str]]:  # noqa: ANN401 - emitted by the package
    """Return by method the recorded node whose value each instruction has, as far as known."""
    programs: Any = getattr(program, "_execution_programs", {})
    return {name: recorded_nodes(one.graph_module) for name, one in programs.items()}


def _quantizer(job: Mapping[str, Any]) -> Any:  # noqa: ANN401 - None for any but a vendor's
    asked = job.get("vendor_quantizer")
    vendor = quantizer_vendor(str(asked["name"])) if asked else None
    return create_quantizer_of(vendor, asked["options"]) if asked and vendor else None


def _calls(program: Any) -> Iterator[Verdict]:  # noqa: ANN401 - an exported program
    """Yield the fields of the verdict on each call."""
    for node, path in calls_in(program.graph_module):
        handle = unit_of(node).meta.get("debug_handle")
        yield {
            "node": path,
            "operator": operator_of(node),
            "debug_handle": handle if isinstance(handle, int) else None,
            "source": source_line(unit_of(node)),
        }


def _computing_again(passes: Any) -> Any:  # noqa: ANN401 - None if this release has none
    """Return the class by which passes of the package compute a graph again."""
    return getattr(getattr(passes, "ExportPass", None), "ExportInterpreter", None)


def _became(module: Any, handles: Mapping[Any, tuple[int, ...]]) -> list[Verdict]:  # noqa: ANN401
    """Return the calls after the passes, each with the handles of all that it replaced."""
    return [
        {
            "node": path,
            "operator": operator_of(node),
            "handles": handles.get(unit_of(node), (unit_of(node).meta.get("debug_handle"),)),
        }
        for node, path in calls_in(module)
    ]


def verdicts(before: list[Verdict], after: list[Verdict], alias: str, space: str) -> list[Verdict]:
    """Return the verdict on each node of an edge program.

    Args:
        before: its calls
        after: the calls after the passes of a flow, each with all of its handles
        alias: of the flow
        space: namespace of the vendor's operators
    """
    became: dict[int, list[str]] = {}
    for one in after:
        for handle in filter(None, one["handles"]):
            became.setdefault(handle, []).append(one["operator"])
    names = {one["node"] for one in after}
    found: list[Verdict] = []
    for one in before:
        mine = became.get(one["debug_handle"], [])
        backend = ""
        own = [name for name in mine if name.startswith(f"{space}.")]
        if own:
            words = f"it runs as {', '.join(dict.fromkeys(own))}, an instruction of the program"
            outcome, backend = "delegated", alias
        elif one["operator"] in mine or one["node"] in names:
            words = f"the passes of {alias} left it a plain {one['operator']}"
            outcome = "no_rule_for_operator"
        elif mine:
            words = f"the passes of {alias} replaced it by {', '.join(dict.fromkeys(mine))}"
            outcome = "decomposed_away"
        else:
            words = f"the passes of {alias} folded it into the nodes around it"
            outcome = "decomposed_away"
        more = {
            "rule": f"passes of {alias}",
            "outcome": outcome,
            "reason": words,
            "backend": backend,
        }
        found.append({**one, "partitioner": alias, **more, "partition": ""})
    return found
