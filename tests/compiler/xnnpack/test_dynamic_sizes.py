"""Sizes that are only known at run time: each program runs on every engine, at other sizes too."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F  # noqa: N812  torch's own habit

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.backends.xnnpack.configs import UnsqueezeCopyConfig
from compiler.delegate.preprocess import BackendError
from compiler.dialect.delegate_call import executorch_call_delegate
from runtime import Runtime
from schema.etrecord.parts.verdicts import NodeOutcome
from tests.compiler.stock import Stock
from tests.compiler.xnnpack import quantizing as q

pytestmark = pytest.mark.slow
BATCH, CHANNELS, HEIGHT, WIDTH = 0, 1, 2, 3
SETS = ((HEIGHT,), (WIDTH,), (HEIGHT, WIDTH), (BATCH, HEIGHT, WIDTH), (BATCH, WIDTH))
OTHER = {BATCH: 3, HEIGHT: 22, WIDTH: 14}


class Of(nn.Module):
    """A function of one tensor."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Joined(nn.Module):
    """A convolution to one channel inside, whose result is joined with its operand."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 1, 1), nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([x, self.first(x)], 1)).softmax(-1)


NETS: dict[str, tuple[nn.Module, int]] = {
    "first": (nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1)), 1),
    "kept": (nn.Conv2d(1, 1, 3, padding=1), 1),
    "depthwise": (nn.Sequential(nn.Conv2d(1, 4, 1), nn.Conv2d(4, 4, 3, groups=4)), 1),
    "segmented": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.MaxPool2d(2), nn.ConvTranspose2d(4, 1, 2, 2)
        ),
        2,
    ),
    "inside": (Joined(), 3),
    "pooled": (Of(lambda x: F.avg_pool2d(x, 2) - F.max_pool2d(x, 2)), 1),
    "signs": (Of(lambda x: torch.sigmoid(F.max_pool2d(x.abs(), 2)) * 2), 1),
    "slopes": (nn.Sequential(nn.Conv2d(2, 1, 3), nn.PReLU(1)), 2),
    "permuted": (Of(lambda x: x.permute(0, 2, 3, 1) + 1), 1),
    "permuted_back": (Of(lambda x: F.max_pool2d(x, 2).permute(0, 2, 1, 3) * 2), 1),
}


def image(channels: int, sizes: dict[int, int]) -> torch.Tensor:
    torch.manual_seed(sum(sizes.values()) + channels)
    shape = {BATCH: 1, CHANNELS: channels, HEIGHT: 16, WIDTH: 18} | sizes
    return torch.randn(*(shape[dim] for dim in range(4)))


def dynamic(dims: tuple[int, ...]) -> dict[int, Any]:
    return {dim: Dim.AUTO(min=1 if dim == BATCH else 8, max=32) for dim in dims}


def assert_runs(
    manager: Any, module: Any, calls: list[tuple[torch.Tensor, ...]], stock: Stock, atol: float
) -> None:
    """Compare our engines and the stock runtime with a module at each size."""
    buffer = manager.to_executorch().buffer
    wanted = [module(*given) for given in calls]
    found = {"stock": [one[0] for one in stock.run(buffer, [("forward", g) for g in calls])]}
    for engine in ("torch", "native"):
        method = Runtime.get().load_program(buffer).load_method("forward", engine=engine)
        found[engine] = [method.execute(list(given))[0].clone() for given in calls]
    for engine, values in found.items():
        for value, right in zip(values, wanted, strict=True):
            torch.testing.assert_close(
                value, right, rtol=0, atol=atol, msg=lambda text, e=engine: f"{e}: {text}"
            )


def left(manager: Any) -> list[str]:
    verdicts = manager.verdicts["forward"]
    return [f"{v.operator}: {v.reason}" for v in verdicts if v.outcome is not NodeOutcome.DELEGATED]


@pytest.mark.interop
@pytest.mark.parametrize(("name", "dims"), list(product(NETS, SETS)))
def test_images_of_one_channel_change_layout_at_any_size(
    name: str, dims: tuple[int, ...], stock: Stock
) -> None:
    module, channels = NETS[name]
    first = {BATCH: 2} if BATCH in dims else {}
    calls = [(image(channels, first),), (image(channels, {d: OTHER[d] for d in dims}),)]
    module.eval().requires_grad_(requires_grad=False)
    program = torch.export.export(module, calls[0], dynamic_shapes=[dynamic(dims)])
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert left(manager) == []
    assert_runs(manager, module, calls, stock, 1e-5)
    assert_runs(to_edge(program).to_backend(XnnpackPartitioner()), module, calls, stock, 1e-5)


class Signals(nn.Module):
    """Signals of one row each, added to those of one sample: the sum has two unknown sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(4, 4, 1) for _ in range(4))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        found = self.convs[0](y)
        for conv in list(self.convs)[1:]:
            found = found + conv(x)
        return found.sigmoid()


