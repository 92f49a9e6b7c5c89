"""llm export: the program and the record of a configuration."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.compile import compile_answer
from inspector.cli.job_runs import finished, refused
from inspector.cli.llm_files import ASKED, config_source, read_source
from inspector.cli.progress import Progress
from inspector.cli.recipes import check_recipe
from inspector.export.memory_trace import memory_trace, planned_steps
from inspector.files.load import load_session
from inspector.graph.delegation import analyse_delegation
from inspector.jobs.guard import AUTO
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.recipes.recipe import RecipeError
from inspector.render.export_page import make_export_page
from inspector.tables.delegation import delegate_table
from inspector.toolchain.llm_recipe import llm_recipe
from schema.objects.atomic_file import write_atomically
from schema.recipe.tokenizers import BYTE_TOKENIZER

if TYPE_CHECKING:
    from compiler.llm.config import DebugConfig

PAGE = "export.html"
MEMORY = "memory_profile.json"


def run(options: Namespace) -> Answer:
    """Compile in a worker process; the folder is complete or as it was before.

    Raises: CommandError
    """
    from compiler.llm.config import HERE

    source = config_source(options)
    options.inputs = [source.path]
    config = read_source(source)
    named = config.base.tokenizer_path
    if named not in (None, BYTE_TOKENIZER) and not Path(named).exists():
        raise CommandError(f"base.tokenizer_path: {named}: file not found", USAGE)
    if options.folder is None and config.export.output_dir != HERE:
        options.folder = config.export.output_dir
    if options.folder is None:
        raise CommandError("-o DIR is missing: it names the folder, or export.output_dir", USAGE)
    page = page_path(config.debug, Path(options.folder))
    if page is not None and config.debug.profile_path and not page.parent.is_dir():
        raise CommandError(f"debug.profile_path: {page.parent}: folder not found", USAGE)
    try:
        job = llm_recipe(source, config)
    except RecipeError as error:
        raise CommandError(str(error), USAGE) from error
    check_recipe(job)
    try:
        running = JobRun(
            job, Path(options.folder), force=options.force, timeout=options.timeout, guard=AUTO
        )
    except FolderError as error:
        raise refused(error) from error
    progress = Progress(sys.stderr, verbose=options.verbose)
    outcome = finished(running, progress, verbose=options.verbose)
    answer = compile_answer(outcome.result, str(options.folder), ())
    folder = Path(options.folder)
    if config.debug.profile_memory:
        answer = _with_memory(answer, folder)
    return answer if page is None else _with_page(answer, page, folder)


def page_path(debug: DebugConfig, folder: Path) -> Path | None:
    """Return where a configuration wants the page on its export, None if nowhere."""
    if debug.profile_path:
        return Path(debug.profile_path)
    return folder / PAGE if debug.verbose else None


def _with_memory(answer: Answer, folder: Path) -> Answer:
    """Write the memory plan of each method as a Chrome trace; return an answer with their names."""
    session = load_session([str(folder)])
    methods = [one for one in session.methods if not one.startswith(ASKED)]
    lines = list(answer.lines)
    for method in methods:
        path = folder / (MEMORY if len(methods) == 1 else f"{method}_{MEMORY}")
        text = json.dumps(memory_trace(planned_steps(session, method)), indent=1)
        write_atomically(path, lambda stream, text=text: stream.write(text.encode()))
        lines.append(f"memory profile: {path}")
    return replace(answer, lines=lines)


def _with_page(answer: Answer, path: Path, folder: Path) -> Answer:
    """Write the page on an export; return an answer with its name and the tables of delegation."""
    session = load_session([str(folder)])
    methods = [one for one in session.methods if not one.startswith(ASKED)]
    page = make_export_page(answer.data["stages"], session, methods, folder.name)
    write_atomically(path, lambda stream: stream.write(page.html.encode()))
    entries = [one for one in analyse_delegation(session) if one.method in methods]
    tables = (*answer.tables, *(shown(delegate_table(one)) for one in entries))
    return replace(answer, lines=[*answer.lines, f"report: {path}"], tables=tables)
