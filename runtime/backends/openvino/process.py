"""OpenVINO's runtime in a process of its own, of any interpreter that has the package."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from runtime.backends.openvino.host import Given, OpenvinoError

_CHILD = Path(__file__).parent / "child.py"
_LONGEST_LINE = 1 << 26
_GRACE_SECONDS = 5.0


class ProcessHost:
    """Networks in a child process.

    Args:
        python: interpreter that has the package

    Raises: OpenvinoError if it does not start, or cannot import the package
    """

    direct = False

    def __init__(self, python: str) -> None:
        self._python = python
        try:
            self._process = subprocess.Popen(
                [python, str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            )
        except OSError as error:
            raise OpenvinoError(f"{python} cannot be started: {error.strerror}") from error
        self._end = weakref.finalize(self, _end, self._process)
        self._bound: dict[int, Sequence[Given]] = {}
        self._results: dict[int, list[Given]] = {}
        self._rows: dict[int, list[tuple[str, str, str, float]]] = {}
        self._profiled: set[int] = set()
        hello, _ = self._ask({"verb": "hello"})
        self.release = str(hello["release"])
        self._devices = [str(one) for one in hello["devices"]]

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def devices(self) -> list[str]:
        """Return the devices of this machine."""
        return self._devices

    def load(
        self, blob: bytes, device: str, options: Mapping[str, str], *, profiled: bool = False
    ) -> tuple[int, dict[str, Any]]:
        """Import an exported network; return its number and its facts.

        Raises: OpenvinoError with the package's reason
        """
        asked = {"device": device, "options": dict(options), "profiled": profiled}
        answer, _ = self._ask({"verb": "load", **asked}, [blob])
        number = int(answer["number"])
        if profiled:
            self._profiled.add(number)
        return number, answer["facts"]

    def bind(self, number: int, inputs: Sequence[Given], outputs: Sequence[Given] | None) -> None:
        """Set the memory that the network reads; outputs are copied out of the process."""
        assert outputs is None
        self._bound[number] = inputs

    def infer(self, number: int) -> None:
        """Run a network on the bound tensors.

        Raises: OpenvinoError with the package's reason
        """
        given = self._bound[number]
        shapes = [list(shape) for _, shape in given]
        asked = {"verb": "infer", "number": number, "shapes": shapes}
        answer, blocks = self._ask(
            {**asked, "profiled": number in self._profiled}, [data for data, _ in given]
        )
        self._rows[number] = [
            (str(name), str(kind), str(kernel), float(micros))
            for name, kind, kernel, micros in answer["rows"]
        ]
        self._results[number] = [
            (np.frombuffer(bytearray(block), np.uint8), tuple(map(int, shape)))
            for block, shape in zip(blocks, answer["shapes"], strict=True)
        ]

    def runner(self, number: int) -> Callable[[], None]:
        """Return a function that runs a network on the bound tensors; see ``infer``."""
        return partial(self.infer, number)

    def results(self, number: int) -> list[Given]:
        """Return the outputs of the last inference."""
        return self._results[number]

    def profile(self, number: int) -> list[tuple[str, str, str, float]]:
        """Return name, kind, kernel and microseconds of each layer that ran, in order."""
        return self._rows[number]

    def free(self, numbers: Sequence[int]) -> None:
        """Release networks."""
        if self.alive:
            with contextlib.suppress(OpenvinoError):
                self._ask({"verb": "free", "numbers": list(numbers)})

    def close(self) -> None:
        """End the process."""
        self._end()

    def _ask(
        self, question: Mapping[str, Any], blocks: Sequence[Any] = ()
    ) -> tuple[dict[str, Any], list[bytes]]:
        sizes = [len(memoryview(block).cast("B")) for block in blocks]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({**question, "sizes": sizes}).encode() + b"\n")
            for block in blocks:
                self._process.stdin.write(memoryview(block).cast("B"))
            self._process.stdin.flush()
            line = self._process.stdout.readline(_LONGEST_LINE)
            answer: dict[str, Any] = json.loads(line) if line else {}
            data = [self._process.stdout.read(size) for size in answer.get("sizes", ())]
        except (OSError, ValueError):
            answer, data = {}, []
        if "refused" in answer:
            raise OpenvinoError(str(answer["refused"]))
        if not answer or [len(one) for one in data] != answer["sizes"]:
            raise OpenvinoError(self._ended(str(question["verb"])))
        return answer, data

    def _ended(self, verb: str) -> str:
        _end(self._process)
        code = self._process.returncode
        how = f"signal {-code}" if code < 0 else f"code {code}"
        return f"the process of OpenVINO ({self._python}) ended with {how} at {verb!r}"


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=60)
