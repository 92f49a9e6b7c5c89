"""Partitions the programs of a compile by each of several backends, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compiler.backends.vendors.create import VendorError, operators_of, options_of
from compiler.backends.vendors.listed import listed_operators
from compiler.innermost import innermost
from inspector.graph.boundaries import is_quantization
from inspector.jobs.backend_plan import (
    BackendCardJob,
    BackendFacts,
    BackendOption,
    BackendPlan,
    BackendPlanJob,
    BackendShare,
)
from inspector.jobs.preview import MethodPreview
from inspector.toolchain.backend_python import interpreter_of
from inspector.toolchain.child import ToolchainError
from inspector.worker.backend_python import VendorTables, tables_of
from inspector.worker.compile_job import MessageCollector
from inspector.worker.exporter import AnswerError, timed_stage
from inspector.worker.lowering import check_names
from inspector.worker.previewing import job_source, preview_of
from inspector.worker.tasks import Task
from inspector.worker.warm import Warm
from schema.backends import partitioners, resolve
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.objects.codec import to_json
from schema.vendors.table import vendor_called

_MOST = 3  # reasons of a backend
_SHOWN = 140  # characters of a reason


def work(job: BackendPlanJob, task: Task) -> dict[str, Any]:
    """Return the share of each backend; one that fails has a sentence instead.

    Raises: errors of the source
    """
    warm, listener = task.warm or Warm(), MessageCollector(task.notify)
    source = job_source(job.compile, warm, listener)
    rows: list[BackendShare] = []
    for done, name in enumerate(job.backends):
        task.notify("counted", done=done, total=len(job.backends))
        one = replace(job.compile, partitioners=(name,))
        with timed_stage(listener, "plan a backend"):
            try:
                check_names(one)
                found = preview_of(one, source, warm, listener.observe)
            except AnswerError as error:
                rows.append(BackendShare(name, error=str(error)))
                continue
            except Exception as error:  # noqa: BLE001 - whatever a vendor's partitioner raises
                rows.append(BackendShare(name, error=innermost(error)))
                continue
        rows += [_share(name, method, each) for method, each in found.methods.items()]
    return to_json(BackendPlan(tuple(rows)))


def card(job: BackendCardJob, _task: Task) -> dict[str, Any]:
    """Return the lists in the tables of a backend: options with their values, operators."""
    vendor = vendor_called(job.name)
    if vendor is None:
        place = next((one.place for one in partitioners() if one.alias == job.name), "")
        return to_json(BackendFacts(operators=tuple(resolve(place)().operators() if place else ())))
    python = interpreter_of("", vendor.alias)
    operators = [] if python else listed_operators(vendor)
    try:
        if python:
            found = tables_of(python, vendor.alias)
        else:
            found = VendorTables(options_of(vendor), operators or operators_of(vendor))
    except (VendorError, ToolchainError) as error:
        return to_json(BackendFacts(operators=tuple(operators), error=str(error)))
    options = tuple(BackendOption(name, values) for name, values in found.options.items())
    return to_json(BackendFacts(options, tuple(found.operators)))


def _share(name: str, method: str, found: MethodPreview) -> BackendShare:
    nodes = [node for node in found.nodes if not is_quantization(node.operator)]
    taken = sum(node.partition is not None for node in nodes)
    left = {node.name for node in nodes if node.partition is None}
    reasons = Counter(
        (verdict.operator, verdict.reason)
        for verdict in found.verdicts
        if verdict.node in left and verdict.outcome is not NodeOutcome.DELEGATED
    )
    return BackendShare(
        *(name, method, len(nodes), taken, len(found.partitions)), tuple(_sentences(reasons))
    )


def _sentences(reasons: Counter[tuple[str, str]]) -> Iterator[str]:
    for (operator, reason), count in reasons.most_common(_MOST):
        times = f"{count} x " if count > 1 else ""
        yield f"{times}{operator}: {' '.join(reason.split())[:_SHOWN]}"
    if len(reasons) > _MOST:
        yield f"and {len(reasons) - _MOST} more reasons"
