"""The high-level export: a recipe of XNNPACK, the session's stages, the program and its record."""

import json

import torch

from executorch.backends.xnnpack.recipes import XNNPackRecipeType
from executorch.export import export, ExportRecipe
from executorch.runtime import Runtime

torch.manual_seed(7)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()
inputs = (torch.randn(2, 8),)
session = export(
    model=net,
    example_inputs=[inputs],
    export_recipe=ExportRecipe.get_recipe(XNNPackRecipeType.FP32),
    generate_etrecord=True,
)
buffer = session.get_pte_buffer()
output = Runtime.get().load_program(buffer).load_method("forward").execute(list(inputs))[0]
torch.testing.assert_close(output, net(*inputs), rtol=1e-3, atol=1e-5)
torch.testing.assert_close(session.run_method("forward", inputs)[0], output)
assert session.get_etrecord() is not None
print(json.dumps({"output": output.flatten().tolist()}))
