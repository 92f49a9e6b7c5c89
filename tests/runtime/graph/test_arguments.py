"""Arguments of a delegate call: those that a payload reads, and the order of their dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from runtime.backends.graph import GraphBackend, Operation, OperatorTable
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.graph.torch_call import call_of
from runtime.delegates.interface import DelegateTracer
from runtime.errors import ExecutionError
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads import Payload

LAST = (0, 2, 3, 1)  # dim order of a channels-last image


def _sum(*tensors: torch.Tensor) -> torch.Tensor:
    return torch.ones(2) * sum(float(one.sum()) for one in tensors)


def _double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def _engine(run: Any, inputs: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> GraphEngine:
    names = [f"x{at}" for at in range(len(inputs))]
    values = {
        name: GraphValue(name, TensorMeta(6, sizes))
        for name, sizes in zip((*names, "y"), (*inputs, result), strict=True)
    }
    given = tuple(Argument(values=(name,)) for name in names)
    node = GraphNode("node", NodeKind.CALL, "run", given, ("y",))
    graph = Graph("main", (node,), values, tuple(names), ("y",))
    table = OperatorTable(lambda one, _: Operation(run, one.inputs))
    return GraphEngine(Payload("Any", "any", 0, graph), table, 0)


def _call(engine: GraphEngine, args: list[torch.Tensor], *, memory: bool = False) -> Any:
    """Call a payload; an image that is dense with its channels last has that dim order."""

    class Backend(GraphBackend):
        id = "Any"
        in_memory_order = memory

    def dim_order(one: torch.Tensor) -> tuple[int, ...]:
        last = one.dim() == 4 and one.is_contiguous(memory_format=torch.channels_last)
        return LAST if last and not one.is_contiguous() else tuple(range(one.dim()))

    stored: list[torch.Tensor] = []
    context: Any = SimpleNamespace(
        tracer=DelegateTracer(None, (0, 0)),
        dim_order=dim_order,
        store=lambda _argument, result: stored.append(result),
    )
    Backend().execute(context, engine, args)
    (found,) = stored
    return found


@pytest.mark.parametrize(
    ("inputs", "given", "read"),
    [
        ([(2, 3)], [(2, 3)], [0]),
        ([], [(2, 3)], []),  # a constant instead of zeros like the argument
        ([(4,)], [(2, 3), (4,)], [1]),
        ([(4,), (5,)], [(4,), (2, 3), (5,)], [0, 2]),
    ],
)
def test_arguments_that_no_node_reads_are_left_out(
    inputs: list[tuple[int, ...]], given: list[tuple[int, ...]], read: list[int]
) -> None:
    args = [torch.full(sizes, float(at + 1)) for at, sizes in enumerate(given)]
    found = _call(_engine(_sum, inputs, (2,)), [*args, torch.zeros(2)])
    assert found.tolist() == [float(sum(args[at].sum() for at in read))] * 2


@pytest.mark.parametrize(
    ("inputs", "given"),
    [
        ([(4,)], [(4,), (4,)]),  # either of them
        ([(4,)], [(3,), (5,)]),  # none of them
        ([(4,), (4,)], [(4,)]),  # too few
        ([(4,)] * 12, [(4,)] * 24),  # more choices than a compiler leaves
    ],
)
def test_arguments_that_may_be_others_are_refused(
    inputs: list[tuple[int, ...]], given: list[tuple[int, ...]]
) -> None:
    args = [torch.ones(sizes) for sizes in given]
    with pytest.raises(ExecutionError, match=f"payload has {len(inputs)} inputs and 1 outputs"):
        _call(_engine(_sum, inputs, (2,)), [*args, torch.zeros(2)])


@pytest.mark.parametrize("sizes", [(1, 3, 8, 8), (2, 3, 3, 3), (2, 1, 4, 5), (1, 5, 1, 7)])
@pytest.mark.parametrize("last", [False, True])
def test_payloads_in_memory_order_read_and_write_channels_last_images(
    sizes: tuple[int, ...], last: bool
) -> None:
    layout = torch.channels_last if last else torch.contiguous_format
    image = torch.randn(sizes).contiguous(memory_format=layout)
    held = tuple(sizes[dim] for dim in LAST) if last and not image.is_contiguous() else sizes

    def checked(x: torch.Tensor) -> torch.Tensor:
        assert tuple(x.shape) == held
        return _double(x)

    result = torch.zeros(sizes).contiguous(memory_format=layout)
    found = _call(_engine(checked, [held], held), [image, result], memory=True)
    assert torch.equal(found, 2 * image)


def test_product_with_packed_weights_takes_a_row_of_a_view() -> None:
    """As behind the last step of a sequence in channels first: strides of (30, 15)."""
    operator: Any = torch.ops.aten._weight_int8pack_mm.default
    given = [Argument(values=(name,)) for name in ("x", "weight", "scales")]
    called = call_of(operator, given, lambda _name, _kind: None)
    x, weight, scales = (
        torch.randn(2, 6, 15)[..., -1],
        torch.ones(4, 6).to(torch.int8),
        torch.ones(4),
    )
    assert not x.is_contiguous()
    torch.testing.assert_close(called.run(x, weight, scales), x @ weight.float().t())