@pytest.mark.interop
def test_signals_with_two_unknown_sizes_stay_signals(stock: Stock) -> None:
    torch.manual_seed(0)
    module = Signals().eval().requires_grad_(requires_grad=False)
    calls = [
        (torch.randn(1, 4, length), torch.randn(batch, 4, 1)) for batch, length in ((2, 9), (5, 12))
    ]
    shapes = ({2: Dim.AUTO(min=2, max=32)}, {0: Dim.AUTO(min=2, max=8)})
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert left(manager) == []
    assert_runs(manager, module, calls, stock, 1e-5)


class Heads(nn.Module):
    """Attention of two heads to a sequence of any length, without the softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.all, self.out = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.all(x).view(1, x.shape[1], 2, 4).transpose(1, 2)
        mixed = (heads @ heads.transpose(-2, -1)).relu() @ heads
        return self.out(mixed.transpose(1, 2).reshape(1, x.shape[1], 8))


VIEWS: dict[str, tuple[nn.Module, tuple[int, ...], tuple[int, ...], int]] = {
    # network, sizes, dimensions that change, delegate calls
    "heads": (Heads(), (1, 6, 8), (1,), 3),
    "rows": (Of(lambda x: x.relu().view(x.shape[0] * x.shape[1], 4) * 2), (3, 5, 4), (0, 1), 1),
    "parted": (Of(lambda x: x.relu().view(x.shape[0], 2, 3) * 2), (4, 6), (0,), 1),
    "expanded": (Of(lambda x: x.relu().expand(x.shape[0], x.shape[1]) * 2), (4, 6), (0, 1), 1),
    "flat": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)),
        (2, 3, 6, 6),
        (0,),
        1,
    ),
}


@pytest.mark.interop
@pytest.mark.parametrize("name", VIEWS)
def test_views_with_one_size_to_infer_need_no_size_of_the_graph(name: str, stock: Stock) -> None:
    torch.manual_seed(0)
    module, sizes, dims, delegate_calls = VIEWS[name]
    module.eval().requires_grad_(requires_grad=False)
    other = [9 if dim in dims else size for dim, size in enumerate(sizes)]
    calls = [(torch.randn(sizes),), (torch.randn(other),), (torch.randn(sizes),)]
    shapes = ({dim: Dim.AUTO(min=2, max=12) for dim in dims},)
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    graph = manager.exported_program().graph
    found = [n for n in graph.nodes if n.target is executorch_call_delegate]
    assert len(found) == delegate_calls
    read = [one.meta["val"] for call in found for one in call.args[1:]]
    assert all(isinstance(value, torch.Tensor) for value in read)
    assert_runs(manager, module, calls, stock, 1e-5)


@pytest.mark.interop
@pytest.mark.parametrize("unknown", [(0,), (1,), (0, 1), (0, 2)])
@pytest.mark.parametrize(("start", "end"), [(0, 3), (2, None), (-3, None), (1, -1)])
def test_slices_along_known_sizes_are_delegated(
    unknown: tuple[int, ...], start: int, end: int | None, stock: Stock
) -> None:
    """As the halves of a head that rotary embeddings turn, in sequences of any length."""
    torch.manual_seed(0)
    sizes = [4, 5, 6, 8]
    other = [9 if dim in unknown else size for dim, size in enumerate(sizes)]
    calls = [(torch.randn(sizes),), (torch.randn(other),), (torch.randn(sizes),)]
    module = Of(lambda x: x.relu()[..., slice(start, end)] * 2)
    shapes = ({dim: Dim.AUTO(min=1, max=12) for dim in unknown},)
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert left(manager) == []
    assert_runs(manager, module, calls, stock, 0)


@pytest.mark.interop
def test_slices_along_unknown_sizes_are_refused_with_the_dimension(stock: Stock) -> None:
    module = Of(lambda x: x.relu()[:, 2:] * 2)
    calls = [(torch.randn(2, length),) for length in (6, 9)]
    shapes = ({1: Dim.AUTO(min=4, max=12)},)
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert any("the size of dimension 1 must be static" in reason for reason in left(manager))
    assert_runs(manager, module, calls, stock, 0)


@pytest.mark.interop
def test_slices_that_nothing_computes_with_stay_outside_where_sizes_change(stock: Stock) -> None:
    """A delegate that only moves data costs a call; the package's partitioner leaves them, too."""
    module = Of(lambda x: x[1:3, -2:])
    calls = [(torch.randn(5, 5, length),) for length in (6, 9)]
    shapes = ({2: Dim.AUTO(min=4, max=12)},)
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert len(left(manager)) == 2
    assert all("nothing that computes reads the result" in reason for reason in left(manager))
    assert_runs(manager, module, calls, stock, 0)


