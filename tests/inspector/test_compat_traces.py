"""Blocks of traces that are objects of the stock package, beside the stock tool's own."""

from __future__ import annotations

import pytest

from tests.architecture.tree import run_python
from tests.inspector.sessions import folders

pytestmark = [pytest.mark.slow, pytest.mark.interop]
BESIDE_STOCK = """
import warnings
warnings.simplefilter("ignore")
import logging; logging.disable(logging.CRITICAL)
from pathlib import Path
import torch
from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc
from executorch.devtools.inspector import _inspector as stock
from inspector import EventBlock, MissingTensor, TimeScale
from inspector.compat.devtools import traces as ours

def same(a, b):
    if isinstance(b, torch.Tensor):
        return isinstance(a, MissingTensor) or torch.equal(a, b)
    return list(map(same, a, b)) == [True] * len(b) if isinstance(b, (list, tuple)) else a == b

done = 0
for folder in map(Path, {folders!r}):
    try:
        dump = deserialize_from_etdump_flatcc((folder / "run.etdp").read_bytes())
    except Exception:
        continue  # what the stock tool cannot read
    buffer = folder / "run.debug"
    data = buffer.read_bytes() if buffer.exists() and buffer.stat().st_size else None
    try:
        wanted = stock.EventBlock._gen_from_etdump(dump, output_buffer=data)
    except (AssertionError, RuntimeError, TypeError, ValueError):
        continue  # what the stock tool refuses
    found = EventBlock._gen_from_etdump(dump, TimeScale.NS, TimeScale.MS, output_buffer=data)
    assert [block.name for block in found] == [block.name for block in wanted], folder
    for one, two in zip(found, wanted):
        assert [e.name for e in one.events] == [e.name for e in two.events]
        for a, b in zip(one.events, two.events):
            assert (a.instruction_id, a.delegate_debug_identifier, a.is_delegated_op) == (
                b._instruction_id, b.delegate_debug_identifier, b.is_delegated_op)
            assert a.start_time == b.start_time
            assert len(a.debug_data) == len(b.debug_data)
            assert all(map(same, a.debug_data, b.debug_data)), (folder, a.name)
            if b.perf_data is not None and not b.is_delegated_op:
                assert torch.allclose(torch.tensor(a.perf_data.raw), torch.tensor(b.perf_data.raw))
            done += 1
    for run in dump.run_data:
        for event in run.events or ():
            for kind, logged in (("Profile", event.profile_event), ("Debug", event.debug_event)):
                if logged is not None:
                    name = kind + "EventSignature"
                    pair = [getattr(tool, name)._gen_from_event(logged) for tool in (ours, stock)]
                    assert vars(pair[0]) == vars(pair[1])
print(done)
"""
ONE_BY_ONE = """
import copy, random, warnings
warnings.simplefilter("ignore")
import logging; logging.disable(logging.CRITICAL)
from collections import defaultdict
import executorch.devtools.etdump.schema_flatcc as flatcc
from executorch.devtools.inspector import _inspector as stock
from inspector import Event, EventBlock
from inspector.compat.devtools import traces as ours

made = random.Random(0)
IDS = [(-1, ""), (-1, ""), (0, ""), (7, ""), (-1, "conv"), (-1, "z")]

def place(step, number):
    return dict(chain_index=0, instruction_id=step, delegate_debug_id_int=number[0],
        delegate_debug_id_str=number[1])

def timed(step, number, said):
    start = made.randrange(100)
    kept = said if number != (-1, "") else None
    return flatcc.ProfileEvent(name="native_call", start_time=start, end_time=start + 7,
        delegate_debug_metadata=kept, **place(step, number))

def logged(step, number):
    value = flatcc.Value(val=flatcc.ValueType.INT.value, tensor=None, tensor_list=None,
        int_value=flatcc.Int(step), float_value=None, double_value=None, bool_value=None,
        output=None)
    return flatcc.DebugEvent(name="", debug_entry=value, **place(step, number))

def run(kinds):
    events = []
    for step, (number, both, said) in enumerate(kinds):
        events.append(flatcc.Event(timed(step, number, said), None, None))
        if both:
            events.append(flatcc.Event(None, None, logged(step, number)))
    return flatcc.RunData("Execute", events=events, bundled_input_index=-1, allocators=[])

FIELDS = ("name", "delegate_debug_identifier", "is_delegated_op", "delegate_debug_metadatas",
    "_instruction_id", "_start_time", "debug_handles", "num_outputs", "delegate_backend_name",
    "op_types", "stack_traces", "module_hierarchy")
done = 0
for _ in range(20):
    kinds = [(made.choice(IDS), made.random() < 0.5, made.choice(["", "m"])) for _ in range(6)]
    runs = [run(kinds) for _ in range(3)]
    groups = defaultdict(list)
    for each in runs:
        for event in stock.InstructionEvent.gen_from_events(each.events):
            for signature, part in stock.EventSignature.gen_from_instruction_event(event):
                groups[signature].append(part)
    both = [[tool.Event._gen_from_inference_events(key, parts, 1.0, None, None, convert)
        for key, parts in groups.items()]
        for tool in (stock, ours) for convert in (lambda name, time: time / 10,)]
    blocks = stock.EventBlock("b", both[0]), EventBlock("b", both[1])
    handle_map = {str(step): [step + 1] for step in range(5)}
    delegates = {"1": {"name": "A", "delegate_map": {"0": (3,), "7": (4, 5), "conv": 6}},
        "2": {"name": "B", "delegate_map": {"z": [8]}}, "3": {"name": "C", "delegate_map": None}}
    nodes = {handle: [stock.OperatorNode(f"n{handle}", metadata={"stack_trace": str(handle),
        "nn_module_stack": {"a": handle}}, op=f"op{handle}")] for handle in (1, 3, 4, 8)}
    for block in blocks:
        block._gen_resolve_debug_handles(handle_map, delegates, {"1": 2})
        for event in block.events:
            event._associate_with_op_graph_nodes(nodes)
    for a, b in zip(both[0], both[1], strict=True):
        assert [getattr(a, name) for name in FIELDS] == [getattr(b, name) for name in FIELDS]
        assert a.debug_data == b.debug_data
        assert all(abs(x - y) < 1e-9 for x, y in zip(a.perf_data.raw, b.perf_data.raw, strict=True))
        done += 1
    frames = [block.to_dataframe(True) for block in blocks]
    assert list(frames[0]["event_name"]) == list(frames[1]["event_name"])
dump = flatcc.ETDumpFlatCC(version=0, run_data=runs)
for each in runs[:1]:
    each.events[-1] = flatcc.Event(None, None, logged(9, (-1, "")))
    other = copy.deepcopy(each)
    other.events[-1].debug_event.debug_entry.int_value.int_val = 1
dump = flatcc.ETDumpFlatCC(version=0, run_data=[each, other])
for tool in (stock.EventBlock, EventBlock):
    try:
        tool._gen_from_etdump(dump)
    except AssertionError:
        done += 1
print(done)
"""


def test_events_made_one_by_one_are_those_of_the_stock_tool() -> None:
    assert int(run_python(ONE_BY_ONE).split()[-1]) == 122


def test_blocks_are_those_of_the_stock_tool() -> None:
    traced = [str(folder) for folder in folders("run.etdp")[::7]][:6]  # each asks flatc
    assert int(run_python(BESIDE_STOCK.format(folders=traced)).split()[-1]) > 20
