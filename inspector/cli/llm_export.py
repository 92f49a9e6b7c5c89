"""llm export: the program and the record of a configuration."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.answer import USAGE, Answer, CommandError
from inspector.cli.compile import compile_answer
from inspector.cli.job_runs import finished, refused
from inspector.cli.llm_files import config_source, read_source
from inspector.cli.progress import Progress
from inspector.cli.recipes import check_recipe
from inspector.jobs.guard import AUTO
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import (
    EMBEDDING_WORDS,
    WEIGHT_WORDS,
    CompileJob,
    Quantization,
    Source,
)

if TYPE_CHECKING:
    from compiler.llm.config import LlmConfig, QuantizationConfig

_DYNAMIC = "dynamic"


def run(options: Namespace) -> Answer:
    """Compile in a worker process; the folder is complete or as it was before.

    Raises: CommandError
    """
    source = config_source(options)
    options.inputs = [source.path]
    if options.folder is None:
        raise CommandError("where to? -o DIR names the folder", USAGE)
    job = compile_job(source, read_source(source))
    check_recipe(job)
    try:
        running = JobRun(
            job, Path(options.folder), force=options.force, timeout=options.timeout, guard=AUTO
        )
    except FolderError as error:
        raise refused(error) from error
    progress = Progress(sys.stderr, verbose=options.verbose)
    outcome = finished(running, progress, verbose=options.verbose)
    return compile_answer(outcome.result, str(options.folder), ())


def compile_job(source: Source, config: LlmConfig) -> CompileJob:
    """Return the compile of a configuration: its groups as fields of a recipe.

    Raises: CommandError for a quantization that is not available
    """
    from compiler.llm.export import partitioners_of, shares_state

    settings = ["do_quant_fusion_and_const_prop=true"]
    settings += ["share_mutable_buffers=true"] if shares_state(config) else []
    return CompileJob(
        Source(str(Path(source.path).absolute()), source.function),
        partitioners=partitioners_of(config),
        quantising=_quantization(config.quantization),
        external_constants=bool(config.export.foundation_weights_file),
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
