"""graph --stages and --stage: effect of each stage of the compile on the graph."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.cli.answer import UNREADABLE, USAGE, Answer, CommandError, shown
from inspector.files.session import Session
from inspector.files.stage_files import session_stages
from inspector.files.stage_log import StageChange, StageLog, StageNode, Step
from inspector.tables.stage_steps import CHANGED, Steps, left_nodes, node_table, step_table
from schema.objects.plural import plural


def add_stages(parser: ArgumentParser) -> None:
    """Add the options about stages."""
    parser.add_argument(
        "--stages", action="store_true", help="list the stages of the compile (compile --stages)"
    )
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        help="the graph after a stage and its changes: name or number in --stages",
    )


def stages_answer(session: Session, options: Namespace) -> Answer:
    """Return the stages of the compile next to the session's program, or one of them.

    Raises: CommandError if there are none, or the name is unknown
    """
    found = session_stages(session)
    if found.log is None:
        remedy = "etscope compile SOURCE --stages -o DIR writes it"
        recipe = next((one.path for one in session.files if one.kind == "etrecord"), "")
        if recipe:
            remedy = f"etscope compile --recipe {recipe} --stages -o DIR writes it"
        raise CommandError(f"{found.why}; {remedy}", UNREADABLE if found.path else USAGE)
    options.inputs = [*options.inputs, found.path]
    if options.stage is None:
        return _listed(found.log, options)
    return _one(found.log, options)


def _selected_steps(log: StageLog, options: Namespace) -> list[int]:
    return [
        at
        for at, step in enumerate(log.steps)
        if not options.method or step.method in ("", options.method)
    ]


def _listed(log: StageLog, options: Namespace) -> Answer:
    steps = [(at, log.steps[at]) for at in _selected_steps(log, options)]
    data = {"stages": [_step_json(at, one) for at, one in steps], "note": log.note}
    table = step_table(log, [at for at, _ in steps])
    return Answer(data, lines=[log.note] * bool(log.note), tables=(shown(table, total=True),))


def _one(log: StageLog, options: Namespace) -> Answer:
    allowed = set(_selected_steps(log, options))
    found = [at for at in log.find(options.stage) if at in allowed]
    if not found:
        names = dict.fromkeys(log.steps[at].stage for at in sorted(allowed))
        raise CommandError(f"unknown stage {options.stage!r}; available: {', '.join(names)}", USAGE)
    at = found[0]
    step = log.steps[at]
    nodes = log.graphs[step.after] if step.after is not None else ()
    data = {"stage": {**_step_json(at, step), **_change_json(step.change)}}
    data["stage"]["graph"] = [_node_json(node, step.change) for node in nodes]
    head = f"{at}: {step.stage} {step.method}".rstrip()
    steps = Steps(log, "", {})
    tables = [] if step.change is None else [shown(node_table(steps, at, CHANGED), "changes")]
    tables.append(shown(left_nodes(nodes), f"{head}, {plural(len(nodes), 'node')}"))
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


def _change_json(change: StageChange | None) -> dict[str, Any]:
    if change is None:
        return {"added": None, "removed": None, "replaced": None}
    pairs = [{"before": list(old), "after": list(new)} for old, new in change.replaced]
    return {"added": list(change.added), "removed": list(change.removed), "replaced": pairs}


def _node_json(node: StageNode, change: StageChange | None) -> dict[str, Any]:
    return {
        "name": node.name,
        "operator": node.operator,
        "value": node.value,
        "debug_handle": node.handle or None,
        "source": node.source or None,
        "from": list(change.behind(node.name)) if change is not None else None,
    }
