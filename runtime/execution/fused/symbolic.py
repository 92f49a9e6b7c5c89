"""Instructions whose sizes change from run to run, written to graphs that compute the sizes.

Where a graph cannot compute them the call stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch._ops import OpOverload

from runtime.execution.binding import BoundInstruction, Call, store_many
from runtime.execution.fused import calls
from runtime.execution.fused.attention import CACHED, cached
from runtime.execution.fused.dataflow import VIEW, Dataflow, TensorUse
from runtime.execution.fused.fillers import FILLERS
from runtime.execution.fused.operators import DIRECT
from runtime.execution.fused.scripts import ChangingScalar, ScriptWriter, UnscriptableError
from runtime.execution.fused.symbolic_scalars import computed
from runtime.kernels import built_in
from runtime.kernels.rule import Style
from runtime.kernels.size_guard import GROWING
from runtime.memory.slots import TensorShapeDynamism, TensorSlot, do_not_overlap
from runtime.program.values import Boxed
from runtime.untyped import aten

Tensor = torch.Tensor
Operator = Any  # an overload: torch leaves its parameters unknown
_KEEPING = (calls.keep_one, calls.keep_several)
# Kernels in Python that do no more than call an operator.
_OPERATORS: Mapping[str, Operator] = {
    "aten::narrow_copy.out": aten.narrow.default,
    "aten::split_copy.Tensor_out": aten.split.Tensor,
    "aten::view_copy.out": aten.reshape.default,
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The shared state of the instructions of a plan.

    Attributes:
        flow: reads and writes of each tensor
        readers: instructions that read each scalar that an instruction computes
    """

    flow: Dataflow
    readers: Mapping[int, Sequence[int]]

    def operands(self, indices: Sequence[int]) -> Iterator[int]:
        """Yield value indices, those in lists included."""
        for index in indices:
            item = self.flow.table.items[index]
            yield from item.items if isinstance(item, Boxed) else (index,)

    def symbol(self, index: int) -> ChangingScalar | None:
        """Return a scalar that an instruction computes, None for other values."""
        value: object = self.flow.table.items[index]
        return ChangingScalar(index, type(value)) if index in self.readers else None

    def is_needed(self, index: int, places: Sequence[int]) -> bool:
        """Return whether a scalar is an output, or is read by instructions other than these."""
        return index in self.flow.results or not set(self.readers[index]).issubset(places)

    def outlives(self, tensor: TensorUse, place: int) -> bool:
        """Return whether a view is used after an instruction."""
        used = tensor.pinned or tensor.state or bool(tensor.aliases)
        return used or tensor.last > place or tensor.index in self.flow.results


def scope_of(flow: Dataflow) -> Scope:
    """Return the scope of a plan."""
    readers: dict[int, list[int]] = {index: [] for index in flow.computed_scalars()}
    scope = Scope(flow, readers)
    for place, one in enumerate(flow.instructions):
        for index in scope.operands(_read(one)):
            if index in readers:
                readers[index].append(place)
    return scope


def _read(instruction: BoundInstruction) -> Sequence[int]:
    bound = instruction.bound
    if bound is None:
        return instruction.logged
    return bound.args[:-1] if bound.kernel.rule.style is Style.SCALAR else bound.args


