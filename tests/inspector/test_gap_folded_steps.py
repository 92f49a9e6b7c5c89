"""Values in steps of integers: a compiler adds integers in the steps of one of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from inspector.numerics.replay.folded_factors import FoldedFactors, recorded_values
from runtime.emulation.recorded import GraphCall, RecordedGraph

Value = tuple[tuple[str, ...], str]
STEP, BESIDE = 0.0048, 0.0197
MOVES = ("aten::view_copy", "aten::permute_copy", "aten::transpose_copy", "aten::slice_copy")
_QUANTIZE = "quantized_decomposed::quantize_per_tensor"
_DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"


def _value(name: str) -> Value:
    return (), name


class Graph:
    """Nodes in the form that factors are looked for in."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []

    def call(self, operator: str, name: str, *reads: str, **literals: float) -> str:
        args = [SimpleNamespace(name=key, literal=one) for key, one in literals.items()]
        node = SimpleNamespace(
            operator=operator,
            reads=tuple(map(_value, reads)),
            writes=(_value(name),),
            node=SimpleNamespace(name=name, args=args),
        )
        self.nodes.append(node)
        return name

    def rounded(self, name: str, step: float, zero: int = 0) -> str:
        made = self.call(_QUANTIZE, f"{name}_q", name, scale=step, zero_point=zero)
        return self.call(_DEQUANTIZE, f"{name}_r", made, scale=step, zero_point=zero)

    def factors(self, recorded: dict[str, torch.Tensor]) -> FoldedFactors:
        users: dict[Value, list[Any]] = {}
        for node in self.nodes:
            for one in node.reads:
                users.setdefault(one, []).append(node)
        graph = SimpleNamespace(
            nodes=tuple(self.nodes),
            producers={node.writes[0]: (node, 0) for node in self.nodes},
            users=users,
            inputs=(_value("x"), _value("y")),
            graphs={},
        )
        values = {_value(name): one for name, one in recorded.items()}
        return FoldedFactors(cast("Any", graph), values)


def _sum(before: tuple[str, ...], behind: tuple[str, ...], adding: str, *, beside: bool) -> Graph:
    """Return moves, a rounding, moves and a sum with integers that are real again, or with none."""
    graph, at = Graph(), "x"
    for number, operator in enumerate(before):
        at = graph.call(operator, f"before{number}", at)
    at = graph.rounded(at, STEP)
    for number, operator in enumerate(behind):
        at = graph.call(operator, f"behind{number}", at)
    other = graph.rounded("y", BESIDE) if beside else "y"
    graph.call(adding, "sum", at, graph.call("aten::view_copy", "shown", other))
    return graph


@pytest.mark.parametrize("rounds", [True, False])
@pytest.mark.parametrize("adding", ["aten::add", "aten::sub"])
@pytest.mark.parametrize("behind", [(), MOVES[:1]])
@pytest.mark.parametrize("before", [(), MOVES[:1], MOVES[1:3], MOVES])
@pytest.mark.parametrize("shift", [0, 128, -128])
def test_what_is_added_to_integers_may_be_in_their_steps(
    before: tuple[str, ...], behind: tuple[str, ...], adding: str, rounds: bool, shift: int
) -> None:
    """Their zero point, which a compiler that has no signed integers shifts, is in it too."""
    torch.manual_seed(0)
    own = torch.randn(4, 6) * 0.2
    held = (own / STEP).round().clamp(-128, 127) * STEP if rounds else own
    given, value = held / BESIDE + shift, _value("x")
    factors = _sum(before, behind, adding, beside=True).factors({"x": own})
    assert factors.explain(value, given)
    assert not factors.explain(value, given + 5)
    assert not factors.explain(value, given + 8 * own.sign())
    plain = _sum(before, behind, adding, beside=False).factors({"x": own})
    assert not plain.explain(value, given)


@pytest.mark.parametrize("wrong", [1.5, 1 / BESIDE**2, -1.0])
@pytest.mark.parametrize("operator", ["aten::add", "aten::mul"])
def test_no_other_factor_is_one_of_integers_beside(operator: str, wrong: float) -> None:
    torch.manual_seed(0)
    own = torch.randn(4, 6) * 0.2
    factor = BESIDE if operator == "aten::mul" else 1 / BESIDE
    factors = _sum((), MOVES[:1], operator, beside=True).factors({"x": own})
    assert factors.explain(_value("x"), own * factor)
    assert not factors.explain(_value("x"), own * factor * wrong)
    assert not factors.explain(_value("x"), (own * factor).flip(0))


@pytest.mark.parametrize("shift", [0, 128, -128])
@pytest.mark.parametrize("zero", [0, -128, 17])
@pytest.mark.parametrize("moves", [(), *((one,) for one in MOVES), MOVES])
def test_what_is_rounded_may_be_integers_behind_moves(
    moves: tuple[str, ...], zero: int, shift: int
) -> None:
    """A compiler rounds before a reshape what the program rounds behind it."""
    torch.manual_seed(0)
    graph, at = Graph(), "x"
    for number, operator in enumerate(moves):
        at = graph.call(operator, f"moved{number}", at)
    graph.rounded(at, STEP, zero)
    own = torch.rand(4, 6) * (127 - max(zero, 0)) * STEP
    factors = graph.factors({"x": own})
    integers = (own / STEP + zero).round()
    assert factors.explain(_value("x"), integers + shift)
    assert not factors.explain(_value("x"), integers + shift + 9)


def test_an_operator_that_computes_ends_the_moves() -> None:
    graph = Graph()
    graph.rounded(graph.call("aten::relu", "y", "x"), STEP)
    own = torch.rand(4, 6) * 0.4
    assert not graph.factors({"x": own}).explain(_value("x"), (own / STEP).round())


def test_a_program_with_state_is_run_once_more_from_its_own_state() -> None:
    # the state of a call has a second side, which continues with the values of the run
    call = GraphCall("sum", ("x", "held"), ("sum",), lambda values: values["x"] + values["held"])
    held = {"held": ("held", torch.zeros(2))}
    graph = RecordedGraph((call,), ("x",), ("sum",), {}, held, {"held": "sum"})
    reference = SimpleNamespace(graph=SimpleNamespace(graph=graph), values=None)
    flat = SimpleNamespace(producers={})
    state = {"held": [torch.full((2,), 3.0), torch.full((2,), 9.0)]}
    found = recorded_values(
        cast("Any", flat), cast("Any", reference), [torch.ones(2)], state, {_value("sum")}
    )
    assert found[_value("sum")].tolist() == [4, 4]
    assert state["held"][0].tolist() == [3, 3]
