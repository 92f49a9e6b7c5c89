"""Trainable programs: one that the stock compiler wrote, trained beside the stock module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.compat.training import (
    SGD,
    TrainingModule,
    _load_for_executorch_for_training,
    _load_for_executorch_for_training_from_buffer,
    get_sgd_optimizer,
)
from tests.runtime.one_op import one_operator
from tests.tools.forked import run_stock

pytestmark = [pytest.mark.slow]

_STOCK = """
import sys, warnings, logging
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
import torch
from torch.export import export
from torch.export.experimental import _export_forward_backward
from executorch.exir import to_edge
from executorch.extension.training import (
    _load_for_executorch_for_training_from_buffer as load, get_sgd_optimizer)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 5), torch.nn.Linear(5, 2)
        self.loss = torch.nn.CrossEntropyLoss()
    def forward(self, x, y):
        found = self.second(torch.relu(self.first(x)))
        return self.loss(found, y), found.detach().argmax(dim=1)

torch.manual_seed(0)
net = Net()
x, y = torch.randn(4, 2), torch.tensor([0, 1, 1, 0])
program = to_edge(_export_forward_backward(export(net, (x, y)))).to_executorch()
module = load(program.buffer)
runs = []
for step in range(4):
    outputs = module.forward_backward("forward", (x, y))
    gradients = {k: v.clone() for k, v in module.named_gradients().items()}
    if step == 0:
        start = {k: v.clone() for k, v in module.named_parameters().items()}
        optimizer = get_sgd_optimizer(module.named_parameters(), 0.1, 0.9, 0, 0.01, False)
    optimizer.step(module.named_gradients())
    after = {k: v.clone() for k, v in module.named_parameters().items()}
    runs.append(([v.clone() for v in outputs], gradients, after))
torch.save((program.buffer, [x, y], start, runs), sys.argv[1])
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Any], Any, Any]:
    path = tmp_path_factory.mktemp("training") / "stock.pt"
    run_stock(["-c", _STOCK, path])
    return torch.load(path, weights_only=False)


def close(ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> bool:
    assert list(ours) == list(theirs)
    return all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)


@pytest.mark.interop
def test_training_steps_equal_those_of_the_stock_module(
    trained: tuple[bytes, list[Any], Any, Any], tmp_path: Path
) -> None:
    buffer, inputs, start, runs = trained
    module = _load_for_executorch_for_training_from_buffer(buffer)
    assert close(module.named_parameters(), start)
    module.save_parameters(tmp_path / "start.ptd")
    optimizer = get_sgd_optimizer(module.named_parameters("forward"), 0.1, 0.9, 0, 0.01, False)
    for outputs, gradients, after in runs:
        found = module.forward_backward("forward", inputs)
        assert all(map(torch.allclose, found, outputs))
        assert close(module.named_gradients("forward"), gradients)
        optimizer.step(module.named_gradients("forward"))
        assert close(module.named_parameters("forward"), after)
    assert not close(module.named_parameters(), start)
    module.load_parameters(tmp_path / "start.ptd")
    assert close(module.named_parameters(), start)
    (loss, _) = module.forward_backward("forward", inputs)
    assert torch.allclose(loss, runs[0][0][0])


@pytest.mark.interop
def test_gradients_before_the_first_run_are_refused(
    trained: tuple[bytes, list[Any], Any, Any], tmp_path: Path
) -> None:
    path = tmp_path / "model.pte"
    path.write_bytes(trained[0])
    with pytest.raises(ExecutionError) as raised:
        _load_for_executorch_for_training(path).named_gradients()
    assert raised.value.code == ErrorCode.InvalidState


def test_program_without_gradients_says_what_it_lacks() -> None:
    program, given = one_operator("aten::neg.out", [torch.ones(2)], [(torch.float32, (2,))])
    module = TrainingModule(Runtime.get().load_program(program))
    with pytest.raises(ExecutionError, match="exported without gradients"):
        module.forward_backward("forward", given)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.8, "dampening": 0.3},
        {"weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
    ],
)
def test_descent_steps_equal_those_of_torch(options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    ours = {"a": torch.randn(3, 2), "b": torch.randn(4)}
    theirs = {name: torch.nn.Parameter(value.clone()) for name, value in ours.items()}
    one, other = SGD(ours, 0.05, **options), torch.optim.SGD(theirs.values(), 0.05, **options)
    for _ in range(5):
        gradients = {name: torch.randn_like(value) for name, value in ours.items()}
        for name, value in gradients.items():
            theirs[name].grad = value.clone()
        one.step(gradients)
        other.step()
    assert all(torch.allclose(ours[name], theirs[name].detach(), atol=1e-6) for name in ours)


@pytest.mark.parametrize("options", [{"lr": -1.0}, {"lr": 0.1, "nesterov": True}])
def test_descent_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ExecutionError) as raised:
        SGD({}, **options)
    assert raised.value.code == ErrorCode.InvalidArgument


def test_gradient_of_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ExecutionError, match="not a parameter"):
        SGD({"a": torch.ones(1)}, 0.1).step({"b": torch.ones(1)})
