"""Inputs of a run: from the trace itself, a test case, or the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.files.session import Session
from inspector.numerics.replay.references import ReferenceGraph
from inspector.numerics.traced import Bytes
from inspector.rebuild.torch_bridge import load_torch, saved_tensor, tensor_over
from runtime.memory.slots import strides_of
from schema.bundled import BundledTensor, TestCase
from schema.errors import FormatError
from schema.etdump import DebugTensor
from schema.etdump.debug_buffer import DebugBuffer
from schema.etrecord import RecordFile, TensorData
from schema.etrecord.members import FORWARD

TEST_CASE = "test case of the bundled program"
RECORDED = "representative inputs of the record"
EXPORTED = "example inputs of the exported program"
OF_CALL = "inputs of the call"
_LEFT_OUT = "the inputs of this call are not kept: those of earlier calls are as many as are kept"
GIVEN = "inputs that were given"
TRACED = "arguments of delegates in the trace"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a run.

    Attributes:
        values: by position; None if unknown
        source: their origin, empty if unknown
        certain: whether this run certainly had them
        traced: positions of those in the trace itself
        notes: further remarks
    """

    values: tuple[Any, ...]
    source: str
    certain: bool
    traced: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def recorded(self) -> bool:
        """Return whether they are the representative inputs of the record, or a test case."""
        return self.source in (RECORDED, TEST_CASE, GIVEN)

    def with_traced(self, traced: Mapping[int, Any]) -> Inputs:
        """Return the inputs with those of the trace, which are certainly the run's own."""
        if not traced or self.source == GIVEN:
            return self
        values = list(self.values)
        other = [
            place
            for place, value in traced.items()
            if self.source and not _same(values[place], value)
        ]
        notes = self.notes
        if other:
            names = ", ".join(str(place) for place in sorted(other))
            notes = (*notes, f"input {names} is not that of the {self.source}: the trace has it")
        for place, value in traced.items():
            values[place] = value
        whole = len(traced) == len(values)
        source = TRACED if whole or not self.source else self.source
        return Inputs(tuple(values), source, self.certain or whole, frozenset(traced), notes)

    def only_traced(self) -> Inputs:
        """Return the inputs without assumed ones."""
        values = tuple(
            value if place in self.traced else None for place, value in enumerate(self.values)
        )
        return Inputs(values, TRACED if self.traced else "", False, self.traced, self.notes)


def run_inputs(
    session: Session,
    method: str,
    case: int,
    record: RecordFile | None,
    reference: ReferenceGraph,
    given: Any,  # noqa: ANN401 - any tree of tensors
) -> Inputs:
    """Return the inputs of a run from the best available source.

    Args:
        session: opened files
        method: name of the method
        case: test case, -1 for none
        record: the ETRecord
        reference: the recorded program
        given: flat inputs given by the user, or None

    Raises: RebuildError if torch cannot read a program that is the only source of inputs
    """
    if given is not None:
        return Inputs(_leaves(given), GIVEN, certain=True)
    found = _test_case(session, method, case)
    if found is not None:
        return Inputs(tuple(_bundled(value.val) for value in found.inputs), TEST_CASE, certain=True)
    requested = len(reference.graph.inputs)
    recorded = recorded_inputs(record, method)
    if recorded is not None and len(recorded) == requested:
        return Inputs(recorded, RECORDED, certain=False)
    example = _leaves(reference.example_inputs() or ())
    if len(example) == requested and requested:
        note = f"assumed: the run had the {EXPORTED}"
        return Inputs(example, EXPORTED, certain=False, notes=(note,))
    return Inputs((None,) * requested, "", certain=not requested)


def call_inputs(given: Any, count: int) -> Inputs:  # noqa: ANN401 - any tree of tensors
    """Return the inputs of a call of a sequence, None where they are unknown.

    Args:
        given: its flat inputs, or None
        count: number of the inputs of the reference
    """
    if given is None:
        return Inputs((None,) * count, "", certain=False, notes=(_LEFT_OUT,))
    return Inputs(_leaves(given), OF_CALL, certain=True)


def _same(value: Any, other: Any) -> bool:  # noqa: ANN401 - tensors or scalars
    torch = load_torch()
    if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
        return value is None
    return value.shape == other.shape and torch.equal(value, other)


def _test_case(session: Session, method: str, case: int) -> TestCase | None:
    suites = session.bundled.method_test_suites if session.bundled is not None else ()
    for suite in suites:
        if suite.method_name == method and 0 <= case < len(suite.test_cases):
            return suite.test_cases[case]
    return None


def recorded_inputs(record: RecordFile | None, method: str) -> tuple[Any, ...] | None:
    """Return the representative inputs of a method in a record, or None."""
    if record is None or (method != FORWARD and len(record.methods) > 1):
        return None  # they are those of the forward method
    try:
        tree = record.representative_inputs().value
    except FormatError:
        return None
    return None if tree is None else tuple(map(_loaded, _leaves(tree)))


def _loaded(leaf: Any) -> Any:  # noqa: ANN401 - a tensor, a scalar or None
    return saved_tensor(leaf) if isinstance(leaf, TensorData) else leaf


def _leaves(tree: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any tree of tensors
    torch = load_torch()
    return tuple(torch.utils._pytree.tree_leaves(tree))


def _bundled(value: object) -> Any:  # noqa: ANN401 - a tensor or a scalar
    if isinstance(value, BundledTensor):
        order = tuple(value.dim_order) or tuple(range(len(value.sizes)))
        strides = strides_of(value.sizes, order)
        memory = memoryview(bytearray(value.data))
        return tensor_over(memory, value.scalar_type, tuple(value.sizes), strides)
    for name in ("int_val", "bool_val", "double_val"):
        if hasattr(value, name):
            return getattr(value, name)
    return None


def traced_inputs(
    plan_inputs: Sequence[int],
    arguments: Mapping[int, tuple[Mapping[int, DebugTensor], ...]],
    written: Mapping[int, int],
) -> dict[int, DebugTensor]:
    """Return position -> tensor of the inputs that a delegate received unchanged.

    Args:
        plan_inputs: value index of each input
        arguments: arguments of delegate calls
        written: value index -> first instruction that writes it
    """
    found: dict[int, DebugTensor] = {}
    for place, value in enumerate(plan_inputs):
        for step in sorted(arguments):
            passes = arguments[step]
            first = written.get(value, step + 1)
            if passes and value in passes[0] and step < first:
                found[place] = passes[0][value]
                break
    return found


def logged_tensor(buffer: DebugBuffer | None, logged: Bytes) -> Any:  # noqa: ANN401 - a tensor or a reason
    """Return a logged tensor in memory of its own, or the reason why it is missing."""
    if isinstance(logged, tuple):
        rows = [logged_tensor(buffer, each) for each in logged]
        wrong = next((row for row in rows if isinstance(row, str)), None)
        return wrong if wrong is not None else load_torch().stack(rows)
    if buffer is None:
        return "no debug buffer"
    try:
        view = buffer.tensor_array(logged)
    except FormatError as error:
        return f"its bytes are missing: {error}"
    memory = memoryview(bytearray(view.raw))
    tensor = tensor_over(memory, logged.scalar_type, view.sizes, view.strides)
    return "torch has no such dtype" if tensor is None else tensor
