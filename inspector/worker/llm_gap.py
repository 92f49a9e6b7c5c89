"""Compares a language model with its float module along a text, in the worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from compiler.errors import CompileError
from compiler.llm.config import LlmConfig, read_config, split_settings
from compiler.llm.memory_check import check_model_memory
from compiler.llm.model import build_model
from inspector.jobs.generating import GenerateJob, LlmGapJob
from inspector.worker import executing
from inspector.worker.exporter import AnswerError, timed_stage
from inspector.worker.generating import load_runner, with_tokenizer
from inspector.worker.kernels import with_libraries
from inspector.worker.tasks import Task
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
    rows: list[dict[str, Any]] = []
    kept = _KeptInputs(job)
    with timed_stage(task.notify, "run"):
        for place, part, wanted in _in_turn(parts, read):
            if place == 0:
                runner.reset()
            token = part[place]
            kept.add(runner, token)
            text = runner.tokenizer.decode([token])
            row = _row(place, part, wanted, runner.logits_of([token]), text)
            rows.append({**row, "position": len(rows)})
            task.notify("counted", done=len(rows), total=len(tokens))
            if task.stop.is_asked() and len(rows) > 1:
                break
    method = {"method": kept.method} if kept.method else {}
    return {"program": job.program, "tokens": tokens, "rows": rows, **method, **_summary(rows)}


def _in_turn(
    parts: list[list[int]], read: Callable[[list[int]], Iterator[torch.Tensor]]
) -> Iterator[tuple[int, list[int], torch.Tensor]]:
    """Return each token's place in its part, the part, and the logits of the float module."""
    for part in parts:
        for place, wanted in enumerate(read(part)):
            yield place, part, wanted


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


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return agreement and perplexities; the first call whose choice differs beyond its error."""
    read = [one for one in rows if one["loss"] is not None]
    beyond = (one for one in rows if not one["top1"] and one["margin"] > 2 * one["max_abs"])
    return {
        "top1_agreement": sum(one["top1"] for one in rows) / len(rows),
        "mean_kl": sum(one["kl"] for one in rows) / len(rows),
        "max_abs": max(one["max_abs"] for one in rows),
        "perplexity": math.exp(sum(one["loss"] for one in read) / len(read)),
        "reference_perplexity": math.exp(sum(one["reference_loss"] for one in read) / len(read)),
        "first_difference": next((one["position"] for one in rows if not one["top1"]), None),
        "first_unexplained": next((one["position"] for one in beyond), None),
    }


failure = executing.failure