class SymbolicCall:
    """A call of an instruction whose sizes may change.

    Attributes:
        kernel: name of its kernel, empty for operators as they were called
        pointed: tensors that it pointed elsewhere
        viewed: of those, the views of memory that stays, which need no release
        released: tensors that it released, always none
        nbytes: bytes of the results that it pointed tensors at
        operators: number of operators that it is worth
        defines: scalar that it computes, None if it computes none
    """

    def __init__(self, call: Call, place: int, scope: Scope) -> None:
        bound = scope.flow.instructions[place].bound
        assert bound is not None
        self.kernel = bound.kernel.name
        self.pointed: list[Tensor] = []
        self.viewed: list[TensorUse] = []
        self.released: list[Tensor] = []
        self._scope = scope
        self._bound = bound
        self._call = call
        self._write = self._writer(call, scope.flow.instructions[place])
        self.nbytes = 0
        scalar = bound.kernel.rule.style is Style.SCALAR
        # Python resolves arguments and stores results in the time of several operators.
        self.operators = 0 if scalar else 1 if bound.kernel.name == VIEW else 2
        self.defines = scope.symbol(bound.args[-1]) if scalar else None
        count = len(bound.kernel.inputs)
        static = map(scope.flow.static, scope.flow.tensors_of(bound.args[:count]))
        reads_scalars = not scope.readers.keys().isdisjoint(scope.operands(self._sources()))
        self._varies = reads_scalars or not all(static)

    def run(self) -> bool:
        """Run the call; return whether a graph can repeat it."""
        same = _run(self._call)
        self.nbytes = 0 if self.viewed else sum(tensor.nbytes for tensor in self.pointed)
        return same

    def write(self, writer: ScriptWriter) -> None:
        """Write it to a graph.

        Raises: UnscriptableError
        """
        self._write(writer)

    def _sources(self) -> Sequence[int]:
        kernel = self._bound.kernel
        if kernel.rule.style is Style.SCALAR:
            return self._bound.args[:-1]
        return self._bound.args[: len(kernel.inputs)]

    def _writer(
        self,
        call: Any,  # noqa: ANN401 - a partial or any other
        instruction: BoundInstruction,
    ) -> Callable[[ScriptWriter], None]:
        """Return the writer of the call.

        Raises: UnscriptableError
        """
        kernel, function = self._bound.kernel, getattr(call, "func", None)
        own = call is instruction.call
        if function is calls.point_alias:
            return self._alias(*call.args)
        if kernel.name == VIEW:
            in_place = own or function is calls.point_view
            return self._view(aten.view.default if in_place else aten.reshape.default)
        if kernel.rule.style is Style.SCALAR and own:
            return self._scalar
        if kernel.rule.style is Style.OUT and own and kernel.name in FILLERS:
            return self._fill
        if kernel.rule.style is Style.IN_PLACE and own and _is_operator(kernel.rule.run):
            return self._in_place
        if kernel.name in CACHED and own:
            return self._cached()
        if kernel.rule.style is Style.RESULT and kernel.name not in GROWING:
            return self._result(call, own=own)
        raise UnscriptableError(kernel.name)

    def _result(self, call: Any, *, own: bool) -> Callable[[ScriptWriter], None]:  # noqa: ANN401
        run: Any = self._bound.kernel.rule.run
        bound = self._bound
        operator = _OPERATORS.get(bound.kernel.name, run)
        flow, count = self._scope.flow, len(bound.kernel.inputs)
        outs = flow.tensors_of(bound.args[count : count + bound.kernel.outs])
        uses = [flow.tensors[index] for index in outs]
        wanted = _wanted(call, uses, own=own)
        if not _is_operator(operator) or len(wanted) != len(uses):
            raise UnscriptableError(bound.kernel.name)
        kept = getattr(call, "func", None) in _KEEPING
        direct = None if kept or len(uses) != 1 else self._direct(uses[0].slot)
        if direct is not None:
            return direct
        if kept:
            self.pointed = [use.slot.tensor for use, w in zip(uses, wanted, strict=True) if w]

        def write(writer: ScriptWriter) -> None:
            values = writer.results(operator, *self._arguments())
            if bound.kernel.out_is_list:
                values = writer.unpacked(values[0], len(uses))
            for value, use, is_wanted in zip(values, uses, wanted, strict=True):
                if is_wanted and kept:
                    self._check(writer, use.slot, value)
                    writer.bind(use.slot.tensor, value)
                elif is_wanted:
                    self._store(writer, use.slot, value)

        return write

    def _direct(self, slot: TensorSlot) -> Callable[[ScriptWriter], None] | None:
        """Return the writer of a kernel that fills its slot itself, None if it may not.

        An empty tensor is resized by the kernel, without a warning.
        """
        bound, flow = self._bound, self._scope.flow
        name = bound.kernel.name
        resized = slot.dynamism != TensorShapeDynamism.STATIC
        sources = flow.tensors_of(bound.args[: len(bound.kernel.inputs)])
        apart = all(do_not_overlap(flow.tensors[index].slot, slot) for index in sources)
        if name not in DIRECT or not resized or not slot.in_order or not slot.planned or not apart:
            return None
        operator = getattr(torch.ops.aten, name.removeprefix("aten::").partition(".")[0])
        operator = getattr(operator, name.partition(".")[2])

        def write(writer: ScriptWriter) -> None:
            positional, named = self._arguments()
            given = [writer.target(slot.tensor), writer.constant([0]), writer.constant(None)]
            writer.call("aten::resize_", given, Tensor)
            writer.results(operator, positional, {**named, "out": slot.tensor})

        return write

    def _cached(self) -> Callable[[ScriptWriter], None]:
        bound, flow = self._bound, self._scope.flow
        by_name = dict(zip([entry.name for entry in bound.kernel.inputs], bound.args, strict=False))
        given = {name: self._operand(index) for name, index in by_name.items()}
        indices = [by_name[name] for name in CACHED[bound.kernel.name]]
        out = flow.tensors[bound.args[len(by_name)]]
        is_read = bool(out.reads) or self._scope.outlives(out, out.last)
        if not all(map(flow.static, indices)):
            raise UnscriptableError("a cache whose sizes change")
        made = cached(bound.kernel.name, given, is_read=is_read)

        def write(writer: ScriptWriter) -> None:
            value = made(writer)
            if value is not None:
                self._store(writer, out.slot, value)

        return write

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments, with symbols for what may change."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        bound = self._bound
        for entry, index in zip(bound.kernel.inputs, bound.args, strict=False):
            value = self._operand(index)
            if entry.convert is not None and value is not None:
                if isinstance(value, ChangingScalar):
                    raise UnscriptableError(f"{entry.name} changes")
                value = entry.convert(value)
            if entry.keyword:
                named[entry.name] = value
            else:
                positional.append(value)
        return positional, named

    def _operand(self, index: int) -> Any:  # noqa: ANN401 - any value
        """Return a value, with symbols for the scalars that may change."""
        items = self._scope.flow.table.items
        value = items[index]
        if isinstance(value, Boxed):
            return [
                None if item < 0 else self._scope.symbol(item) or items[item]
                for item in value.items
            ]
        return self._scope.symbol(index) or value

    def _check(self, writer: ScriptWriter, slot: TensorSlot, value: Any) -> None:  # noqa: ANN401
        """Let the graph return integers that show whether the plan allows a result."""
        if slot.constant or slot.dynamism == TensorShapeDynamism.STATIC:
            if self._varies and slot.sizes:
                sizes = writer.call("aten::size", [value], list)
                fixed = writer.constant(list(slot.sizes))
                differs = writer.call("aten::ne.int_list", [sizes, fixed], bool)
                writer.give_back(writer.call("aten::Int.bool", [differs], int), 0)
        elif slot.planned or slot.dynamism == TensorShapeDynamism.DYNAMIC_BOUND:
            writer.give_back(writer.call("aten::numel", [value], int), slot.capacity)

    def _store(self, writer: ScriptWriter, slot: TensorSlot, value: Any) -> None:  # noqa: ANN401
        """Copy a result into its slot, which is resized to it."""
        self._resize(writer, slot, value)
        given = [writer.target(slot.tensor), value, writer.constant(value=False)]
        writer.call("aten::copy_", given, Tensor)

    def _resize(self, writer: ScriptWriter, slot: TensorSlot, value: Any) -> None:  # noqa: ANN401
        """Resize a slot to a value of the graph.

        Memory of the plan cannot grow, so that the graph fails where the plan has too little.
        """
        if slot.constant or slot.dynamism == TensorShapeDynamism.STATIC:
            self._check(writer, slot, value)
            return
        if not slot.in_order:
            raise UnscriptableError("a layout other than the dimensions in order is resized")
        if not slot.planned:
            self._check(writer, slot, value)
        given = [writer.target(slot.tensor), value, writer.constant(None)]
        writer.call("aten::resize_as_", given, Tensor)

    def _fill(self, writer: ScriptWriter) -> None:
        bound = self._bound
        slot = self._scope.flow.tensors[bound.args[len(bound.kernel.inputs)]].slot
        positional, named = self._arguments()
        if any(value is slot.tensor for value in positional) or not slot.in_order:
            raise UnscriptableError(bound.kernel.name)
        filler = FILLERS[bound.kernel.name]
        static = slot.constant or slot.dynamism == TensorShapeDynamism.STATIC
        if static and self._varies:
            raise UnscriptableError(bound.kernel.name)
        filler(writer, slot, positional, named, resized=not static)

    def _in_place(self, writer: ScriptWriter) -> None:
        writer.results(cast("Any", self._bound.kernel.rule.run), *self._arguments())

    def _scalar(self, writer: ScriptWriter) -> None:
        sources = [self._operand(index) for index in self._bound.args[:-1]]
        result: object = self._scope.flow.table.items[self._bound.args[-1]]
        value = computed(writer, self._bound.kernel.name, sources, type(result))
        writer.define(self._bound.args[-1], value)

    def _view(self, operator: Operator) -> Callable[[ScriptWriter], None]:
        source, size, target = self._bound.args
        slots = [self._scope.flow.tensors[index].slot for index in (source, target)]
        if not all(slot.in_order for slot in slots):
            raise UnscriptableError("a view of a layout other than the dimensions in order")
        use = self._scope.flow.tensors[target]
        self.pointed, self.viewed = [use.slot.tensor], [use]

        def write(writer: ScriptWriter) -> None:
            given = [self._operand(source), self._operand(size)]
            value = writer.results(operator, given, {})[0]
            writer.bind(use.slot.tensor, value)

        return write

    def _alias(
        self, owner: Tensor, other: Tensor, shape: Sequence[int]
    ) -> Callable[[ScriptWriter], None]:
        self.pointed = [other]

        def write(writer: ScriptWriter) -> None:
            value = writer.results(aten.reshape.default, [owner, list(shape)], {})[0]
            writer.bind(other, value)

        return write