@pytest.mark.interop
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    ("sizes", "unknown"),
    [
        ((5, 12), ()),
        ((5, 12), (0,)),
        ((2, 5, 12), (1,)),
        ((2, 5, 3, 12), (0,)),
        ((2, 5, 3, 1), (2,)),
    ],
)
def test_means_of_rows_are_delegated_with_their_norm(
    sizes: tuple[int, ...], unknown: tuple[int, ...], keepdim: bool, stock: Stock
) -> None:
    torch.manual_seed(0)
    other = [9 if dim in unknown else size for dim, size in enumerate(sizes)]
    calls = [(torch.randn(sizes),), (torch.randn(other),), (torch.randn(sizes),)]
    module = Of(lambda x: torch.rsqrt((x * x).mean(-1, keepdim=keepdim) + 0.1) * 3)
    shapes = ({dim: Dim.AUTO(min=1, max=12) for dim in unknown},)
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert left(manager) == []
    assert_runs(manager, module, calls, stock, 1e-5)


@pytest.mark.interop
@pytest.mark.parametrize(
    ("dims", "unknown", "reason"),
    [
        ((-1,), (2,), "last dimension has the size s"),
        ((-1,), (0, 1), r"sizes s\d+, s\d+ are"),
        ((1,), (), "3 dimensions"),
    ],
)
def test_other_means_are_refused_with_the_reason(
    dims: tuple[int, ...], unknown: tuple[int, ...], reason: str, stock: Stock
) -> None:
    calls = [(torch.randn(3, 5, 8),)]
    module = Of(lambda x: x.relu().mean(dims) * 2)
    shapes = ({dim: Dim.AUTO(min=2, max=12) for dim in unknown},)
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert any(re.search(reason, one) for one in left(manager)), left(manager)
    assert_runs(manager, module, calls, stock, 1e-5)


@pytest.mark.interop
@pytest.mark.parametrize("name", ["signal", "flattened", "unsqueezed", "mean"])
def test_what_would_infer_two_sizes_is_refused_with_their_names(name: str, stock: Stock) -> None:
    torch.manual_seed(0)
    module, dims = {
        "signal": (nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU()), (0, 2)),
        "flattened": (Of(lambda x: x.relu().flatten(2) * 2), (0, 1)),
        "unsqueezed": (Of(lambda x: x.relu().unsqueeze(1) * 2), (0, 2)),
        "mean": (Of(lambda x: x[:, :, None].relu().mean((2, 3)) * 2), (0, 1)),
    }[name]
    rank = 4 if name == "flattened" else 3
    module.eval().requires_grad_(requires_grad=False)
    whole = [1 if name == "signal" and dim == 1 else 6 for dim in range(rank)]
    other = [9 if dim in dims else size for dim, size in enumerate(whole)]
    calls = [(torch.randn(whole),), (torch.randn(other),)]
    shapes = ({dim: Dim.AUTO(min=2, max=12) for dim in dims},)
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    verdicts = manager.verdicts["forward"]
    refused = [v.reason for v in verdicts if v.outcome is NodeOutcome.REJECTED]
    assert any(re.search(r"s\d+, s\d+ (are|of)", reason) for reason in refused), verdicts
    assert any(v.outcome is NodeOutcome.DELEGATED for v in verdicts)
    assert_runs(manager, module, calls, stock, 1e-5)


@pytest.mark.interop
def test_quantized_image_of_one_channel_changes_layout_at_any_size(stock: Stock) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 1, 3)).eval()
    calls = [(image(1, {}),), (image(1, {HEIGHT: 20, WIDTH: 11}),)]
    graph = q.prepared(module, calls[0], q.quantizer(q.STATIC), ({**dynamic((2, 3))},))
    for given in calls:
        graph(*given)
    converted = q.convert_pt2e(graph)
    program = torch.export.export(converted, calls[0], dynamic_shapes=({**dynamic((2, 3))},))
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert left(manager) == []
    assert_runs(manager, converted, calls, stock, 1.01 * q.quantum(program))


def test_reshape_that_no_runtime_executes_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnsqueezeCopyConfig.checks[0], "__code__", no_reason.__code__)
    module = Of(lambda x: x.relu().unsqueeze(1) * 2)
    shapes = ({0: Dim.AUTO(min=2, max=8), 1: Dim.AUTO(min=2, max=8)},)
    program = torch.export.export(module, (torch.randn(3, 4, 5),), dynamic_shapes=shapes)
    with pytest.raises(BackendError, match=r"infer the sizes s\d+, s\d+.*unsqueeze_copy.*py:\d+"):
        to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])


def no_reason(node: object, facts: object) -> str:
    del node, facts
    return ""
