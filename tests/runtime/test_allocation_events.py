"""Allocation events as the stock reader of traces finds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime import EventTracer
from schema import etdump
from tests.runtime.samples import inputs_of, load
from tests.tools.forked import run_stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]

_STOCK = """
import json, sys
from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc
from executorch.devtools.inspector import _inspector_utils as utils
found = []
for run in deserialize_from_etdump_flatcc(open(sys.argv[1], "rb").read()).run_data:
    events = [e.allocation_event for e in run.events if e.allocation_event]
    found.append([run.name, [a.name for a in run.allocators or ()],
                  [[e.allocator_id, e.allocation_size] for e in events], len(run.events)])
refused = ""
try:
    utils.gen_etdump_object(sys.argv[1])
    from executorch.devtools import Inspector
    Inspector(etdump_path=sys.argv[1])
except ValueError as error:
    refused = str(error)
print(json.dumps([found, refused]))
"""


def test_stock_reader_finds_allocators_and_sizes_and_its_inspector_says_no(tmp_path: Path) -> None:
    tracer = EventTracer(allocations=True)
    program = load("extra/lstm_portable", tracer=tracer)
    method = program.load_method("forward")
    method.execute(inputs_of(method.metadata))
    program.write_etdump_result_to_file(tmp_path / "run.etdp")
    done = run_stock(["-c", _STOCK, tmp_path / "run.etdp"])
    found, refused = json.loads(done.stdout.splitlines()[-1])
    ours = [
        [
            run.name,
            list(run.allocators),
            [
                [event.allocator_id, event.allocation_size]
                for event in run.events
                if isinstance(event, etdump.AllocationEvent)
            ],
            len(run.events),
        ]
        for run in etdump.decode((tmp_path / "run.etdp").read_bytes()).run_data
    ]
    assert found == ours
    sizes = [size for _, size in ours[0][2]]
    assert sizes == [*method.memory.planned_bytes, method.memory.temporary_bytes]
    assert "populated event" in refused  # why they are only logged when they are asked for
