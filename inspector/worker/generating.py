"""Generates text in the worker; each piece is reported as it appears."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from inspector.jobs.generating import GenerateJob
from inspector.worker import executing
from inspector.worker.data_set import file_item
from inspector.worker.exporter import AnswerError, timed_stage
from inspector.worker.inputs import flat_values
from inspector.worker.kernels import with_libraries
from inspector.worker.llm_tokenizer import recipe_tokenizer
from inspector.worker.missing_data import missing_data_named
from inspector.worker.tasks import Task
from runtime.llm.chat import ChatError, chat_prompt, chat_template
from runtime.llm.generation import CallTime, GenerationConfig, GenerationStats
from runtime.llm.multimodal import Audio, Image, MultimodalRunner, Part, reads_embeddings
from runtime.llm.text_runner import TextRunner
from runtime.llm.tokenizers import TokenizerError
from schema.recipe.tokenizers import BYTE_TOKENIZER
from schema.version import __version__

_BYTES = 256  # tokens of a program without a tokenizer


def work(job: GenerateJob, task: Task) -> dict[str, Any]:
    """Generate; return text, tokens and times.

    Raises: AnswerError, ExecutionError, OSError
    """
    if job.threads:
        torch.set_num_threads(job.threads)
    with_libraries(job.libraries)
    job = with_tokenizer(job)
    runner = load_runner(job, task)
    prompt = _prompt(job)
    config = GenerationConfig(
        max_new_tokens=job.max_new_tokens,
        temperature=job.temperature,
        top_p=job.top_p,
        seed=job.seed,
        num_bos=job.num_bos,
        ignore_eos=job.ignore_eos,
        stop=job.stop,
        chat=job.chat,
    )
    if job.warmup:
        with timed_stage(task.notify, "warm up"):
            runner.warmup(prompt)
    pieces: list[str] = []
    calls: list[CallTime] = []

    def show(piece: str) -> None:
        pieces.append(piece)
        task.notify("generated", text=piece, calls=len(calls))

    task.stop.when_asked(runner.stop)
    with timed_stage(task.notify, "run"):
        stats = _generate(runner, job, prompt, (config, show, calls.append))
    task.stop.when_asked(None)
    return {
        "etscope": __version__,
        "program": job.program,
        "facts": runner.facts,
        "prompt": prompt,
        **({"parts": [list(one) for one in job.parts]} if job.parts else {}),
        "text": "".join(pieces),
        "ended": stats.ended,
        "prompt_tokens": stats.prompt_tokens,
        "tokens": stats.tokens,
        "load_ms": stats.load_ms,
        "prefill_ms": stats.prefill_ms,
        "first_token_ms": stats.first_token_ms,
        "tokens_per_second": stats.tokens_per_second,
        "threads": torch.get_num_threads(),
        "calls": [asdict(one) for one in stats.calls],
    }


def _generate(
    runner: TextRunner, job: GenerateJob, prompt: str, how: tuple[Any, Any, Any]
) -> GenerationStats:
    """Generate behind a text, or behind the parts of a request and a text."""
    if not isinstance(runner, MultimodalRunner):
        return runner.generate(prompt, *how)
    return runner.generate([*map(_part, job.parts), prompt], *how)


def _part(part: tuple[str, str]) -> Part:
    """Return a part of a prompt.

    Raises: AnswerError for a file with anything but one tensor; ValuesError, OSError
    """
    kind, value = part
    if kind == "text":
        return value
    held = file_item(Path(value))
    untyped: Any = torch
    array = isinstance(held, np.ndarray)
    found = [untyped.from_numpy(held)] if array else flat_values(held, value)
    tensors = list(found)
    if len(tensors) != 1 or not isinstance(tensors[0], torch.Tensor):
        raise AnswerError(f"{value}: expected one tensor, found {len(tensors)} values")
    return Image(tensors[0]) if kind == "image" else Audio(tensors[0])


def with_tokenizer(job: GenerateJob) -> GenerateJob:
    """Return the request with the tokenizer of the recipe where it names none.

    Raises: AnswerError
    """
    return job if job.tokenizer else replace(job, tokenizer=recipe_tokenizer(job.program))


def load_runner(job: GenerateJob, task: Task) -> TextRunner:
    """Return the loaded runner of a request.

    Raises: AnswerError for a missing tokenizer, ExecutionError, OSError
    """
    tokenizer = job.tokenizer or BYTE_TOKENIZER
    try:
        kind = MultimodalRunner if job.parts or reads_embeddings(job.program) else TextRunner
        runner = kind(job.program, tokenizer, job.data_files, job.engine)
    except TokenizerError as error:
        raise AnswerError(str(error)) from error
    data = missing_data_named(job.program, job.data_files)
    with timed_stage(task.notify, "load"), data:
        runner.load()
    size = runner.facts.get("get_vocab_size")
    if not job.tokenizer and size not in (None, _BYTES):
        words = f"{job.program} has {size:,} tokens: name its tokenizer"
        raise AnswerError(words)
    return runner


def _prompt(job: GenerateJob) -> str:
    if not job.chat:
        return job.prompt
    folder = Path(job.tokenizer)
    messages = [{"role": "system", "content": job.system}] if job.system else []
    messages.append({"role": "user", "content": job.prompt})
    try:
        template, tokens = chat_template(folder if folder.is_dir() else folder.parent)
        return chat_prompt(template, tokens, messages)
    except ChatError as error:
        raise AnswerError(str(error)) from error


failure = executing.failure
