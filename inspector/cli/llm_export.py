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
from inspector.recipes.compile_job import EMBEDDING_WORDS, WEIGHT_WORDS, CompileJob, Quantization
from inspector.recipes.source import Source
from inspector.render.export_page import make_export_page
from inspector.tables.delegation import delegate_table
from schema.objects.atomic_file import write_atomically

if TYPE_CHECKING:
    from compiler.llm.config import DebugConfig, LlmConfig, QuantizationConfig

PAGE = "export.html"
MEMORY = "memory_profile.json"
_DYNAMIC = "dynamic"


def run(options: Namespace) -> Answer:
    """Compile in a worker process; the folder is complete or as it was before.

    Raises: CommandError
    """
    from compiler.llm.config import HERE

    source = config_source(options)
    options.inputs = [source.path]
    config = read_source(source)
    if options.folder is None and config.export.output_dir != HERE:
        options.folder = config.export.output_dir
    if options.folder is None:
        raise CommandError("where to? -o DIR names the folder, or export.output_dir", USAGE)
    page = page_path(config.debug, Path(options.folder))
    if page is not None and config.debug.profile_path and not page.parent.is_dir():
        raise CommandError(f"debug.profile_path: {page.parent}: folder not found", USAGE)
    job = compile_job(source, config)
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


def compile_job(source: Source, config: LlmConfig) -> CompileJob:
    """Return the compile of a configuration: its groups as fields of a recipe.

    Raises: CommandError for a quantization that is not available
    """
    from compiler.llm.export import in_files, partitioners_of, shares_state

    settings = ["do_quant_fusion_and_const_prop=true"]
    settings += ["emit_mutable_buffer_names=true"] if config.model.use_kv_cache else []
    settings += ["share_mutable_buffers=true"] if shares_state(config) else []
    return CompileJob(
        Source(str(Path(source.path).absolute()), source.function),
        partitioners=partitioners_of(config),
        quantising=_quantization(config.quantization),
        external_constants=in_files(config),
        backend_config=tuple(settings),
    )


def _quantization(given: QuantizationConfig) -> Quantization:
    from compiler.llm.export import linear_word, table_word

    mode, table = linear_word(given), table_word(given)
    if given.pt2e_quantize is not None:
        if mode or not given.pt2e_quantize.endswith(f"_{_DYNAMIC}"):
            known = "a backend's dynamic quantization, without qmode"
            words = f"{given.pt2e_quantize} is not available; expected {known}"
            raise CommandError(f"quantization.pt2e_quantize: {words}", USAGE)
        mode = _DYNAMIC
    elif mode and mode not in WEIGHT_WORDS:
        words = f"unknown {mode!r}; available: {', '.join(WEIGHT_WORDS)}"
        raise CommandError(f"quantization.qmode: {words}", USAGE)
    if table and table not in EMBEDDING_WORDS:
        words = f"expected BITS,GROUP, such as 4,32, found {given.embedding_quantize!r}"
        raise CommandError(f"quantization.embedding_quantize: {words}", USAGE)
    modules = tuple(f"{path}={word}" for path, word in given.modules.items())
    return Quantization(mode or ("none" if modules else ""), modules=modules, embedding=table)
