"""A language model as in the nanoGPT tutorial: portable, XNNPACK, quantized, and looked at."""

import copy
import json
import tempfile
from pathlib import Path

import torch
from tabulate import tabulate
from torch.export import export
from torch.nn.attention import sdpa_kernel, SDPBackend
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch.backends.transforms.duplicate_dynamic_quant_chain import (
    DuplicateDynamicQuantChainPass,
)
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    get_symmetric_quantization_config,
    XNNPACKQuantizer,
)
from executorch.backends.xnnpack.utils.configs import get_xnnpack_edge_compile_config
from executorch.devtools import generate_etrecord
from executorch.devtools.backend_debug import get_delegation_info
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.utils import format_delegated_graph
from executorch.runtime import Runtime

WORDS, WIDTH, HEADS, LONGEST = 31, 16, 2, 24


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, count, _ = x.shape
        q, k, v = (
            part.view(batch, count, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(WIDTH, dim=2)
        )
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, count, WIDTH))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Embedding(LONGEST, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        places = torch.arange(0, tokens.shape[1], dtype=torch.long)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, [-1], :] @ self.words.weight.T


def generate(forward, count):
    tokens = [1, 2, 3]
    for _ in range(count):
        logits = forward(torch.tensor([tokens], dtype=torch.long))
        tokens.append(int(logits[0, -1].argmax()))
    return tokens


def runner(program):
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return lambda tokens: method.execute([tokens])[0]


numbers = {}
torch.manual_seed(6)
model = GPT().eval()
example = (torch.randint(0, WORDS, (1, 8), dtype=torch.long),)
dynamic_shape = ({1: torch.export.Dim("token_dim", max=LONGEST - 1)},)
with sdpa_kernel([SDPBackend.MATH]), torch.no_grad():
    m = export(model, example, dynamic_shapes=dynamic_shape).module()
    traced_model = export(m, example, dynamic_shapes=dynamic_shape)
expected = generate(model, 12)
numbers["eager"] = expected

# Portable kernels
edge_manager = to_edge(traced_model, compile_config=EdgeCompileConfig(_check_ir_validity=False))
numbers["portable"] = generate(runner(edge_manager.to_executorch()), 12)
assert numbers["portable"] == expected

# XNNPACK, with the edge config of the backend
edge_config = get_xnnpack_edge_compile_config()
edge_manager = to_edge(traced_model, compile_config=edge_config)
edge_copy = copy.deepcopy(edge_manager)
edge_manager = edge_manager.to_backend(XnnpackPartitioner())
info = get_delegation_info(edge_manager.exported_program().graph_module)
assert info.num_delegated_subgraphs > 0
assert str(info.num_delegated_subgraphs) in info.get_summary()
table = tabulate(info.get_operator_delegation_dataframe(), headers="keys", tablefmt="fancy_grid")
assert "linear" in table or "addmm" in table or "mm" in table
assert format_delegated_graph(edge_manager.exported_program().graph_module)
et_program = edge_manager.to_executorch()
numbers["xnnpack"] = generate(runner(et_program), 12)
assert numbers["xnnpack"] == expected
path = Path(tempfile.mkdtemp()) / "etrecord.bin"
generate_etrecord(str(path), edge_copy, et_program)
assert path.stat().st_size > 0

# Quantized: scales of activations at run time, constants left as they are
with sdpa_kernel([SDPBackend.MATH]), torch.no_grad():
    m = export(model, example, dynamic_shapes=dynamic_shape).module()
    quantizer = XNNPACKQuantizer()
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True))
    m = prepare_pt2e(m, quantizer)
    m(*example)
    m = convert_pt2e(m, fold_quantize=False)
    DuplicateDynamicQuantChainPass()(m)
    quantized = m
    traced_model = export(m, example, dynamic_shapes=dynamic_shape)
lowered = to_edge_transform_and_lower(
    traced_model, compile_config=edge_config, partitioner=[XnnpackPartitioner()]
)
forward = runner(lowered.to_executorch())
for count in (3, 8, 15):
    tokens = torch.randint(0, WORDS, (1, count), dtype=torch.long)
    torch.testing.assert_close(forward(tokens), quantized(tokens), rtol=0.05, atol=0.05)
numbers["quantized tokens"] = len(generate(forward, 3))
print(json.dumps(numbers))
