"""Compare our API with the stock one in one process, on folders and on traces made for it.

Runs as a process of its own, because executorch stays out of the test process:
python -m tests.inspector.api_against_stock OUT VARIANTS FOLDER… writes one JSON object to OUT, a
list of differences for each case. (What flatc says goes to standard output, so the answer cannot.)
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from executorch.devtools import Inspector as StockInspector  # noqa: E402
from executorch.devtools.inspector import TimeScale as StockScale  # noqa: E402

from inspector import Inspector, MissingTensor, TimeScale  # noqa: E402

ATTRIBUTES = (
    "name",
    "op_types",
    "delegate_debug_identifier",
    "num_outputs",
    "stack_traces",
    "module_hierarchy",
    "is_delegated_op",
    "delegate_backend_name",
    "raw_delegate_debug_metadatas",
    "delegate_debug_metadatas",
    "start_time",
    "_instruction_id",
)
FRAMEWORK = ("Method::init", "Program::load_method", "Method::execute")
STATISTICS = ("raw", "p10", "p50", "p90", "avg", "min", "max")


def variants(folder: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield a name, arguments for both tools, and extra arguments for the tables."""
    trace = {"etdump_path": str(folder / "run.etdp")}
    record = {"etrecord": str(folder / "model.etrecord")}
    buffer = {"debug_buffer_path": str(folder / "run.debug")}
    everything = {**trace}
    everything |= record if (folder / "model.etrecord").exists() else {}
    everything |= buffer if (folder / "run.debug").exists() else {}
    yield "all", everything, {}
    yield "trace alone", trace, {"include_units": False}
    yield "no buffer", {k: v for k, v in everything.items() if k != "debug_buffer_path"}, {}
    yield "us to s", {**everything, "source_time_scale": "US", "target_time_scale": "S"}, {}
    cycles = {"source_time_scale": "CYCLES", "target_time_scale": "CYCLES"}
    yield "cycles", {**everything, **cycles}, {}
    yield "modules", {**everything, "enable_module_hierarchy": True}, {}
    shown = {"include_delegate_debug_data": True}
    yield "parsed", {**everything, "delegate_metadata_parser": parse}, shown
    yield "raw metadata", everything, shown
    yield "converted", {**everything, "delegate_time_scale_converter": convert}, {}


def parse(metadata: list[Any]) -> dict[str, Any]:
    """Return columns for what a backend attached."""
    sizes = [len(entry) for entry in metadata]
    return {"sizes": sizes, "count": len(sizes)} if any(sizes) else {}


def convert(name: str, ticks: float) -> float:
    """Return another time for events inside delegates."""
    return ticks * 3 + len(name)


def differences(arguments: dict[str, Any], shown: dict[str, Any]) -> list[str]:
    """Return what differs between the two tools, each as a sentence."""
    ours, stock = Inspector(**_scaled(arguments, TimeScale)), None
    try:
        stock = StockInspector(**_scaled(arguments, StockScale))
    except Exception as error:  # noqa: BLE001 - then there is nothing to compare with
        return [f"stock refuses: {type(error).__name__}: {str(error)[:200]}"]
    found = list(_blocks(ours, stock, "debug_buffer_path" in arguments))
    found += _frames(ours.to_dataframe(**shown), stock.to_dataframe(**shown))
    found += _texts(ours, stock, shown)
    names = {
        key
        for b in stock.event_blocks
        for e in b.events
        for h in e.module_hierarchy.values()
        for key in h or ()
    }
    for name in (*sorted(names), "no such module", "L"):
        one, two = ours.find_total_for_module(name), stock.find_total_for_module(name)
        if abs(one - two) > 1e-12 * abs(two):
            found.append(f"total of {name!r}: {one} for {two}")
    return found


def _scaled(arguments: dict[str, Any], scale: Any) -> dict[str, Any]:
    names = ("source_time_scale", "target_time_scale")
    return {key: scale[value] if key in names else value for key, value in arguments.items()}


def _texts(ours: Any, stock: Any, shown: dict[str, Any]) -> Iterator[str]:
    for name in ("print_data_tabular", "save_data_to_tsv"):
        texts = [io.StringIO(), io.StringIO()]
        for tool, text in zip((ours, stock), texts, strict=True):
            getattr(tool, name)(text, **shown)
        if texts[0].getvalue() != texts[1].getvalue():
            yield f"{name} differs"


