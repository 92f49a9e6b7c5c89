"""Compares a language model with its float module along a text, in the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from compiler.errors import CompileError
from compiler.llm.config import LlmConfig, read_config, split_settings
from compiler.llm.memory_check import check_model_memory
from compiler.llm.model import build_model
from inspector.files.machine import torch_release
from inspector.jobs.generating import GenerateJob, LlmGapJob
from inspector.recipes.data_source import fingerprint
from inspector.worker import executing
from inspector.worker.exporter import AnswerError, timed_stage
from inspector.worker.generating import load_runner, with_tokenizer
from inspector.worker.kernels import with_libraries
from inspector.worker.tasks import Task
from inspector.worker.token_rows import MOST_ROWS, TokenRows, tokens_left
from runtime.llm.text_runner import TextRunner


def work(job: LlmGapJob, task: Task) -> dict[str, Any]:
    """Read a text with both; return the differences of each token.

    Raises: AnswerError, CompileError, ExecutionError, OSError
    """
    torch.set_num_threads(job.threads)
    with_libraries(job.libraries)
    same = {
        name: getattr(job, name)
        for name in ("program", "tokenizer", "data_files", "threads", "engine")
    }
    runner = load_runner(with_tokenizer(GenerateJob(**same)), task)
    tokens = runner.encoded(job.text)[: job.tokens]
    if len(tokens) < 2:
        raise AnswerError("the text has less than two tokens: --text names a longer one")
    # What is longer than the context is read in parts, each from the begin.
    step = len(tokens) if runner.rolls else runner.context
    parts = [tokens[at : at + step] for at in range(0, len(tokens), step)]
    with timed_stage(task.notify, "reference"):
        config = read_config(job.config, split_settings(job.settings))
        try:
            read = reference_reader(config)
        except CompileError as error:
            raise AnswerError(f"{job.config}: {error}") from error
    kept = _KeptInputs(job)
    rows = TokenRows()
    with timed_stage(task.notify, "run"), rows.stored(job.rows, _key(job, config), parts):
        for place, part, wanted in tokens_left(parts, rows.known, read):
            if place == 0:
                runner.reset()
            token = part[place]
            kept.add(runner, token)
            text = runner.tokenizer.decode([token])
            row = _row(place, part, wanted, runner.logits_of([token]), text)
            rows.add({**row, "position": rows.sums.count})
            task.notify("counted", done=rows.sums.count, total=len(tokens))
            if task.stop.is_asked() and rows.sums.count > 1:
                break
    return {
        "program": job.program,
        "tokens": tokens[:MOST_ROWS],
        "token_count": len(tokens),
        **({"method": kept.method} if kept.method else {}),
        **({"restart": rows.restart} if rows.restart else {}),
        **rows.sums.summary(),
    }


def _key(job: LlmGapJob, config: LlmConfig) -> dict[str, str]:
    """Return what is compared and how, by name; the tokens themselves are in the rows.

    Raises: OSError
    """
    files = [fingerprint(path) for path in (job.program, *job.data_files, *job.libraries)]
    model = [fingerprint(path) for path in (job.config, config.base.checkpoint) if path]
    return {
        "the program": " ".join((job.engine, str(job.threads), *files)),
        "the float model": " ".join((job.settings, *model)),
        "torch": torch_release(),
    }


class _KeptInputs:
    """Writes the inputs of the first calls, for a run that logs their values.

    Only those of the first part of a text: the next one begins with an empty cache.
    """

    def __init__(self, job: LlmGapJob) -> None:
        self._folder, self._left = Path(job.inputs), job.calls if job.inputs else 0
        self._number = 0
        self.method = ""

    def add(self, runner: TextRunner, token: int) -> None:
        """Write the inputs of the call that a token needs."""
        if self._left <= 0 or runner.position != self._number:
            self._left = 0
            return
        self.method, _, inputs = runner.next_inputs([token])
        torch.save(inputs, self._folder / f"{self._number:05}.pt")
        self._number += 1
        self._left -= 1


def reference_reader(config: LlmConfig) -> Callable[[list[int]], Iterator[torch.Tensor]]:
    """Return what computes the logits of the float module behind each token of a text, in turn.

    A cache that rolls reads a text of any length, whose logits would not fit into memory at once.
    """
    whole = replace(
        config,
        model=replace(config.model, quantize_kv_cache=False, dtype_override="fp32"),
        debug=replace(config.debug, generate_full_logits=True),
    )
    check_model_memory(whole)
    module = build_model(whole).module
    step = whole.export.max_seq_length  # a cache that wraps has room for no longer call

    def read(tokens: list[int]) -> Iterator[torch.Tensor]:
        if not whole.model.use_kv_cache:
            yield from module(torch.tensor([tokens]))[0].float()
            return
        for at in range(0, len(tokens), step):
            part = torch.tensor([tokens[at : at + step]])
            yield from module(part, torch.tensor([at]))[0].float()

    return torch.no_grad()(read)


def _row(
    place: int, tokens: list[int], wanted: torch.Tensor, found: torch.Tensor, text: str
) -> dict[str, Any]:
    for name, logits in (("float model", wanted), ("program", found)):
        if bool(logits.isnan().any()):
            words = f"the logits of the {name} behind token {place} are not numbers (NaN)"
            raise AnswerError(f"{words}: there is nothing to compare")
    reference = torch.log_softmax(wanted.double(), -1)
    own = torch.log_softmax(found.double(), -1)
    following = tokens[place + 1] if place + 1 < len(tokens) else None
    best = int(found.argmax())
    margin = float(wanted.max() - wanted[best])
    return {
        "position": place,
        "token": tokens[place],
        "text": text,
        "max_abs": float((wanted - found).abs().max()),
        "kl": max(float((reference.exp() * (reference - own)).sum()), 0.0),
        "top1": int(wanted.argmax()) == best,
        "margin": margin,
        "reference_loss": None if following is None else -float(reference[following]),
        "loss": None if following is None else -float(own[following]),
    }


failure = executing.failure
