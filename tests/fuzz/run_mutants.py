"""Runs damaged programs that still open, as a worker does: python -m tests.fuzz.run_mutants.

One line is printed before and after each mutant, so that whoever started this knows which one
ended the process.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import sys
import time
import traceback
import warnings
from typing import Any

import torch

from runtime import (
    DebugLevel,
    ErrorCode,
    EventTracer,
    ExecutionError,
    Method,
    MethodMeta,
    Runtime,
)
from runtime.memory.slots import dtype_of
from schema import program as pte
from schema.errors import FormatError
from tests.fuzz.plan_fields import mutated
from tests.fuzz.run import DAMAGES, DATA, SECONDS, HangError, corpus, damage_of, time_limit

PLANS = (
    "corpus/v1.5.1/convnet_portable",
    "corpus/v1.5.1/tinygpt_portable",
    "corpus/special/control_flow",
    "extra/kv_cache",
    "extra/lstm_portable",
    "extra/map_rows",
    "corpus/v1.5.1/mm_portable",
)
_BUDGET, _RUNS, _MOST_BYTES = 2_000, 3, 64 << 20


def main() -> int:
    """Run the mutants of the seeded slice that are programs, and plans with senseless fields."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=int)
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--fields", type=int, default=0, help="plans with senseless fields")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    files = corpus()
    for seed in options.seeds:
        for number in range(options.cases):
            path = files[number % len(files)]
            if path.suffix == ".pte":
                case = seed * 1_000_003 + number
                _say(str(path.relative_to(DATA)), case, _damaged(path.read_bytes(), case))
    for number in range(options.fields):
        name = PLANS[number % len(PLANS)]
        _say(name, number, _senseless((DATA / name / "model.pte").read_bytes(), number))
    return 0


def _say(name: str, seed: int, found: str) -> None:
    sys.stdout.write(json.dumps([name, seed, found]) + "\n")
    sys.stdout.flush()


def _damaged(original: bytes, seed: int) -> str:
    kind = damage_of(random.Random(f"kind {seed}"))
    return _outcome(DAMAGES[kind](original, seed)[1])


def _senseless(original: bytes, seed: int) -> str:
    try:
        said, data = mutated(original, random.Random(f"plan {seed}"))
    except (struct.error, FormatError, ValueError):
        return "refused"  # no file can say this
    found = _outcome(data)
    return f"{found} [{said[:300]}]" if found.startswith("failed") else found


def _outcome(data: bytes) -> str:
    try:
        pte.decode(data)
    except FormatError:
        return "refused"
    start = time.process_time()
    try:
        with time_limit(SECONDS):
            found = _run(data)
    except HangError:
        return "failed: hangs"
    except Exception:  # noqa: BLE001 - every escape is a finding
        return "failed: " + traceback.format_exc(limit=-4)
    slow = time.process_time() - start
    return f"failed: took {slow:.1f} s" if slow > SECONDS else found


def _run(data: bytes) -> str:
    """Run all methods without and with a trace, several times each: the results must be equal."""
    try:
        plain, traced = (Runtime.get().load_program(data) for _ in range(2))
    except ExecutionError as error:
        return f"error {error.code.name}"
    found = {"nothing"}
    for plan in plain.file.plans[:4]:
        try:
            results = _results(plain.fresh_method(plan.name, engine="torch"))
        except ExecutionError as error:
            found.add(f"error {error.code.name}")
            continue
        method = traced.fresh_method(plan.name, engine="torch")
        method.tracer = EventTracer(DebugLevel.INTERMEDIATE)
        if not all(map(_same, results, _results(method))):
            return "failed: a run without a trace gives something else"
        found.add("ran")
    return "ran" if "ran" in found else min(found)


def _results(method: Method) -> list[Any]:
    method.instruction_budget = _BUDGET
    inputs = _inputs(method.metadata)
    return [value for _ in range(_RUNS) for value in method.execute(inputs)]


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor):
        return a == b or a != a
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), 1e-4, 1e-5, equal_nan=True)


def _inputs(meta: MethodMeta) -> list[Any]:
    found: list[Any] = []
    for index in range(meta.num_inputs()):
        if meta.input_tag(index) != "Tensor":
            found.append(1)
            continue
        info = meta.input_tensor_meta(index)
        if not 0 <= info.nbytes() <= _MOST_BYTES:
            raise ExecutionError(ErrorCode.MemoryAllocationFailed, f"input {index} is too large")
        found.append(torch.ones(info.sizes(), dtype=dtype_of(info.dtype())))
    return found


if __name__ == "__main__":
    sys.exit(main())
