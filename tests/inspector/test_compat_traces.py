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
from inspector.compat import traces as ours

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


def test_blocks_are_those_of_the_stock_tool() -> None:
    traced = [str(folder) for folder in folders("run.etdp")[::7]][:6]  # each asks flatc
    assert int(run_python(BESIDE_STOCK.format(folders=traced)).split()[-1]) > 20
