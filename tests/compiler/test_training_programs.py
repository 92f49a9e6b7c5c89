"""Programs with a backward pass: trained by our runtime and by the stock one, beside eager."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import export
from torch.export.experimental import _export_forward_backward

from compiler import ExecutorchBackendConfig, to_edge
from runtime.api import Runtime
from runtime.compat.training import (
    TrainingModule,
    _load_for_executorch_for_training_from_buffer,
    get_sgd_optimizer,
)
from schema import etrecord
from schema import program as pte
from tests.tools.forked import run_stock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # torch's export, of itself
]

_STEPS = 3
_STOCK = """
import logging, sys, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
import torch
from executorch.extension.training import (
    _load_for_executorch_for_training_from_buffer as load, get_sgd_optimizer)
buffer, inputs, steps = torch.load(sys.argv[1], weights_only=False)
module, runs, optimizer = load(buffer), [], None
for _ in range(steps):
    outputs = [v.clone() for v in module.forward_backward("forward", inputs)]
    if optimizer is None:
        optimizer = get_sgd_optimizer(module.named_parameters(), 0.1, 0.9, 0, 0.01, False)
    optimizer.step(module.named_gradients())
    runs.append((outputs, {k: v.clone() for k, v in module.named_parameters().items()}))
torch.save(runs, sys.argv[2])
"""


class Net(torch.nn.Module):
    """A loss first, then a result that has no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 6), torch.nn.Linear(6, 4, bias=False)
        self.scale = torch.nn.Parameter(torch.ones(4), requires_grad=False)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.second(torch.tanh(self.first(x))) * self.scale
        return torch.nn.functional.cross_entropy(found, y), found.detach().argmax(dim=1)


def _made(**options: Any) -> tuple[Net, Any, tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(0)
    net, inputs = Net(), (torch.randn(5, 3), torch.tensor([0, 3, 1, 2, 0]))
    program = _export_forward_backward(export(net, inputs))
    edge = to_edge(program, generate_etrecord=True)
    return net, edge.to_executorch(ExecutorchBackendConfig(**options)), inputs


def _eager(net: Net, inputs: tuple[torch.Tensor, torch.Tensor]) -> list[Any]:
    trained = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, 0.1, 0.9, 0, 0.01)
    runs: list[Any] = []
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss, found = net(*inputs)
        loss.backward()
        optimizer.step()
        named = {k: v.detach().clone() for k, v in net.named_parameters() if v.requires_grad}
        runs.append(([loss.detach(), found], named))
    return runs


def _close(ours: list[Any], wanted: list[Any]) -> None:
    for (outputs, named), (others, expected) in zip(ours, wanted, strict=True):
        torch.testing.assert_close(outputs, others, rtol=1e-5, atol=1e-6)
        assert list(named) == list(expected)
        torch.testing.assert_close(named, expected, rtol=1e-5, atol=1e-6)


def _trained(module: TrainingModule, inputs: tuple[torch.Tensor, torch.Tensor]) -> list[Any]:
    runs: list[Any] = []
    optimizer = None
    for _ in range(_STEPS):
        outputs = module.forward_backward("forward", inputs)
        if optimizer is None:
            optimizer = get_sgd_optimizer(module.named_parameters(), 0.1, 0.9, 0, 0.01, False)
        optimizer.step(module.named_gradients())
        runs.append((outputs, {k: v.clone() for k, v in module.named_parameters().items()}))
    return runs


def test_program_with_gradients_trains_as_eager_does() -> None:
    net, made, inputs = _made()
    names = {plan.name for plan in pte.decode(made.buffer).plans}
    kinds = ("gradients_index", "parameters_index", "fqn")
    assert names == {"forward", *(f"__et_training_{kind}_forward" for kind in kinds)}
    module = _load_for_executorch_for_training_from_buffer(made.buffer)
    _close(_trained(module, inputs), _eager(net, inputs))


def test_weights_in_a_file_of_their_own_train_too(tmp_path: Path) -> None:
    net, made, inputs = _made(external_mutable_weights=True)
    (tmp_path / "model.pte").write_bytes(made.buffer)
    made.write_tensor_data_to_file(str(tmp_path))
    files = list(tmp_path.glob("*.ptd"))
    assert len(files) == 1
    program = Runtime().load_program(tmp_path / "model.pte", data_path=files)
    _close(_trained(TrainingModule(program), inputs), _eager(net, inputs))


def test_record_of_a_program_with_gradients_names_them(tmp_path: Path) -> None:
    _, made, _ = _made()
    made.get_etrecord().save(str(tmp_path / "model.etrecord"))
    record = etrecord.decode((tmp_path / "model.etrecord").read_bytes())
    assert len(record.edge_graph("forward").nodes) > 10


@pytest.mark.interop
def test_stock_runtime_trains_our_program_as_eager_does(tmp_path: Path) -> None:
    net, made, inputs = _made()
    given, found = tmp_path / "given.pt", tmp_path / "found.pt"
    torch.save((bytes(made.buffer), list(inputs), _STEPS), given)
    run_stock(["-c", _STOCK, given, found])
    _close(torch.load(found, weights_only=False), _eager(net, inputs))
