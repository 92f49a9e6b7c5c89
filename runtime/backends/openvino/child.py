"""Serves networks to the parent: ``python child.py``, requests on standard input.

A message is a line of JSON, then the bytes it announces. The process ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO, Any


def main() -> int:
    """Answer requests until the input ends."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the package prints is no answer
    sys.path[0] = str(Path(__file__).resolve().parent)
    from host import LocalHost, OpenvinoError  # beside this file

    host: Any = None
    while True:
        line = source.readline()
        if not line:
            return 0
        asked = json.loads(line)
        blocks = [source.read(size) for size in asked["sizes"]]
        try:
            if host is None:
                host = LocalHost()
            answer, data = _answer(host, asked, blocks)
        except OpenvinoError as error:
            answer, data = {"refused": str(error)}, []
        _send(target, {**answer, "sizes": [len(one) for one in data]}, data)


def _answer(
    host: Any,  # noqa: ANN401 - of another path
    asked: dict[str, Any],
    blocks: list[bytes],
) -> tuple[dict[str, Any], list[Any]]:
    import numpy as np

    verb = asked["verb"]
    if verb == "hello":
        return {"release": host.release, "devices": host.devices()}, []
    if verb == "load":
        number, facts = host.load(
            blocks[0], asked["device"], asked["options"], profiled=asked["profiled"]
        )
        return {"number": number, "facts": facts}, []
    if verb == "free":
        host.free(asked["numbers"])
        return {}, []
    given = [
        (np.frombuffer(bytearray(block), np.uint8), tuple(shape))
        for block, shape in zip(blocks, asked["shapes"])  # noqa: B905 - 3.9
    ]
    host.bind(asked["number"], given, None)
    host.infer(asked["number"])
    results = host.results(asked["number"])
    rows: list[Any] = host.profile(asked["number"]) if asked["profiled"] else []
    shapes = [list(shape) for _, shape in results]
    return {"shapes": shapes, "rows": rows}, [data.tobytes() for data, _ in results]


def _send(target: IO[bytes], answer: dict[str, Any], data: list[Any]) -> None:
    target.write(json.dumps(answer).encode() + b"\n")
    for block in data:
        target.write(block)
    target.flush()


if __name__ == "__main__":
    sys.exit(main())
