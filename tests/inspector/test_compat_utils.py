"""Undocumented names of the stock inspector that programs use, beside the stock ones."""

from __future__ import annotations

import pytest

from tests.architecture.tree import run_python

pytestmark = pytest.mark.slow
BESIDE_STOCK = """
import random, warnings
warnings.simplefilter("ignore")
import logging; logging.disable(logging.CRITICAL)
import torch
from executorch.devtools.inspector import _inspector_utils as stock
from inspector.compat import inspector_utils as ours

rng = random.Random(0)
torch.manual_seed(0)

def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b

def handles(count):
    return tuple(rng.sample(range(1, 30), rng.randint(1, count)))

for _ in range(300):
    outputs = {handles(4): (step, torch.rand(2), 1) for step in range(rng.randint(0, 8))}
    one = ours.merge_runtime_overlapping_debug_handles(outputs)
    two = stock.merge_runtime_overlapping_debug_handles(outputs)
    assert list(one) == list(two), (outputs, one, two)
    assert all(same(one[key], two[key]) for key in one)
    recorded = {(handle,): torch.rand(2) for handle in rng.sample(range(1, 30), 12)}
    run = {key: ([torch.rand(2) for _ in range(rng.randint(1, 3))], 1) for key in one}
    pairs = [f(recorded, run) for f in (
        ours.map_runtime_aot_intermediate_outputs, stock.map_runtime_aot_intermediate_outputs)]
    rows = [sorted(((k[0], id(k[1])), v[0], id(v[1])) for k, v in p.items()) for p in pairs]
    assert rows[0] == rows[1]
    names = {handles(2): [f"op{i}"] for i in range(6)}
    wanted = handles(6)
    assert ours.find_op_names(wanted, names) == stock.find_op_names(wanted, names)
    a, b = [torch.rand(3, 4)], [torch.rand(3, 4)]
    for name in ("mse", "snr", "cosine_similarity"):
        found = [getattr(tool, f"calculate_{name}")(a, b)[0] for tool in (ours, stock)]
        assert abs(found[0] - found[1]) <= 0.011, (name, found)
units = [unit for unit in ours.TimeScale if unit.value != "cycles"]
for source in units:
    for target in units:
        found = ours.calculate_time_scale_factor(source, target)
        theirs = stock.TimeScale(source.value), stock.TimeScale(target.value)
        assert found == stock.calculate_time_scale_factor(*theirs)
"""


@pytest.mark.interop
def test_results_are_those_of_the_stock_functions() -> None:
    run_python(BESIDE_STOCK)


@pytest.mark.parametrize("name", ["MSEComparator", "L1Comparator", "SNRComparator"])
@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (3, 2)), ((100, 100), (99, 100))])
def test_comparators_refuse_different_shapes_by_value_error(
    name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    torch = pytest.importorskip("torch")
    import inspector

    one, two = (torch.ones(shape) for shape in shapes)
    with pytest.raises(ValueError, match="cannot be compared"):
        getattr(inspector, name)().element_compare(one, two)


@pytest.mark.parametrize(
    ("found", "error", "sentence"),
    [
        ("text", TypeError, "must return a dict"),
        ({"text": ((0,), 1)}, ValueError, "Invalid key format"),
        ({(("a",), 1): ((0,), 1)}, ValueError, "Invalid AOT debug handle"),
        ({((0,), 1): "text"}, ValueError, "Invalid value format"),
        ({((0,), 1): (("a",), 1)}, ValueError, "Invalid runtime debug handle"),
    ],
)
def test_preprocessing_that_returns_something_else_is_refused(
    found: object, error: type[Exception], sentence: str
) -> None:
    from inspector.compat.devtools.numerical_comparator import MSEComparator, preprocessed

    class Broken(MSEComparator):
        def preprocessing(self, mapping: object) -> object:
            return found

    with pytest.raises(error, match=sentence):
        preprocessed(Broken(), {})


def test_handles_go_back_to_the_exported_program() -> None:
    torch = pytest.importorskip("torch")
    from compiler import to_edge
    from inspector.compat.inspector_utils import propagate_back_debug_handle

    class Model(torch.nn.Module):
        def forward(self, x: object) -> object:
            return torch.nn.functional.gelu(torch.relu(x).softmax(-1)) + 1

    exported = torch.export.export(Model(), (torch.rand(2, 3),))
    edge = to_edge(exported).exported_program()
    assert not propagate_back_debug_handle(exported, 7, edge)
    assert propagate_back_debug_handle(exported, id(exported.graph), edge)
    calls = [node for node in exported.graph.nodes if node.op == "call_function"]
    given = {node.meta["debug_handle"] for node in calls}
    assert given == {n.meta["debug_handle"] for n in edge.graph.nodes if n.op == "call_function"}
    assert len(given) == len(calls)


def test_kept_values_are_those_of_the_nodes_under_handles_without_gaps() -> None:
    torch = pytest.importorskip("torch")
    from compiler import to_edge
    from inspector.compat.inspector_utils import IntermediateOutputCapturer

    class Model(torch.nn.Module):
        def forward(self, x: object) -> object:
            first, second = torch.split(x.to(x.dtype) + 1, 1, dim=1)
            return torch.relu(first) * 2, second.clone().add_(first)

    torch.manual_seed(0)
    x = torch.randn(2, 2)
    edge = to_edge(torch.export.export(Model(), (x,))).exported_program()
    found = IntermediateOutputCapturer(edge.module()).run_and_capture(x)
    handles = [n.meta["debug_handle"] for n in edge.graph.nodes if n.op == "call_function"]
    assert list(dict.fromkeys(handles)) == list(range(1, max(handles) + 1))
    assert set(found) == {(handle,) for handle in handles}
    first, second = found[2,]
    assert torch.equal(found[1,], x + 1)
    assert torch.equal(torch.cat([first, second], 1), x + 1)
    assert torch.equal(found[max(handles),], second + first)
