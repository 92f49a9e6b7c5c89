"""llm gap: a program beside its float module along a text, with teacher forcing."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.gap import gap_answer
from inspector.cli.gap_of_run import gap_of_run
from inspector.cli.job_runs import check_there, finished, refused
from inspector.cli.llm_files import LlmFiles, exported_files
from inspector.cli.progress import Progress
from inspector.jobs.executing import RunJob
from inspector.jobs.gap import GapJob
from inspector.jobs.generating import LlmGapJob
from inspector.jobs.messages import STOP
from inspector.jobs.output_folder import HIDDEN, FolderError, check_folder
from inspector.jobs.run import JobRun
from inspector.numerics.report import FLOAT
from inspector.recipes.source import LLM_SUFFIXES, Source, SourceKind, parse_source
from inspector.tables.generation import token_table, variant_table
from inspector.units import format_share
from schema.errors import Issue, Severity

_UNKNOWN = (
    "no configuration is known that it was compiled from, so the float model is unknown;"
    " --config FILE.yaml names it"
)
_NODES = 10  # that are shown, with the largest errors of their own


def run(options: Namespace) -> Answer:
    """Compare in a worker process.

    Raises: CommandError, OSError
    """
    if len(options.words) < 2:
        return _of_one(options)
    if options.by_node:
        raise CommandError("--by-node compares one model with its float program", USAGE)
    words: list[str] = options.words
    reports = [
        _compared(Namespace(**{**vars(options), "words": [word]}), rows=_rows_file(options, number))
        for number, word in enumerate(words, 1)
    ]
    options.inputs = [one["program"] for one in reports]
    named = list(zip(words, reports, strict=True))
    return Answer(
        {"variants": [{"name": word, **one} for word, one in named]},
        lines=[f"{reports[0]['row_count']:,} tokens, each variant beside its float model"],
        tables=(shown(variant_table(named)),),
        issues=_issues(options),
    )


def _of_one(options: Namespace) -> Answer:
    """Compare one model: its tokens, and the nodes of the first calls if requested."""
    with tempfile.TemporaryDirectory(prefix=HIDDEN) as inputs:
        rows = "" if options.by_node else _rows_file(options, 1)
        report = _compared(options, inputs if options.by_node else "", rows=rows, stops=True)
        answer = replace(_answer(report), issues=_issues(options))
        return _with_nodes(answer, options, report, inputs) if options.by_node else answer


def _with_nodes(answer: Answer, options: Namespace, report: dict[str, Any], inputs: str) -> Answer:
    """Run the first calls again with all values; return an answer with the gap of their nodes."""
    files = exported_files(options)
    job = RunJob(
        files.program,
        method=report["method"],
        record=files.record,
        data_files=files.data,
        libraries=tuple(options.libraries),
        threads=options.threads,
        engine=options.engine,
        sequence=inputs,
    )
    kept = None if options.folder is None else Path(options.folder)
    comparison = GapJob((), reference=FLOAT if files.quantized else "")
    found = gap_of_run(job, comparison, options, kept=kept)
    chosen = {"run": 0, "sort": "own", "top": _NODES, "format": options.format}
    more = "--format json has all"
    if kept is not None:
        more = f"etscope gap {options.words[0]} {kept} has all"
    nodes = gap_answer(found, Namespace(**chosen), more)
    return Answer(
        {**answer.data, "nodes": nodes.data},
        lines=[*answer.lines, *nodes.lines],
        tables=(*answer.tables, *nodes.tables),
        issues=answer.issues,
    )


def _rows_file(options: Namespace, number: int) -> str:
    """Return the file of the tokens of a model, empty where none is kept.

    Raises: CommandError if the folder has something else in it, OSError
    """
    if options.folder is None:
        return ""
    folder = Path(options.folder)
    if not any(folder.glob("tokens-*.jsonl")):
        try:
            check_folder(folder, force=options.force)
        except FolderError as error:
            raise refused(error) from error
        folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tokens-{number}.jsonl"
    if options.force:
        path.unlink(missing_ok=True)
    return str(path)


def _compared(
    options: Namespace, inputs: str = "", *, rows: str = "", stops: bool = False
) -> dict[str, Any]:
    """Return the report of one model.

    Args:
        options: of the verb
        inputs: folder for the inputs of the first calls, empty for none
        rows: file of the tokens, empty for none
        stops: whether Ctrl+C keeps the tokens so far; variants are compared on the same ones

    Raises: CommandError, OSError
    """
    files = exported_files(options)
    options.inputs = [files.program]
    source = _configuration(options, files)
    text = options.prompt
    if options.text:
        check_there(options.text)
        text = Path(options.text).read_text("utf-8", "replace")
    for path in options.libraries:
        check_there(path)
    if not text:
        raise CommandError("which text? --text FILE, or --prompt TEXT", USAGE)
    job = LlmGapJob(
        program=files.program,
        config=source.path,
        settings=source.function,
        tokenizer=options.tokenizer,
        text=text,
        tokens=options.tokens,
        data_files=files.data,
        threads=options.threads,
        engine=options.engine,
        inputs=inputs,
        calls=options.by_node or 0,
        libraries=tuple(options.libraries),
        rows=rows,
    )
    running = JobRun(job, timeout=options.timeout)
    progress = Progress(sys.stderr, verbose=options.verbose)
    stop = (lambda: running.send(dict(STOP))) if stops else None
    outcome = finished(running, progress, verbose=options.verbose, stop=stop)
    return dict(outcome.result)


def _configuration(options: Namespace, files: LlmFiles) -> Source:
    """Return the configuration of the float model: that of the option, else of the recipe.

    Raises: CommandError, OSError
    """
    if options.config:
        given = parse_source(options.config)
        if given.kind is not SourceKind.LLM:
            words = f"--config: {given.path} is not a {' or '.join(LLM_SUFFIXES)} file"
            raise CommandError(words, USAGE)
        check_there(given.path)
        return given
    if files.source is None:
        raise CommandError(f"{files.program}: {_UNKNOWN}", USAGE)
    return files.source


def _issues(options: Namespace) -> list[Issue]:
    """Return a warning for each model whose configuration has changed since its compile."""
    if options.config:
        return []
    models = [exported_files(Namespace(**{**vars(options), "words": [w]})) for w in options.words]
    words = "has changed since the compile: the float model may differ; --config names another one"
    paths = [one.source.path for one in models if one.changed and one.source is not None]
    return [Issue(Severity.WARNING, path, words) for path in dict.fromkeys(paths)]


def _answer(report: dict[str, Any]) -> Answer:
    first, unexplained = report["first_difference"], report["first_unexplained"]
    read, asked, rows = report["row_count"], report["token_count"], report["rows"]
    lines = [report["restart"]] if "restart" in report else []
    if read < asked:
        lines.append(f"stopped behind {read:,} of {asked:,} tokens")
    if len(rows) < read:
        lines.append(f"shown are the first {len(rows):,} of {read:,} tokens; -o FOLDER keeps all")
    lines += [
        f"top-1 agreement {format_share(report['top1_agreement'])} of {read:,}"
        f" tokens, mean KL {report['mean_kl']:.3g}, largest error {report['max_abs']:.3g}",
        f"perplexity {report['perplexity']:.6g}, of the float model"
        f" {report['reference_perplexity']:.6g}",
    ]
    if first is None:
        lines.append("both choose the same token everywhere")
    elif unexplained is None:
        lines.append(
            f"the first other choice is behind token {first}; each is within twice the error"
        )
    else:
        lines.append(f"the choice behind token {unexplained} differs by more than twice the error")
    return Answer(report, lines=lines, tables=(shown(token_table(rows)),))
