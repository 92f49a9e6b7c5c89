"""gap: the numeric gap between the values of a run and those of the recorded program."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from inspector.cli.answer import Answer, shown
from inspector.cli.gap_of_run import gap_of, gap_of_run
from inspector.cli.job_runs import (
    add_backend_options,
    add_libraries,
    add_timeout,
    check_there,
    count_or_none,
    not_negative,
)
from inspector.cli.options import add_files, open_files
from inspector.experiments.evaluate.request import variant_job
from inspector.files.session import Session
from inspector.jobs.executing import RunJob
from inspector.jobs.gap import GapJob
from inspector.jobs.run_folder import kept_inputs, kept_method
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import GapReport, Row, RunGap
from inspector.profile.methods import analyse_profile
from inspector.tables.layer_losses import loss_table
from inspector.tables.numeric_gap import call_gap_table, gap_table, loss_words

_SHOWN = 40
ORDERS = ("execution", "total", "own")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument(
        "--reference",
        default="",
        metavar="GRAPH",
        help="edge, exported, another recorded graph, or float: the program before quantization,"
        " made again by the recipe; default: the edge graph if it can run",
    )
    parser.add_argument(
        "--inputs",
        dest="inputs_file",
        default="",
        metavar="FILE.pt",
        help="inputs of the run, as torch.save wrote them",
    )
    parser.add_argument(
        "--rtol",
        type=not_negative,
        metavar="X",
        help="relative tolerance, of the largest magnitude of a tensor; default: by dtype",
    )
    parser.add_argument(
        "--atol", type=not_negative, default=0.0, metavar="X", help="added to it; default: 0"
    )
    parser.add_argument(
        "--run", type=count_or_none, default=0, metavar="N", help="which run's rows; default: 0"
    )
    parser.add_argument(
        "--sort", choices=ORDERS, default=ORDERS[0], help="order of the rows; default: execution"
    )
    parser.add_argument(
        "--top", type=count_or_none, default=_SHOWN, metavar="N", help="rows of output; default: 40"
    )
    add_libraries(parser)
    add_backend_options(
        parser, "run the program again with this option, and compare that run instead of a trace: "
    )
    add_timeout(parser)


def run(options: Namespace) -> Answer:
    """Compare in a worker process, since recorded graphs are run by torch."""
    session = open_files(options)
    again = bool(options.backend_options)
    missing = _missing(session, again=again)
    if missing:
        return gap_answer(GapReport((), (missing,)), options)
    for path in filter(None, (options.inputs_file, *options.libraries)):
        check_there(path)
    job = GapJob(
        files=tuple(file.path for file in session.files if not file.error),
        method=options.method or "",
        reference=options.reference,
        relative=options.rtol,
        absolute=options.atol,
        inputs=options.inputs_file,
        libraries=tuple(options.libraries),
    )
    if again:
        return gap_answer(_run_again(session, job, options), options)
    return gap_answer(_noted(session, gap_of(job, options)), options)


def _noted(session: Session, report: GapReport) -> GapReport:
    """Return a comparison that notes missing values and graphs compared with themselves."""
    times = [time for time in analyse_profile(session).methods if time.emulated]
    notes = dict.fromkeys(f"{time.title}: {time.origin_words}" for time in times)
    return replace(report, notes=(*session.missing_buffers, *notes, *report.notes))


def _run_again(session: Session, job: GapJob, options: Namespace) -> GapReport:
    """Compare a run with other options of its backends, on the inputs of the session."""
    inputs = options.inputs_file or kept_inputs(session)
    how = RunJob(
        "",
        method=job.method or kept_method(session),
        libraries=job.libraries,
        backend_options=tuple(options.backend_options),
    )
    run = variant_job(session, replace(how, inputs=inputs) if inputs else how)
    found = gap_of_run(run, job, options)
    words = f"a run of its own with {', '.join(options.backend_options)}"
    return replace(found, notes=(words, *found.notes))


def _missing(session: Session, *, again: bool = False) -> str:
    """Return missing requirements of a comparison, empty if complete."""
    if session.program is None:
        return "gap needs a program: instructions are those of a .pte file"
    if not session.dumps and not again:
        return "gap needs an ETDump: the trace of a run that logged intermediate outputs"
    return ""


def gap_answer(report: GapReport, options: Namespace, more: str = "--top shows more") -> Answer:
    """Return a comparison as sentences, rows and, of a sequence, calls.

    Args:
        report: the comparison
        options: ``run``, ``sort``, ``top`` and ``format``
        more: where the other rows are
    """
    runs = [each for each in report.runs if each.run == options.run]
    rows = [row for each in runs for row in each.rows]
    notes = list(dict.fromkeys([*report.notes, *(note for each in runs for note in each.notes)]))
    data = {
        "coverage": report.coverage(runs),
        "first_divergence": _divergence(runs),
        "uncertain": [_json(each, row) for each in runs for row in each.doubtful()],
        "rows": [_json(each, row) for each in runs for row in each.rows],
        "runs": [_run_json(report, each) for each in report.runs],
        "notes": notes,
    }
    chosen = _ordered(rows, options.sort, by_noise=any(each.is_float for each in runs))
    if options.format == "text":
        chosen = chosen[: options.top]
    first = next((each for each in runs if each.first_divergence() is not None), None)
    call = f"call {first.call}, " if first is not None and first.call >= 0 else ""
    floats = [each for each in runs if each.is_float]
    losses = _losses(floats)
    lines = [*_lines(data, losses, call), *notes]
    if len(chosen) < len(rows):
        lines.append(f"{len(chosen):,} of {len(rows):,} rows are shown; {more}")
    tables = [shown(gap_table(chosen))]
    tables += [
        shown(loss_table(each), f"loss by module{f', {name}' if name else ''}", top=options.top)
        for name, each in _worst_of_methods(floats)
    ]
    if any(each.call >= 0 for each in runs):
        tables.append(shown(call_gap_table(runs), "calls"))
    return Answer(data, lines=lines, tables=tables)


def _losses(runs: list[RunGap]) -> list[str]:
    """Return what quantization costs in each run; of a sequence in the call that loses most."""
    if any(each.call >= 0 for each in runs):
        named = _worst_of_methods(runs)
    else:
        named = [(_place(each, runs), each) for each in runs]
    words = (f"{name}: " if name else "" for name, _ in named)
    return [
        f"{word}{loss_words(each)} ({each.reference})"
        for word, (_, each) in zip(words, named, strict=True)
    ]


def _worst_of_methods(runs: list[RunGap]) -> list[tuple[str, RunGap]]:
    """Return the run of each method that loses most, and what distinguishes it from the others."""
    of_method: dict[str, list[RunGap]] = {}
    for each in runs:
        of_method.setdefault(each.method, []).append(each)
    worst = [max(each, key=_loss) for each in of_method.values()]
    return [(_place(each, runs), each) for each in worst]


def _place(run: RunGap, runs: list[RunGap]) -> str:
    """Return method, case and call of a run, as far as those of other runs are different."""
    names = ("method", "case", "call")
    differing = [name for name in names if len({getattr(each, name) for each in runs}) > 1]
    words = {"method": run.method, "case": f"case {run.case}", "call": f"call {run.call}"}
    if run.call >= 0:
        words.pop("case")  # the number is that of the call
    return ", ".join(
        words[name] for name in differing if name in words and getattr(run, name) != -1
    )


def _loss(run: RunGap) -> float:
    worst = run.largest_loss()
    return -1.0 if worst is None or worst.own is None else worst.own.noise


def _ordered(rows: list[Row], order: str, *, by_noise: bool) -> list[Row]:
    """Return rows by the size of an error; that of quantization beside the size of its signal."""
    if order == "execution":
        return rows

    def size(row: Row) -> float:
        metrics = row.total if order == "total" else row.own
        return 1.0 if metrics is None else -(metrics.noise if by_noise else metrics.max_abs)

    return sorted(rows, key=size)


def _divergence(runs: list[RunGap]) -> dict[str, Any] | None:
    """Return the first row that exceeds the tolerance by its own error."""
    for each in runs:
        row = each.first_divergence()
        if row is not None:
            return _json(each, row)
    return None


def _json(run: RunGap, row: Row) -> dict[str, Any]:
    return {
        "place": row.place,
        "method": row.method,
        "block": run.block,
        "run": run.run,
        "instruction": row.instruction,
        "output": row.slot,
        "operator": row.operator,
        "delegate_id": row.delegate or None,
        "node": row.node or None,
        "covers": list(row.covers),
        "handles": list(row.handles),
        "grade": row.grade or None,
        "inferred": row.inferred,
        "uncertain": row.uncertain,
        "dtype": row.dtype or None,
        "shape": list(row.sizes),
        "passes": row.passes,
        "compared": row.compared,
        "reason": row.reason or None,
        "basis": row.basis or None,
        "diverges": row.diverges,
        "differs": row.differs,
        **_metrics(row.total),
        "own": None if row.own is None else _metrics(row.own),
        "inherited": None if row.inherited is None else _metrics(row.inherited),
        "module": row.module or None,
        "source": row.source or None,
        "note": row.note or None,
    }


def _metrics(found: Metrics | None) -> dict[str, Any]:
    names = Metrics.__dataclass_fields__
    return {name: None if found is None else getattr(found, name) for name in names}


def _run_json(report: GapReport, run: RunGap) -> dict[str, Any]:
    first = run.first_divergence()
    return {
        "method": run.method,
        "block": run.block,
        "run": run.run,
        "case": None if run.case < 0 else run.case,
        "inputs": run.inputs or None,
        "reference": run.reference or None,
        "is_float": run.is_float,
        "call": None if run.call < 0 else run.call,
        "coverage": report.coverage([run]),
        "max_abs": max((row.total.max_abs for row in run.rows if row.total), default=None),
        "first_divergence": None if first is None else first.node,
        "notes": list(run.notes),
    }


def _lines(data: dict[str, Any], losses: Sequence[str] = (), call: str = "") -> list[str]:
    """Return a summary in a few sentences.

    Args:
        data: the answer
        losses: sentences about runs that were compared with a float program, for a divergence
        call: that diverges first, to put before its node
    """
    cover, first = data["coverage"], data["first_divergence"]
    inside = cover["inside"]
    lines = [
        f"{cover['compared']:,} of {cover['instruction_outputs']:,} outputs of instructions"
        f" compared, {cover['stated_reasons']:,} with a reason why not"
    ]
    if inside["nodes"]:
        lines.append(
            f"{inside['compared']:,} of {inside['nodes']:,} nodes inside delegates compared"
        )
    if losses:
        lines += losses
    elif first is not None:
        given = first["own"] or first
        own = Metrics(*(given[one.name] for one in fields(Metrics)))
        lines.append(
            f"first divergence: {call}{first['node']} ({first['operator']}, instruction"
            f" {first['instruction']}) is {own.words(6)}"
            + (f": {first['note']}" if first["note"] else "")
        )
    elif cover["compared"]:
        lines.append("no node exceeds the tolerance by its own error")
    doubtful = data.get("uncertain")
    if doubtful:
        one = doubtful[0]
        lines.append(
            f"join uncertain: {len(doubtful):,} that are joined by order only differ, the first is"
            f" {one['node']} ({one['operator']}, instruction {one['instruction']});"
            " they may be other nodes' values and are not a divergence"
        )
    return lines
