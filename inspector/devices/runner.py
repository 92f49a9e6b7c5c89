"""The command that runs a program on a device: a template whose words are filled in for each pass.

A word whose placeholder has no value in a pass is left out, together with the flag before it where
the word is nothing but the placeholder. So one template serves passes with and without a trace.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from inspector.devices.errors import DeviceError

DEFAULT_RUNNER = (
    "executor_runner --model_path={program} --data_path={data} --method_name={method}"
    " --inputs={inputs} --output_file={output} --num_executions={runs} --cpu_threads={threads}"
    " --etdump_path={etdump}"
)
PLACEHOLDERS = {
    "program": "the .pte",
    "data": "the .ptd, if any",
    "method": "the method, if it is not the first",
    "inputs": "files of raw tensors, with commas between them",
    "output": "outputs are written to this name with -0.bin, -1.bin and so on after it",
    "runs": "how often to run it",
    "warmup": "runs before them; without it, more runs are made and the first ones dropped",
    "threads": "number of threads",
    "etdump": "where the trace goes",
    "debug_buffer": "where logged values go",
    "debug_bytes": "size of the debug buffer",
}
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_NUMBER = r"([0-9][0-9.]*(?:[eE][-+]?[0-9]+)?)"
_ITERATION = re.compile(rf"Iteration \d+ of \d+: {_NUMBER} ms")
_TOTAL = re.compile(rf"executed successfully (\d+) time\(s\) in {_NUMBER} ms")
_LOADED = re.compile(rf"Model loaded in {_NUMBER} ms")


@dataclass(frozen=True, slots=True)
class RunnerTimes:
    """The times in the output of a runner.

    Units: ms

    Attributes:
        each: every run, where it prints them
        runs: number of runs in the total
        total: time of all runs, None if not printed
        loaded: loading the program, None if not printed
    """

    each: tuple[float, ...] = ()
    runs: int = 0
    total: float | None = None
    loaded: float | None = None


def check_runner(template: str) -> None:
    """Raise DeviceError for a template that cannot be filled in."""
    words = _words(template)
    names = {name for word in words for name in _PLACEHOLDER.findall(word)}
    if unknown := sorted(names - set(PLACEHOLDERS)):
        there = ", ".join(PLACEHOLDERS)
        raise DeviceError(f"unknown placeholder {{{unknown[0]}}}; available: {there}", "usage")
    if not words or "program" not in names:
        raise DeviceError("the command of a runner needs {program}", "usage")


def has_placeholder(template: str, name: str) -> bool:
    """Return whether a template has a placeholder."""
    return f"{{{name}}}" in template


def runner_words(template: str, values: Mapping[str, str | None]) -> list[str]:
    """Return the words of the command of a pass.

    Args:
        template: of the device
        values: of the placeholders; None or missing leaves a word out
    """
    found: list[str] = []
    for word in _words(template):
        names = _PLACEHOLDER.findall(word)
        if all(values.get(name) is not None for name in names):
            found.append(_PLACEHOLDER.sub(lambda match: values[match[1]] or "", word))
        elif _PLACEHOLDER.fullmatch(word) and found and found[-1].startswith("-"):
            found.pop()
    return found


def shell_command(words: list[str]) -> str:
    """Return words as a command of a POSIX shell; ``~/`` at the start of the first is the home."""
    first, *others = words
    head = f'"$HOME"/{shlex.quote(first[2:])}' if first.startswith("~/") else shlex.quote(first)
    return " ".join([head, *map(shlex.quote, others)])


def printed_times(output: str) -> RunnerTimes:
    """Return the times in the output of a runner, as ``executor_runner`` prints them."""
    total = list(_TOTAL.finditer(output))[-1:]
    loaded = _LOADED.search(output)
    return RunnerTimes(
        tuple(float(found[1]) for found in _ITERATION.finditer(output)),
        int(total[0][1]) if total else 0,
        float(total[0][2]) if total else None,
        float(loaded[1]) if loaded else None,
    )


def _words(template: str) -> list[str]:
    try:
        return shlex.split(template)
    except ValueError as error:
        raise DeviceError(f"the command of a runner: {error}", "usage") from None