def _blocks(ours: Any, stock: Any, has_buffer: bool) -> Iterator[str]:
    if len(ours.event_blocks) != len(stock.event_blocks):
        yield f"{len(ours.event_blocks)} blocks for {len(stock.event_blocks)}"
    for one, two in zip(ours.event_blocks, stock.event_blocks, strict=False):
        for name in ("name", "bundled_input_index"):
            if getattr(one, name) != getattr(two, name):
                yield f"block {name}: {getattr(one, name)} for {getattr(two, name)}"
        yield from _values(f"{one.name} output", one.run_output, two.run_output, has_buffer)
        both = (one.reference_output, two.reference_output)
        if both[0] is None and two.bundled_input_index == -1:
            continue  # the stock tool takes the last of several cases for a run without one
        if None in both and both[0] is not both[1]:
            yield f"{one.name} reference: {both[0]} for {both[1]}"
        elif both[0] is not None:
            # A lone tensor is taken apart row by row when the stock tool compares it; ours is one.
            stock_values = [both[1]] if isinstance(both[1], torch.Tensor) else both[1]
            yield from _values(f"{one.name} reference", both[0], stock_values, True)
        if len(one.events) != len(two.events):
            yield f"{len(one.events)} events for {len(two.events)} in {one.name}"
        for event, other in zip(one.events, two.events, strict=False):
            yield from _event(event, other, has_buffer)


def _event(one: Any, two: Any, has_buffer: bool) -> Iterator[str]:
    for name in ATTRIBUTES:
        if name == "num_outputs" and two.name in FRAMEWORK:
            continue  # of the instruction that has number 0 as well
        if getattr(one, name) != getattr(two, name):
            yield f"{two.name} {name}: {getattr(one, name)!r} for {getattr(two, name)!r}"
    if two.name not in FRAMEWORK and one.debug_handles != two.debug_handles:
        yield f"{two.name} debug_handles: {one.debug_handles!r} for {two.debug_handles!r}"
    if (one.perf_data is None) != (two.perf_data is None):
        yield f"{two.name} perf_data: {one.perf_data} for {two.perf_data}"
    elif one.perf_data is not None:
        for name in STATISTICS:
            if getattr(one.perf_data, name) != getattr(two.perf_data, name):
                a, b = (getattr(perf, name) for perf in (one.perf_data, two.perf_data))
                yield f"{two.name} {name}: {a!r} for {b!r}"
    yield from _values(f"{two.name} debug_data", one.debug_data, two.debug_data, has_buffer)
    frames = one.to_dataframe(" (x)"), two.to_dataframe(" (x)")
    yield from _frames(*frames)


def _values(where: str, ours: Any, stock: Any, has_buffer: bool) -> Iterator[str]:
    if len(ours) != len(stock):
        yield f"{where}: {len(ours)} values for {len(stock)}"
    for one, two in zip(ours, stock, strict=False):
        if isinstance(two, list):
            yield from _values(where, one, two, has_buffer)
        elif not _same_value(one, two, has_buffer):
            yield f"{where}: {one!r} for {two!r}"[:300]


def _same_value(one: Any, two: Any, has_buffer: bool) -> bool:
    if not isinstance(two, torch.Tensor):
        return one == two and type(one) is type(two)
    if not has_buffer and two.numel():  # zeros in place of what is not there
        return isinstance(one, MissingTensor) and one.shape == tuple(two.shape)
    same_type = isinstance(one, torch.Tensor) and one.dtype == two.dtype
    if not same_type or one.shape != two.shape:
        return False
    if not one.is_contiguous():  # the stock tool reads the elements in the wrong order
        one = one.as_strided(one.shape, two.stride())
    return bool(((one == two) | (one != one) & (two != two)).all())


def _frames(ours: Any, stock: Any) -> Iterator[str]:
    if list(ours.columns) != list(stock.columns):
        yield f"columns {list(ours.columns)} for {list(stock.columns)}"
        return
    if list(ours.index) != list(stock.index):
        yield "another index"
        return
    for name in stock.columns:
        if ours[name].dtype != stock[name].dtype:
            yield f"column {name} is {ours[name].dtype} for {stock[name].dtype}"
        if name == "debug_data":
            continue  # compared event by event
        for row, (one, two) in enumerate(zip(ours[name], stock[name], strict=True)):
            if type(one) is not type(two) or not (one == two or (one != one and two != two)):
                yield f"row {row} {name}: {one!r} for {two!r}"[:300]


def main(out: str, wanted: str, *folders: str) -> int:
    """Compare folders in the variants wanted (joined by commas) and write what differs."""
    found: dict[str, list[str]] = {}
    for folder in map(Path, folders):
        for name, arguments, shown in variants(folder):
            if name in wanted.split(","):
                found[f"{folder.name}: {name}"] = differences(arguments, shown)[:20]
    Path(out).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
