"""Runs one payload: a register for each value, a bound call for each node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from runtime.backends.graph.operation import Operand, Operation, OperatorTable
from runtime.backends.graph.registers import dtype_of_value, first_registers, refused
from runtime.backends.graph.states import first_state
from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import DelegateTracer
from runtime.errors import ErrorCode, ExecutionError
from schema.graph import Graph, GraphNode, GraphValue, NodeKind
from schema.origins import INTERPRETED
from schema.payloads import Payload
from schema.payloads.nested import inner_label

_UNDEFINED = "other"  # the kind of a value that a payload names and does not declare
_HALF = (torch.float16, torch.bfloat16)
_PASSIVE = (NodeKind.PLACEHOLDER, NodeKind.GET_ATTR, NodeKind.OUTPUT)
_UNTRACED = DelegateTracer(None, (0, 0))
_SCALARS: dict[str, Callable[[Any], Any]] = {"symint": int, "int": int, "float": float}


class GraphEngine:
    """A payload that is ready to run.

    Attributes:
        graph: of the payload
        places: register of each value, by name

    Args:
        payload: decoded
        table: its operators
        partition: index among the delegates of the method
        block: name of the block of the payload that it runs, empty for the outermost graph

    Raises: DelegateError naming the operators that are not in the table
    """

    def __init__(
        self, payload: Payload, table: OperatorTable, partition: int, block: str = ""
    ) -> None:
        if payload.graph is None:
            why = payload.issues[0].message if payload.issues else "the payload has no graph"
            raise refused(why, partition)
        self.graph: Graph = payload.graph
        self.places = {name: place for place, name in enumerate(self.graph.values)}
        self._partition = partition
        self._labels = [inner_label(block, node.name) for node in self.graph.nodes]
        self._tracer = _UNTRACED  # of the call around, for a block
        operations = _operations(self.graph, table, partition)  # the first that is refused
        self._dtypes = [dtype_of_value(one, table, partition) for one in self.graph.values.values()]
        self._fixed: list[Any] = first_registers(payload, table, partition)
        written = {name for node in self.graph.nodes for name in node.outputs}
        constants = {name for name, value in self.graph.values.items() if value.constant}
        again = self._written_again(table)
        self._state = [(self.places[name],) * 2 for name in (written & constants) | again]
        self._state += [
            (self.places[name], self.places[value])
            for name, value in table.state_writes(self.graph).items()
        ]
        self._lent: frozenset[int] = frozenset()  # memory of the inputs of a run
        self._mains = [0 if one is None else one.main for one in operations]
        self._blocks: list[tuple[GraphEngine, ...]] = [
            () if one is None else one.blocks for one in operations
        ]
        reads = [
            () if one is None else (*_places(one.operands, self.places),) for one in operations
        ]
        self._once = [
            index
            for index, node in enumerate(self.graph.nodes)
            if table.once is not None and operations[index] is not None and table.once(node)
        ]
        self._forgotten: set[int] = set()  # what was read only by what is computed once
        self._check_computed(reads)
        self._dropped = self._last_uses(reads)
        self._held: list[Any] = []
        self._calls = [
            None if one is None else self._call(node, one)
            for node, one in zip(self.graph.nodes, operations, strict=True)
        ]
        self._compute_once(reads)
        self._steps = [
            (index, call, self._dropped[index])
            for index, call in enumerate(self._calls)
            if call is not None
        ]
        self._begins = [(place, first_state(self._fixed[place])) for place, _ in self._state]

    def _written_again(self, table: OperatorTable) -> set[str]:
        """Return the values that are computed at load and written by each run: they are state."""
        once: set[str] = set()
        later: set[str] = set()
        for node in self.graph.nodes:
            is_once = table.once is not None and table.once(node)
            (once if is_once else later).update(node.outputs)
        return once & later

    # ---- binding
    def _call(self, node: GraphNode, operation: Operation) -> Callable[[], None]:
        """Return the call of a node: registers in, registers out."""
        arguments = [self._source(operand) for operand in operation.operands]
        run = self._widened(node, operation)
        targets = [self.places[name] for name in node.outputs]
        finish = [self._finisher(name) for name in node.outputs]
        held = self._held
        plain = [place for place in arguments if isinstance(place, int)]
        if len(plain) == len(arguments) and len(targets) == 1:
            return self._plain_call(run, plain, targets[0], finish[0])
        if len(plain) == len(arguments):

            def take() -> Any:  # noqa: ANN401 - whatever the operator returns
                return run(*[held[place] for place in plain])

        else:

            def take() -> Any:  # noqa: ANN401
                return run(*[_taken(held, place) for place in arguments])

        if len(targets) != 1:

            def several() -> None:
                for target, done, made in zip(targets, finish, take(), strict=False):
                    held[target] = done(made)

            return several
        (target,), (done,) = targets, finish

        def one() -> None:
            held[target] = done(take())

        return one

    def _plain_call(
        self,
        run: Callable[..., Any],
        reads: Sequence[int],
        target: int,
        done: Callable[[Any], Any],
    ) -> Callable[[], None]:
        """Return the call of nearly all nodes, in one function: small graphs cost calls."""
        held, dtype = self._held, self._dtypes[target]

        def one() -> None:
            made = run(*[held[place] for place in reads])
            is_done = made.__class__ is torch.Tensor and made.dtype is dtype
            held[target] = made if is_done else done(made)

        if len(reads) == 1:
            (first,) = reads

            def of_one() -> None:
                made = run(held[first])
                is_done = made.__class__ is torch.Tensor and made.dtype is dtype
                held[target] = made if is_done else done(made)

            return of_one
        if len(reads) == 2:
            left, right = reads

            def of_two() -> None:
                made = run(held[left], held[right])
                is_done = made.__class__ is torch.Tensor and made.dtype is dtype
                held[target] = made if is_done else done(made)

            return of_two
        return one

    def _source(self, operand: Operand) -> Any:  # noqa: ANN401 - a register, or several in a list
        if isinstance(operand, str):
            return self.places[operand]
        if isinstance(operand, tuple):
            return [self._source(one) for one in operand]
        self._fixed.append(operand.value)
        return len(self._fixed) - 1

    def _finisher(self, name: str) -> Callable[[Any], Any]:
        """Return the conversion of a result into the payload's value; its dtype rounds."""
        value, dtype = self.graph.values[name], self._dtypes[self.places[name]]
        if dtype is None:
            return _SCALARS.get(value.kind, _same)

        def cast_to_value(made: Any) -> Any:  # noqa: ANN401
            if isinstance(made, torch.Tensor):
                return made if made.dtype is dtype else made.to(dtype)
            first = cast("Any", made)[0] if isinstance(made, (tuple, list)) else made
            return None if first is None else torch.as_tensor(first).to(dtype)

        return cast_to_value

    def _widened(self, node: GraphNode, operation: Operation) -> Callable[..., Any]:
        """Return the function, in float32 where the payload holds halves: results are rounded."""
        names = (*_names(operation.operands), *node.outputs)
        if not any(self._dtypes[self.places[name]] in _HALF for name in names):
            return operation.run
        run = operation.run

        def wide(*given: Any) -> Any:  # noqa: ANN401
            return run(*[_wide(one) for one in given])

        return wide

    def _check_computed(self, reads: Sequence[Sequence[int]]) -> None:
        """Check that what a node reads is there before it, as compilers must see to.

        MPS 1.4.1 writes nodes that read a scalar under a number that nothing has.

        Raises: DelegateError naming the node and the value
        """
        values = [*self.graph.values.values()]
        known = {self.places[name] for name in self.graph.inputs}
        for index, (node, own) in enumerate(zip(self.graph.nodes, reads, strict=True)):
            for place in own:
                value = values[place]
                absent = value.tensor is not None or value.kind == _UNDEFINED
                if absent and place not in known and self._fixed[place] is None:
                    why = f"node {index} ({node.target}) reads {value.name}, which is not computed"
                    raise refused(f"{why} before it", self._partition)
            known.update(self.places[name] for name in node.outputs)

    def _last_uses(self, reads: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Return the registers without a later use, for each node."""
        last: dict[int, int] = {}
        for index, (node, own) in enumerate(zip(self.graph.nodes, reads, strict=True)):
            for place in (*own, *(self.places[name] for name in node.outputs)):
                last[place] = index
        kept = {self.places[name] for name in self.graph.outputs}
        kept |= {self.places[name] for name, one in self.graph.values.items() if one.constant}
        kept |= {source for _, source in self._state}
        kept |= {
            self.places[name] for index in self._once for name in self.graph.nodes[index].outputs
        }
        dropped: list[list[int]] = [[] for _ in reads]
        for place, index in last.items():
            if place not in kept:
                dropped[index].append(place)
        return [tuple(places) for places in dropped]

    def _compute_once(self, reads: Sequence[Sequence[int]]) -> None:
        """Replace nodes whose results never change by their results, and forget what these read."""
        if not self._once:
            return
        self._held[:] = self._fixed
        for index in self._once:
            self.run_node(index)
            for name in self.graph.nodes[index].outputs:
                self._fixed[self.places[name]] = self._held[self.places[name]]
            self._calls[index] = None
        self._held.clear()
        used = {place for index, own in enumerate(reads) if self._calls[index] for place in own}
        used |= {self.places[name] for name in self.graph.outputs}
        self._forgotten = {place for index in self._once for place in reads[index]} - used
        for place in self._forgotten:
            self._fixed[place] = None

    # ---- running
    def run(self, inputs: Sequence[Any], tracer: DelegateTracer) -> list[Any]:
        """Run all nodes and return the results.

        Raises: DelegateError naming the node that failed
        """
        self.begin(inputs)
        if tracer.records:
            self._run_traced(tracer)
        else:
            self._run_plain()
        return self.results()

    def run_nested(self, inputs: Sequence[Any]) -> list[Any]:
        """Run a block for the node that has it; its nodes are events of the call around.

        Raises: DelegateError naming the node that failed
        """
        return self.run(inputs, self._tracer)

    def begin(self, inputs: Sequence[Any]) -> None:
        """Set the inputs."""
        self._held[:] = self._fixed
        if self._state:
            self._lent = frozenset(_memory(one) for one in inputs if isinstance(one, torch.Tensor))
        for name, given in zip(self.graph.inputs, inputs, strict=True):
            place = self.places[name]
            self._held[place] = self._entered(self.graph.values[name], given, self._dtypes[place])

    @staticmethod
    def _entered(value: GraphValue, given: Any, dtype: torch.dtype | None) -> Any:  # noqa: ANN401
        if isinstance(given, torch.Tensor):
            if dtype is not None:
                return given.to(dtype)
            return given.item() if value.kind in _SCALARS else given
        return given if dtype is None else torch.as_tensor(given).to(dtype)

    def _run_plain(self) -> None:
        held = self._held
        index = 0
        try:
            for index, call, dropped in self._steps:  # noqa: B007 - for the error
                call()
                for place in dropped:
                    held[place] = None
        except Exception as error:
            raise self._at(error, index) from error

    def _run_traced(self, tracer: DelegateTracer) -> None:
        for index, node in enumerate(self.graph.nodes):
            if self._calls[index] is not None:
                self._run_node_traced(index, tracer)
                if tracer.logs_values:
                    self._log(node, index, tracer)
            for place in self._dropped[index]:
                self._held[place] = None

    def _run_node_traced(self, index: int, tracer: DelegateTracer) -> None:
        """Run a node as one event; of one with blocks, each node of each iteration is an event."""
        blocks = self._blocks[index]
        if not blocks:
            started = tracer.start()
            self.run_node(index)
            tracer.end(self._labels[index], started, INTERPRETED)
            return
        around = [block._tracer for block in blocks]  # one block may be inside another one too
        for block in blocks:
            block._tracer = tracer
        try:
            self.run_node(index)
        finally:
            for block, before in zip(blocks, around, strict=True):
                block._tracer = before

    def _log(self, node: GraphNode, index: int, tracer: DelegateTracer) -> None:
        main = self._mains[index]
        values = [self._held[self.places[name]] for name in node.outputs]
        tensors = [one.contiguous() for one in values if isinstance(one, torch.Tensor)]
        if len(tensors) == len(values) and values:
            own = [tensors[main], *tensors[:main], *tensors[main + 1 :]]
            tracer.log_value(self._labels[index], own[0] if len(own) == 1 else own)

    def run_node(self, index: int) -> None:
        """Run one node; those before it have run.

        Raises: DelegateError naming the node
        """
        call = self._calls[index]
        try:
            if call is not None:
                call()
        except Exception as error:
            raise self._at(error, index) from error

    def has_tensor(self, name: str) -> bool:
        """Return whether a value is a tensor in a run, not a literal that operators have."""
        value = self.graph.values[name]
        if value.tensor is None or value.kind == "str" or value.literal is not None:
            return False
        place = self.places[name]
        stays = self._fixed[place] is not None
        return stays or not (value.constant or place in self._forgotten)

    def value(self, place: int) -> Any:  # noqa: ANN401 - a tensor or a scalar
        """Return the content of a register, None before it is computed."""
        return self._held[place]

    def replace(self, place: int, value: Any) -> None:  # noqa: ANN401
        """Replace the content of a register."""
        self._held[place] = value

    def results(self) -> list[Any]:
        """Return the results; state that nodes have written stays for the next run."""
        for place, source in self._state:
            self._fixed[place] = _kept(self._held[source], self._lent)
        return [self._held[self.places[name]] for name in self.graph.outputs]

    def reset_state(self) -> None:
        """Put the state back to what it was when the payload was loaded."""
        for place, first in self._begins:
            self._fixed[place] = first()
        for block in self._blocks:
            for engine in block:
                engine.reset_state()

    def _at(self, error: Exception, index: int) -> DelegateError:
        if isinstance(error, DelegateError):
            return error
        node = self.graph.nodes[index]
        code, reason = ErrorCode.InvalidArgument, str(error).splitlines()[0] if str(error) else ""
        if isinstance(error, ExecutionError):
            code, reason = error.code, error.reason
        return DelegateError(
            code,
            reason or type(error).__name__,
            partition=self._partition,
            node=index,
            kind=node.target,
            debug_handle=node.debug_handle,
        )


def _same(made: Any) -> Any:  # noqa: ANN401
    return made


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _kept(value: Any, lent: frozenset[int]) -> Any:  # noqa: ANN401
    """Return a value for the next run, at which the memory of inputs has other values."""
    is_lent = isinstance(value, torch.Tensor) and _memory(value) in lent
    return value.clone() if is_lent else value


def _wide(one: Any) -> Any:  # noqa: ANN401
    if isinstance(one, torch.Tensor):
        return one.float() if one.dtype in _HALF else one
    return [_wide(item) for item in cast("list[Any]", one)] if isinstance(one, list) else one


def _taken(held: Sequence[Any], source: Any) -> Any:  # noqa: ANN401
    return held[source] if isinstance(source, int) else [_taken(held, one) for one in source]


def _names(operands: Sequence[Operand]) -> list[str]:
    found: list[str] = []
    for operand in operands:
        if isinstance(operand, str):
            found.append(operand)
        elif isinstance(operand, tuple):
            found += _names(operand)
    return found


def _places(operands: Sequence[Operand], places: Mapping[str, int]) -> list[int]:
    return [places[name] for name in _names(operands)]


def _operations(graph: Graph, table: OperatorTable, partition: int) -> list[Operation | None]:
    found: list[Operation | None] = []
    unknown: set[str] = set()
    for node in graph.nodes:
        if node.kind in _PASSIVE:
            found.append(None)
            continue
        known = node.kind in (NodeKind.CALL, NodeKind.CONTROL)
        operation = table.bind(node, graph) if known else None
        if operation is None:
            unknown.add(node.target or node.kind.value)
        found.append(operation)
    if unknown:
        raise refused(f"operators that are not known: {', '.join(sorted(unknown))}", partition)
    return found
