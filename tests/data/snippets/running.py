"""Running programs: the runtime API, and the bindings below it."""

import json
import tempfile
from pathlib import Path

import torch
from torch.export import export

from executorch.exir import to_edge
from executorch.extension.pybindings import portable_lib
from executorch.runtime import Method, Program, Runtime, Verification

numbers = {}


class Net(torch.nn.Module):
    def forward(self, x, y):
        return x @ y, x + y


pair = (torch.eye(3) * 2, torch.arange(9.0).reshape(3, 3))
program = to_edge(export(Net(), pair)).to_executorch()
path = Path(tempfile.mkdtemp()) / "model.pte"
with path.open("wb") as file:
    program.write_to_file(file)

runtime: Runtime = Runtime.get()
loaded: Program = runtime.load_program(path, verification=Verification.InternalConsistency)
assert loaded.method_names == {"forward"}
assert runtime.backend_registry.registered_backend_names is not None
numbers["operators"] = "aten::add.out" in runtime.operator_registry.operator_names
assert numbers["operators"]
method: Method = loaded.load_method("forward")
numbers["outputs"] = [output.tolist() for output in method.execute(pair)]
assert numbers["outputs"] == [output.tolist() for output in Net()(*pair)]
metadata = method.metadata
numbers["metadata"] = [metadata.name(), metadata.num_inputs(), metadata.num_outputs()]
assert numbers["metadata"] == ["forward", 2, 2]
numbers["sizes"] = [list(metadata.input_tensor_meta(at).sizes()) for at in range(2)]

module = portable_lib._load_for_executorch(str(path))
numbers["forward"] = [output.tolist() for output in module.forward(list(pair))]
assert numbers["forward"] == numbers["outputs"]
numbers["methods"] = list(module.method_names())
numbers["run_method"] = [output.tolist() for output in module.run_method("forward", pair)]
assert numbers["run_method"] == numbers["outputs"]
print(json.dumps(numbers))
