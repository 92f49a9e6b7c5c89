"""graph --stages and --stage: what each stage of the compile did to the graph."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from inspector.cli.answer import UNREADABLE, USAGE, Answer, Column, CommandError, Table
from inspector.files.session import Session
from inspector.files.stage_files import session_stages
from inspector.files.stage_log import Change, StageLog, StageNode, Step, delegated

_SHOWN_NAMES = 4


def add_stages(parser: ArgumentParser) -> None:
    """Add the options about stages."""
    parser.add_argument(
        "--stages", action="store_true", help="list the stages of the compile (compile --stages)"
    )
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        help="the graph a stage left and what it changed: its name or number in --stages",
    )


def stages_answer(session: Session, options: Namespace) -> Answer:
    """Return the stages of the compile beside the session's program, or one of them.

    Raises: CommandError if there are none, or none of that name
    """
    found = session_stages(session)
    if found.log is None:
        raise CommandError(found.why, UNREADABLE if found.path else USAGE)
    options.inputs = [*options.inputs, found.path]
    if options.stage is None:
        return _listed(found.log, options)
    return _one(found.log, options)


def _wanted(log: StageLog, options: Namespace) -> list[int]:
    return [
        at
        for at, step in enumerate(log.steps)
        if not options.method or step.method in ("", options.method)
    ]


def _listed(log: StageLog, options: Namespace) -> Answer:
    steps = [(at, log.steps[at]) for at in _wanted(log, options)]
    columns = (
        Column("#", "count"),
        Column("stage"),
        Column("method"),
        Column("time", "time"),
        Column("nodes", "count"),
        Column("new", "count"),
        Column("gone", "count"),
    )
    rows = [
        (
            at,
            one.stage,
            one.method,
            one.time_ms,
            one.nodes,
            one.change.plus if one.change else None,
            one.change.minus if one.change else None,
        )
        for at, one in steps
    ]
    total = (None, "total", "", sum(one.time_ms for _, one in steps), None, None, None)
    data = {"stages": [_step_json(at, one) for at, one in steps], "note": log.note}
    return Answer(
        data, lines=[log.note] * bool(log.note), tables=(Table("", columns, rows, total),)
    )


def _one(log: StageLog, options: Namespace) -> Answer:
    allowed = set(_wanted(log, options))
    found = [at for at in log.find(options.stage) if at in allowed]
    if not found:
        names = dict.fromkeys(log.steps[at].stage for at in sorted(allowed))
        raise CommandError(f"no stage {options.stage!r}; there are {', '.join(names)}", USAGE)
    at = found[0]
    step = log.steps[at]
    nodes = log.graphs[step.after] if step.after is not None else ()
    data = {"stage": {**_step_json(at, step), **_change_json(step.change)}}
    data["stage"]["graph"] = [_node_json(node, step.change) for node in nodes]
    head = f"{at}: {step.stage} {step.method}".rstrip()
    tables = [_changes_table(log, step)] if step.change is not None else []
    tables.append(_nodes_table(head, nodes))
    return Answer(data, lines=[head, *([log.note] if log.note else [])], tables=tables)


def _step_json(at: int, step: Step) -> dict[str, Any]:
    change = step.change
    return {
        "number": at,
        "stage": step.stage,
        "method": step.method,
        "time_ms": step.time_ms,
        "nodes": step.nodes,
        "kept": change.kept if change else None,
        "new": change.plus if change else None,
        "gone": change.minus if change else None,
    }


def _change_json(change: Change | None) -> dict[str, Any]:
    if change is None:
        return {"added": None, "removed": None, "replaced": None}
    pairs = [{"before": list(old), "after": list(new)} for old, new in change.replaced]
    return {"added": list(change.added), "removed": list(change.removed), "replaced": pairs}


def _node_json(node: StageNode, change: Change | None) -> dict[str, Any]:
    return {
        "name": node.name,
        "operator": node.operator,
        "value": node.value,
        "debug_handle": node.handle or None,
        "source": node.source or None,
        "from": list(change.behind(node.name)) if change is not None else None,
    }


def _changes_table(log: StageLog, step: Step) -> Table:
    columns = (
        Column("change"),
        Column("before"),
        Column("after"),
        Column("operator before", spare=2),
        Column("operator after", spare=1),
    )
    return Table("changes", columns, list(_change_rows(log, step)))


def _change_rows(log: StageLog, step: Step) -> Iterator[tuple[str, ...]]:
    change = step.change
    assert change is not None
    old, new = _operators(log, step.before), _operators(log, step.after)
    for group in change.replaced:
        before, after = group
        inside = delegated(group, new)
        for own, calls in inside:
            what = "delegated" if own else "added"
            yield what, _names(own), _names(calls), _of(own, old), _of(calls, new)
        if inside:
            continue
        yield "replaced", _names(before), _names(after), _of(before, old), _of(after, new)
    for name in change.added:
        yield "added", "", name, "", _of((name,), new)
    for name in change.removed:
        yield "removed", name, "", _of((name,), old), ""


def _operators(log: StageLog, graph: int | None) -> dict[str, str]:
    return {} if graph is None else {node.name: node.operator for node in log.graphs[graph]}


def _of(names: tuple[str, ...], operators: dict[str, str]) -> str:
    return _names(tuple(dict.fromkeys(operators.get(name, "") for name in names)))


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def _nodes_table(head: str, nodes: tuple[StageNode, ...]) -> Table:
    columns = (
        Column("node"),
        Column("operator"),
        Column("value", spare=1),
        Column("source", spare=2),
    )
    rows = [(node.name, node.operator, node.value, node.source) for node in nodes]
    return Table(f"{head}, {len(nodes):,} nodes", columns, rows)
