"""A bundled program: suites of cases, what is refused, the file and back."""

import json

import torch
from torch.export import export

from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    deserialize_from_flatbuffer_to_bundled_program,
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import to_edge
from executorch.extension.pybindings.portable_lib import (
    _load_bundled_program_from_buffer,
    _load_for_executorch_from_bundled_program,
)

numbers = {}


class Sample(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", 3 * torch.ones(2, 2))
        self.register_buffer("b", 2 * torch.ones(2, 2))

    def forward(self, x, q):
        return torch.add(torch.mul(self.a, x), self.b + q)


torch.manual_seed(4)
model = Sample()
example = (torch.rand(2, 2), torch.rand(2, 2))
program = to_edge({"forward": export(model, example)}).to_executorch()
cases = [(torch.rand(2, 2), torch.rand(2, 2)) for _ in range(4)]
suites = [
    MethodTestSuite(
        method_name="forward",
        test_cases=[
            MethodTestCase(inputs=list(inputs), expected_outputs=(model(*inputs),))
            for inputs in cases
        ],
    )
]
bundled = BundledProgram(program, suites)
data = serialize_from_bundled_program_to_flatbuffer(bundled)
numbers["identifier"] = bytes(data[4:8]).decode()
assert numbers["identifier"] == "BP08"

# Its suites again
again = deserialize_from_flatbuffer_to_bundled_program(data)
numbers["again"] = [
    [suite.method_name, len(suite.test_cases)] for suite in again.method_test_suites
]
assert numbers["again"] == [["forward", 4]]

# Run with its own inputs and compare
loaded = _load_bundled_program_from_buffer(bytes(data))
module = _load_for_executorch_from_bundled_program(loaded)
numbers["verified"] = []
for case, inputs in enumerate(cases):
    outputs = module.run_method("forward", inputs)
    torch.testing.assert_close(outputs[0], model(*inputs))
    numbers["verified"].append(float(outputs[0].sum()))


def refused(*suites):
    try:
        BundledProgram(program, list(suites))
        serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, list(suites)))
    except Exception as error:
        return type(error).__name__
    return ""


wrong_type = MethodTestSuite("forward", [MethodTestCase([torch.ones(2, 2), 1.5], None)])
wrong_name = MethodTestSuite("nosuch", [MethodTestCase(list(example), None)])
numbers["refused"] = [refused(wrong_type), refused(wrong_name)]
assert numbers["refused"] == ["AssertionError", "AssertionError"]
print(json.dumps(numbers))