def _is_operator(run: object) -> bool:
    return isinstance(run, OpOverload)


def _wanted(call: Any, uses: Sequence[TensorUse], *, own: bool) -> list[bool]:  # noqa: ANN401
    """Return which results a call keeps or stores; none of a call of another kind.

    Args:
        call: of a kernel that returns its results
        uses: of the results
        own: whether it is the call of the instruction, which stores them all
    """
    function = getattr(call, "func", None)
    if function is calls.keep_several:
        return [needed for _, _, needed in call.args[1]]
    if function is store_many:
        return [slot is not None for slot in call.args[1]]
    return [True] * len(uses) if own or function is calls.keep_one else []


def _run(call: Any) -> bool:  # noqa: ANN401 - a partial or any other call
    """Run a call; return whether its results have the dtypes of their slots."""
    function = getattr(call, "func", None)
    if function is calls.keep_one:
        run, tensor, _, slot = call.args
        result = run()
        tensor.data = calls.fitted(slot, result)
        return result.dtype is slot.tensor.dtype
    if function is calls.keep_several:
        run, requested = call.args
        results = run()
        for tensor, result in calls.results_of(lambda: results, requested):
            tensor.data = result
        pairs = zip(requested, results, strict=True)
        return all(result.dtype is slot.tensor.dtype for (slot, _, _), result in pairs)
    call()
    return True


def is_symbolic(place: int, scope: Scope) -> bool:
    """Return whether a graph may compute an instruction, of any sizes.

    With jumps the readers of a scalar or of a view are not known, so that both stay what they are.
    """
    bound = scope.flow.instructions[place].bound
    if bound is None or scope.flow.is_moved(bound.args):
        return False
    told = bound.kernel.rule.style is Style.SCALAR or bound.kernel.name == VIEW
    return (
        not (told and not scope.flow.is_sound)
        and (not bound.kernel.writes or bound.kernel.name in CACHED)
        and bound.kernel is built_in(bound.kernel.name)
    )
