"""Runs backends and validates their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from compiler.delegate.extract import DelegateRegion, read_outside
from compiler.delegate.kept_files import with_kept_files
from compiler.errors import CompileError, source_line
from compiler.innermost import innermost
from compiler.interface.backend import (
    BackendDetails,
    CompileSpec,
    PreprocessResult,
    copied_specs,
    has_own_multimethod,
)
from compiler.interface.external_weights import where_marked
from compiler.interface.named_data import BYTES, NamedDataStoreOutput
from compiler.interface.stock_objects import backend_called
from schema.vendors.table import vendors_of

Results = dict[str, list[PreprocessResult]]
_THREADS = 2  # hashing weights is half of the work and needs no lock; 4 were no faster
_SHOWN = 5  # names that an error lists


class BackendError(CompileError):
    """A backend raised, or returned an invalid result."""


def preprocess_one(
    backend: type[BackendDetails],
    program: ExportedProgram,
    specs: list[CompileSpec],
    what: str,
) -> PreprocessResult:
    """Return a backend's result for a copy of one program.

    Raises: BackendError naming the backend, the partition and its nodes
    """
    try:
        copied = backend.copy_exported_program_for_preprocess(program, specs)
        run = partial(backend.preprocess, copied)
        result = with_kept_files(backend.__name__, specs, run)
    except Exception as error:
        raise _raised(backend, f"{what} ({_nodes(program)})", error) from error
    return where_marked(checked(backend, result, what), program)


def prepare(regions: Sequence[DelegateRegion]) -> None:
    """Let each backend look at all its partitions of a method.

    Raises: BackendError naming the backend
    """
    for name in dict.fromkeys(region.spec.backend_id for region in regions):
        backend = backend_called(name)
        change = getattr(backend, "prepare", None)  # backends of the stock package have none
        if change is None:
            continue
        mine = [region for region in regions if region.spec.backend_id == name]
        outside = frozenset(n for region in mine for n in read_outside(region))
        try:
            change([region.program for region in mine], outside)
        except Exception as error:
            tags = ", ".join(region.tag for region in mine)
            raise _raised(backend, f"partitions {tags}", error) from error


def preprocess_all(regions: Mapping[str, Sequence[DelegateRegion]]) -> Results:
    """Return the results of all regions by method, in order.

    A backend with ``preprocess_multimethod`` gets the partitions of all methods at once, the others
    one after the other, or several at a time where all of them are ``concurrent``.

    Raises: BackendError naming the backend and the partition
    """
    results: Results = {method: [] for method in regions}
    for found in regions.values():
        prepare(found)
    together = _together({r.spec.backend_id for found in regions.values() for r in found}, regions)
    single = [r for found in regions.values() for r in found if r.spec.backend_id not in together]
    left = iter(preprocess_each(single))
    for method, found in regions.items():
        for region in found:
            done = together.get(region.spec.backend_id)
            results[method].append(next(left) if done is None else done[method].pop(0))
    return results


def preprocess_each(regions: Sequence[DelegateRegion]) -> list[PreprocessResult]:
    """Return the result of each region; those of backends that allow it overlap in threads.

    Raises: BackendError naming the backend and the first partition that failed
    """
    backends = {region.spec.backend_id for region in regions}
    if not all(getattr(backend_called(name), "concurrent", False) for name in backends):
        return [_region_result(region) for region in regions]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_region_result, regions))


def _region_result(region: DelegateRegion) -> PreprocessResult:
    specs, what = copied_specs(region.spec.compile_specs), f"partition {region.tag}"
    return preprocess_one(backend_called(region.spec.backend_id), region.program, specs, what)


def _together(
    names: set[str], regions: Mapping[str, Sequence[DelegateRegion]]
) -> dict[str, Results]:
    found: dict[str, Results] = {}
    for name in sorted(names):
        backend = backend_called(name)
        if has_own_multimethod(backend):
            mine = {m: [r for r in rs if r.spec.backend_id == name] for m, rs in regions.items()}
            found[name] = _all_methods(backend, {m: rs for m, rs in mine.items() if rs})
    return found


def _all_methods(
    backend: type[BackendDetails], regions: Mapping[str, Sequence[DelegateRegion]]
) -> Results:
    specs = {m: [copied_specs(r.spec.compile_specs) for r in rs] for m, rs in regions.items()}
    try:
        programs = {
            m: [
                backend.copy_exported_program_for_preprocess(region.program, given)
                for region, given in zip(found, specs[m], strict=True)
            ]
            for m, found in regions.items()
        }
        results = backend.preprocess_multimethod(programs, specs)
    except Exception as error:
        raise _raised(backend, f"methods {', '.join(regions)}", error) from error
    requested = {m: len(found) for m, found in regions.items()}
    counts = _counts(results)
    if counts != requested:
        raise BackendError(
            f"backend {backend.__name__} returned results {counts!r} for parts {requested!r}"
        )
    for method, found in results.items():
        for region, result in zip(regions[method], found, strict=True):
            checked(backend, result, f"partition {region.tag} of {method}")
    return {
        method: [
            where_marked(result, region.program)
            for region, result in zip(regions[method], found, strict=True)
        ]
        for method, found in results.items()
    }


def _counts(results: Any) -> Any:  # noqa: ANN401
    """Return the counts of results by method; other values are returned unchanged."""
    if not isinstance(results, Mapping):
        return results
    given = cast("Mapping[Any, Any]", results)
    return {method: _count(found) for method, found in given.items()}


def _count(found: Any) -> Any:  # noqa: ANN401
    return len(cast("list[Any]", found)) if isinstance(found, (list, tuple)) else found


def checked(backend: type[BackendDetails], result: Any, what: str) -> PreprocessResult:  # noqa: ANN401
    """Return a result after checking its types.

    Raises: BackendError naming the attribute of the wrong type
    """
    name = backend.__name__
    if not isinstance(result, PreprocessResult):
        raise BackendError(
            f"backend {name} returned {type(result).__name__} for {what}, not a PreprocessResult"
        )
    given: Any = result
    data, handles, named = given.processed_bytes, given.debug_handle_map, given.data_store_output
    wrong = [
        ("processed_bytes", "bytes", data, isinstance(data, (bytes, bytearray, memoryview))),
        ("debug_handle_map", "a map of tuples of integers", handles, _is_handle_map(handles)),
        (
            "data_store_output",
            "a NamedDataStoreOutput",
            named,
            named is None or isinstance(named, NamedDataStoreOutput),
        ),
    ]
    for field, requested, found, right in wrong:
        if not right:
            raise BackendError(
                f"backend {name} returned {type(found).__name__} as {field} of {what}, expected "
                f"{requested}"
            )
    broken = "" if named is None else _why_no_store(named)
    if broken:
        raise BackendError(
            f"backend {name} returned data for {what} that cannot be stored: {broken}"
        )
    return result


def _why_no_store(named: NamedDataStoreOutput) -> str:
    """Return the invalid keys of a store, empty if all can be looked up."""
    buffers: list[Any] = [*named.buffers]
    if not all(isinstance(one, BYTES) for one in buffers):
        return "its buffers are not bytes"
    groups = (named.pte_data, *named.external_data.values())
    for key, entry in ((key, entry) for group in groups for key, entry in group.items()):
        if not 0 <= entry.buffer_index < len(buffers):
            return f"{key!r} is in buffer {entry.buffer_index} of {len(buffers)}"
        if entry.alignment < 1:
            return f"{key!r} may start at multiples of {entry.alignment}"
    return ""


def _is_handle_map(handles: Any) -> bool:  # noqa: ANN401
    if handles is None:
        return True
    if not isinstance(handles, Mapping):
        return False
    keys: list[Any] = list(handles)  # pyright: ignore[reportUnknownArgumentType]
    values: list[Any] = list(handles.values())  # pyright: ignore[reportUnknownArgumentType]
    if not all(isinstance(k, int) for k in keys) and not all(isinstance(k, str) for k in keys):
        return False
    groups: list[Any] = [
        value if isinstance(value, (tuple, list, set)) else (value,) for value in values
    ]
    return all(isinstance(handle, int) for group in groups for handle in group)


def _raised(backend: type[BackendDetails], what: str, error: Exception) -> BackendError:
    name = backend.__name__
    known = next((one.alias for one in vendors_of(name) if one.traps), "")
    hint = f" (known traps: etscope backends show {known})" if known else ""
    return BackendError(f"backend {name} failed on {what}: {innermost(error)}{hint}")


def _nodes(program: ExportedProgram) -> str:
    calls: list[torch.fx.Node] = [n for n in program.graph.nodes if n.op == "call_function"]
    names = ", ".join(node.name for node in calls[:_SHOWN])
    more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
    lines = [line for line in map(source_line, calls) if line]
    return f"{names}{more}{f'; {lines[0]}' if lines else ''}"
