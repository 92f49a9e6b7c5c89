"""ETRecord and Inspector: records of three ways, a trace with values, tables, gaps and comparisons."""

import copy
import io
import json
import tempfile
from pathlib import Path

import torch
from torch.export import export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import ETRecord, generate_etrecord, Inspector, parse_etrecord
from executorch.devtools.inspector import compare_results, TimeScale
from executorch.devtools.inspector.numerical_comparator import NumericalComparatorBase
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.runtime import Runtime

numbers = {}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.linear = torch.nn.Linear(4 * 14 * 14, 6)

    def forward(self, x):
        return self.linear(torch.relu(self.conv(x)).flatten(1)).softmax(1).cumsum(1)


torch.manual_seed(5)
net, inputs = Net().eval(), (torch.randn(1, 3, 16, 16),)
folder = Path(tempfile.mkdtemp())

# A record of copies that were kept on the way
edge = to_edge(export(net, inputs))
edge_copy = copy.deepcopy(edge)
lowered = edge.to_backend(XnnpackPartitioner())
program = lowered.to_executorch()
generate_etrecord(folder / "kept.etrecord", edge_copy, program)
kept = parse_etrecord(str(folder / "kept.etrecord"))
assert len(kept.edge_dialect_program.graph.nodes) > 4

# A record that the lowering keeps itself
lowered = to_edge_transform_and_lower(
    export(net, inputs), partitioner=[XnnpackPartitioner()], generate_etrecord=True
)
program = lowered.to_executorch()
record: ETRecord = program.get_etrecord()
record.update_representative_inputs([inputs])
record.save(str(folder / "own.etrecord"))
own = parse_etrecord(str(folder / "own.etrecord"))
assert own.edge_dialect_program is not None
(folder / "model.pte").write_bytes(program.buffer)

# A trace with values
runtime = Runtime.get()
method = runtime.load_program(folder / "model.pte").load_method("forward")
output = method.execute(list(inputs))[0]
torch.testing.assert_close(output, net(*inputs), rtol=1e-3, atol=1e-5)
numbers["output"] = output.flatten().tolist()

from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

module = _load_for_executorch_from_buffer(
    program.buffer, enable_etdump=True, debug_buffer_size=1 << 20
)
traced = module.forward(list(inputs))[0]
torch.testing.assert_close(traced, output, rtol=1e-4, atol=1e-6)
module.write_etdump_result_to_file(str(folder / "run.etdp"), str(folder / "run.debug"))

inspector = Inspector(
    etdump_path=str(folder / "run.etdp"),
    etrecord=str(folder / "own.etrecord"),
    debug_buffer_path=str(folder / "run.debug"),
    source_time_scale=TimeScale.NS,
    target_time_scale=TimeScale.MS,
)
shown = io.StringIO()
inspector.print_data_tabular(shown, include_delegate_debug_data=True, include_units=True)
assert "native_call_cumsum.out" in shown.getvalue()
names = set()
for block in inspector.event_blocks:
    for event in block.events:
        names.add(event.name)
        if event.name == "native_call_cumsum.out":
            numbers["cumsum traced"] = True
            assert list(event.stack_traces) != []
            assert event.perf_data.avg >= 0
    if block.name == "Execute":
        run_output = block.run_output
assert "DELEGATE_CALL" in names
torch.testing.assert_close(run_output[0], output, rtol=1e-4, atol=1e-6)

frame = inspector.calculate_numeric_gap("MSE")
assert len(frame) > 0
gaps = [gap for row in frame["gap"] for gap in (row if isinstance(row, list) else [row])]
assert max(gaps) < 1e-6, gaps


class Largest(NumericalComparatorBase):
    def element_compare(self, a, b) -> float:
        if not isinstance(a, torch.Tensor):
            return abs(a - b)
        return float((a.double() - b.double()).abs().max())


own_gap = inspector.calculate_numeric_gap(Largest())
assert len(own_gap) == len(frame)

result = compare_results([net(*inputs)], run_output)
for metric in ("snr", "mse", "cosine_similarity"):
    assert any(metric in str(key).lower() for key in result), list(result)

scaled = Inspector(
    etdump_path=str(folder / "run.etdp"),
    etrecord=own,
    delegate_time_scale_converter=lambda name, time: time / 1000,
    delegate_metadata_parser=lambda metadata: {"entries": len(metadata)},
)
assert "event_name" in scaled.to_dataframe().columns
print(json.dumps(numbers))
