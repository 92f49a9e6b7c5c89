"""Benchmarks of many architectures on both runtimes: where calls count, and where kernels do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.child import ask_module
from tests.bench.result import Result
from tests.zoo.models import MODELS

_WAYS = ("portable", "xnnpack")
_INSTRUCTION, _CALL, _RUN = 0.6e-6, 5e-6, 20e-6
"""Seconds that our runtime may take beyond the stock one."""


def zoo(folder: Path) -> Iterable[Result]:
    """One run of each architecture, of the stock runtime's time and what calls may add to it.

    Architectures whose packages are not installed (the extra `zoo`) have no figure.
    """
    for name in MODELS:
        for way in _WAYS:
            path = folder / f"zoo-{name}-{way}.pte"
            yield _result(f"zoo {name} {way}", ("run", str(path), name, way))


def generation(folder: Path) -> Iterable[Result]:
    """One word more each call: sizes that are new, and sizes that were there before."""
    for way in _WAYS:
        arguments = ("grow", str(folder / f"generation-{way}.pte"), "decoder", way)
        found = ask_module("tests.bench.zoo_child", *arguments)
        yield _line(f"generation {way}, new sizes", found)
        again = {**found, "ours": found["ours again"], "stock": found["stock again"]}
        yield _line(f"generation {way}, known sizes", again)


def tokens(folder: Path) -> Iterable[Result]:
    """A token of a Llama of eight layers, in float and in 8da4w, and with a cache of int8.

    `tests.bench.token_child` has its sizes and configurations.
    """
    for way in ("float", "8da4w", "8da4w-int8"):
        arguments = (str(folder / f"tokens-{way}.pte"), way)
        found = ask_module("tests.bench.token_child", *arguments)
        yield _line(f"token of a Llama of eight layers, {way}", found)


def allowed(found: Mapping[str, Any]) -> float:
    """Return the seconds that our runtime may take for a program.

    They are the stock runtime's, or where calls count a tenth more than those and the overhead.
    """
    return max(found["stock"], 1.1 * (found["stock"] + overhead(found)))


def overhead(found: Mapping[str, Any]) -> float:
    """Return the seconds that instructions and delegate calls may add."""
    return _INSTRUCTION * found["instructions"] + _CALL * found["calls"] + _RUN


def _result(name: str, arguments: tuple[str, ...]) -> Result:
    try:
        found = ask_module("tests.bench.zoo_child", *arguments)
    except RuntimeError as error:
        last = (str(error).strip().splitlines() or ["no answer"])[-1]
        return Result(name, 0.0, "x", detail=f"not measured: {last[:100]}")
    return _line(name, found)


def _line(name: str, found: Mapping[str, Any]) -> Result:
    ours, stock = (1e6 * found[side] for side in ("ours", "stock"))
    detail = (
        f"{ours / stock:.2f} of stock: ours {ours:,.0f} us, stock {stock:,.0f} us; "
        f"{found['instructions']} instructions, {found['calls']} delegate calls may add "
        f"{1e6 * overhead(found):,.0f} us"
    )
    return Result(
        f"{name}, of what it may take", found["ours"] / allowed(found), "x", 1.0, False, detail
    )


ZOO_CASES = (zoo, generation, tokens)
