"""XNNPACK: float, static quantization by export, and 8-bit activations with 4-bit weights."""

import json

import torch
from torchao.quantization.granularity import PerGroup
from torchao.quantization.quant_api import (
    Int8DynamicActivationIntxWeightConfig,
    quantize_,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

numbers = {}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2)
        self.norm = torch.nn.BatchNorm2d(8)
        self.linear = torch.nn.Linear(8 * 7 * 7, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.linear(x.flatten(1))


def lowered_output(exported, inputs):
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    program = lowered.to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return method.execute(list(inputs))[0], len(program.buffer)


torch.manual_seed(2)
net, inputs = Net().eval(), (torch.randn(1, 3, 16, 16),)
output, float_bytes = lowered_output(torch.export.export(net, inputs), inputs)
torch.testing.assert_close(output, net(*inputs), rtol=1e-3, atol=1e-4)
numbers["float"] = output.flatten().tolist()

quantizer = XNNPACKQuantizer()
quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
prepared = prepare_pt2e(torch.export.export(net, inputs).module(), quantizer)
draw = torch.Generator().manual_seed(3)
for _ in range(3):
    prepared(torch.randn(1, 3, 16, 16, generator=draw))
prepared(*inputs)
quantized = convert_pt2e(prepared)
output, _ = lowered_output(torch.export.export(quantized, inputs), inputs)
error = float((output - quantized(*inputs)).abs().max())
assert error < 0.05, error
numbers["static"] = output.flatten().tolist()

torch.manual_seed(4)
linear = torch.nn.Sequential(
    torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 32)
).eval()
inputs = (torch.randn(2, 64),)
reference, float_bytes = lowered_output(torch.export.export(linear, inputs), inputs)
quantize_(
    linear,
    Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)),
)
eager = linear(*inputs)
output, nbytes = lowered_output(torch.export.export(linear, inputs), inputs)
torch.testing.assert_close(output, eager, rtol=0.05, atol=0.05)
assert nbytes < 0.5 * float_bytes, (nbytes, float_bytes)
numbers["8da4w"] = output.flatten().tolist()
print(json.dumps(numbers))
