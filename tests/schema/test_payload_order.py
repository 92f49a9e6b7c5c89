"""Joining the runtime's events to payload nodes by order."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import etdump, payloads
from schema.payloads import RuntimeOperator, join_by_order, operator_name
from schema.payloads.order import _MAX_CELLS, matches
from schema.program import decode
from schema.program import model as m
from tests.schema.payload_files import DATA

ADD = RuntimeOperator("add", ("Add",))
ADD_RELU = RuntimeOperator("add_relu", ("Add",), ("Clamp",))
COPY = RuntimeOperator("copy", ("Copy",), optional=True)
CLAMP = RuntimeOperator("clamp", ("Clamp",), optional=True)
SIN = RuntimeOperator("sin", ("Sine",))
ADD_EVENT, CLAMP_EVENT, SIN_EVENT = "Add (ND) #1", "Clamp (NC) #1", "Sine (NC) #1"


def test_operator_name_drops_only_the_running_number() -> None:
    assert operator_name("Convolution (NHWC, F32) IGEMM #12") == "Convolution (NHWC, F32) IGEMM"
    assert operator_name("Copy") == "Copy"


def test_matches_compares_the_family_and_no_substring() -> None:
    assert matches(("Add",), "Add (ND, F32) #3")
    assert not matches(("Add",), "Add2 (ND) #1")
    assert not matches(("Square",), "Square Root (NC) #1")


@pytest.mark.parametrize(
    ("operators", "events", "joined"),
    [
        ([], [], ()),
        ([ADD, SIN], [ADD_EVENT, SIN_EVENT], ("add", "sin")),
        ([ADD, SIN], [SIN_EVENT, ADD_EVENT], None),
        ([ADD, SIN], [ADD_EVENT], None),
        ([ADD], [ADD_EVENT, ADD_EVENT], None),
        ([ADD], [], None),
        ([ADD_RELU, SIN], [ADD_EVENT, CLAMP_EVENT, SIN_EVENT], ("add_relu", "add_relu", "sin")),
        ([ADD_RELU, SIN], [ADD_EVENT, SIN_EVENT], ("add_relu", "sin")),
        ([COPY, ADD], [ADD_EVENT], ("add",)),
        ([COPY, ADD], ["Copy (NC, X32) #1", ADD_EVENT], ("copy", "add")),
        # one event, two copies that could have made it
        ([COPY, ADD, COPY, SIN], ["Copy #1", ADD_EVENT, SIN_EVENT], ("copy", "add", "sin")),
        ([ADD_RELU, CLAMP, SIN], [ADD_EVENT, CLAMP_EVENT, SIN_EVENT], None),
    ],
)
def test_join_by_order_of_known_sequences(operators, events, joined) -> None:
    if joined is None and operators == [ADD_RELU, CLAMP, SIN]:
        joined = ("add_relu", None, "sin")  # whose clamp it is cannot be told
    assert join_by_order(operators, events) == joined


def test_join_by_order_two_ways_leave_the_event_open() -> None:
    first, second = (RuntimeOperator(name, ("Copy",), optional=True) for name in ("a", "b"))
    assert join_by_order([first, second, SIN], ["Copy #1", SIN_EVENT]) == (None, "sin")


NODES = st.lists(st.tuples(st.sampled_from("ABC"), st.booleans(), st.booleans()), max_size=7)


@given(NODES, st.data())
def test_join_by_order_never_names_a_node_of_another_family(nodes, data) -> None:
    operators = [
        RuntimeOperator(f"{name}{index}", (name,), ("Z",) if split else (), optional)
        for index, (name, optional, split) in enumerate(nodes)
    ]
    events: list[str] = []
    truth: list[str] = []
    for operator in operators:
        if operator.optional and data.draw(st.booleans()):
            continue
        made = [operator.names[0], *operator.followed_by[: data.draw(st.integers(0, 1))]]
        events += [f"{name} (ND) #1" for name in made]
        truth += [operator.node] * len(made)
    joined = join_by_order(operators, events)
    assert joined is not None
    families = {operator.node: {*operator.names, *operator.followed_by} for operator in operators}
    for name, event in zip(joined, events, strict=True):
        assert name is None or event.split(" ", 1)[0] in families[name]
    if len(events) == sum(1 + len(operator.followed_by) for operator in operators):
        assert joined == tuple(truth)


def test_join_by_order_of_very_long_sequences_needs_no_table() -> None:
    count = int(_MAX_CELLS**0.5) + 10
    operators = [RuntimeOperator(f"n{index}", ("Add",)) for index in range(count)]
    events = ["Add (ND) #1"] * count
    assert join_by_order(operators, events) == tuple(f"n{index}" for index in range(count))
    assert join_by_order(operators, events[:-1]) is None


TRACED = [
    "corpus/v1.5.1/convnet_xnnpack", "corpus/v1.5.1/mm_xnnpack", "corpus/v1.5.1/tinygpt_xnnpack",
    "corpus/special/xnnpack_two_delegates", "extra/xnnpack_dynamic_quantised",
    "extra/xnnpack_8da4w", "extra/xnnpack_split", "extra/inline_delegate",
]  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_join_by_order_names_a_node_for_every_event_of_stock_traces(name: str) -> None:
    program = decode((DATA / name / "model.pte").read_bytes())
    expected = _operators(program)
    joined = 0
    for run in etdump.decode((DATA / name / "run.etdp").read_bytes()).run_data:
        for place, names in _delegate_events(run).items():
            found = join_by_order(expected[place], names)
            assert found is not None, names
            assert None not in found
            joined += len(names)
    assert joined


def _operators(program) -> dict[int, tuple[RuntimeOperator, ...]]:
    (plan,) = program.plans
    calls = {
        index: plan.delegates[instruction.instr_args.delegate_index]
        for index, instruction in enumerate(plan.chains[0].instructions)
        if isinstance(instruction.instr_args, m.DelegateCall)
    }
    return {
        index: payloads.decode(delegate.id, program.delegate_data(delegate)).operators
        for index, delegate in calls.items()
    }


def _delegate_events(run) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for event in run.events:
        if isinstance(event, etdump.ProfileEvent) and event.delegate_id_str:
            found[event.instruction_id].append(event.delegate_id_str)
    return found
