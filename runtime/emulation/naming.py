"""Names values that pass between partitions where no kernel call alone shows which they are.

A naming is taken if every instruction agrees with it: a kernel call computes its node from values
of those names, and a partition computes its results from its inputs by nodes that have its debug
handles. By induction each value then is what the graph computes, so that of several namings that
agree any one gives the results of the program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from runtime.emulation.names import Handles, ValueMatcher, fits, reads
from schema.graph import Graph, NodeKind
from schema.program import model as m

Names = Mapping[int, str]
_MOST_CHOICES = 2000  # each looks at the whole graph


def consistent_names(
    graph: Graph,
    plan: m.ExecutionPlan,
    handles: Handles,
    matcher: ValueMatcher,
    constants: Collection[str],
) -> Names | None:
    """Return value index -> name in the graph, with which all instructions agree.

    None if no naming agrees, or none of the first 2,000 choices leads to one.

    Args:
        graph: edge graph of the method
        plan: its plan
        handles: debug handles of each instruction
        matcher: with the names that are certain
        constants: names of values that need no computation
    """
    return _NamingSearch(graph, plan, handles, matcher, constants).found()


class _NamingSearch:
    """Goes through the instructions in order, and back where nothing agrees any more."""

    def __init__(
        self,
        graph: Graph,
        plan: m.ExecutionPlan,
        handles: Handles,
        matcher: ValueMatcher,
        constants: Collection[str],
    ) -> None:
        self._graph = graph
        self._plan = plan
        self._handles = handles
        self._matcher = matcher
        self._constants = constants
        instructions = plan.chains[0].instructions if len(plan.chains) == 1 else ()
        self._steps = [entry.instr_args for entry in instructions]
        self._reads: dict[int, Sequence[int]] = {}  # delegate call -> value indices
        self._writes: dict[int, Sequence[int]] = {}
        for at, args in enumerate(self._steps):
            if isinstance(args, m.DelegateCall):
                split = len(args.args) - matcher.results(at, args.args)
                self._reads[at], self._writes[at] = args.args[:split], args.args[split:]
        self._makers = {index: at for at, written in self._writes.items() for index in written}
        self._known: dict[tuple[int, tuple[str, ...]], Collection[str]] = {}

    def found(self) -> Names | None:
        """Return the first naming that all agree with."""
        open_choices = [self._choices(0, self._matcher.of)] if self._steps else []
        for _ in range(_MOST_CHOICES):
            if not open_choices:
                return None
            chosen = next(open_choices[-1], None)
            if chosen is None:
                open_choices.pop()
            elif len(open_choices) == len(self._steps):
                return self._with_unread(chosen)
            else:
                open_choices.append(self._choices(len(open_choices), chosen))
        return None

    def _with_unread(self, of: Names) -> Names:
        """Return the names with those of results that nothing reads, on either side, by order.

        Checks that compilers leave out compute no tensor, and do not count as readers.
        """
        values = self._graph.values
        read = {
            name
            for node in self._graph.nodes
            if any(one in values and values[one].tensor for one in node.outputs)
            for name in reads(node)
        }
        found = dict(of)
        for index in self._makers:
            used = {*found.values()}
            left = [n for n in self._made(index, of) if n not in used and n not in read]
            if index not in found and left:
                found[index] = left[0]
        return found

    def _choices(self, at: int, of: Names) -> Iterator[Names]:
        """Return the names so far with those of one instruction, for each way that agrees."""
        args = self._steps[at]
        if isinstance(args, m.DelegateCall):
            yield from self._of_delegate(at, of)
        elif isinstance(args, m.KernelCall) and at not in self._matcher.nodes:
            for node in self._matcher.candidates(at, args, of):
                names = self._matcher.names(node, args)
                added = {index: name for index, name in names.items() if index not in of}
                made = (name in self._made(i, of) for i, name in added.items() if i in self._makers)
                if all(made):
                    yield {**of, **added}
        elif isinstance(args, (m.KernelCall, m.FreeCall)):
            yield of

    def _of_delegate(self, at: int, of: Names) -> Iterator[Names]:
        left = [index for index in self._reads[at] if index not in of]
        used = {*of.values()}
        possible = [[n for n in self._made(index, of) if n not in used] for index in left]
        for names in product(*possible):
            chosen = {**of, **dict(zip(left, names, strict=True))}
            inside = self._computed(at, chosen)
            written = [chosen[index] for index in self._writes[at] if index in chosen]
            if len({*names}) == len(names) and all(name in inside for name in written):
                yield chosen

    def _made(self, index: int, of: Names) -> Sequence[str]:
        """Return what the value that a partition writes can be."""
        maker = self._makers.get(index)
        inside = () if maker is None else self._computed(maker, of)
        return [name for name in inside if fits(self._plan, index, self._graph, name)]

    def _computed(self, at: int, of: Names) -> Collection[str]:
        """Return what the nodes with the handles of a partition compute from its inputs."""
        given = tuple(of.get(index, "") for index in self._reads[at])
        if (at, given) not in self._known:
            known, allowed = {*given, *self._constants}, {*self._handles.get(at, ())}
            inside: dict[str, None] = {}
            for node in self._graph.nodes:
                own = node.kind is NodeKind.CALL and node.debug_handle in allowed
                if own and all(name in known or name in inside for name in reads(node)):
                    inside.update(dict.fromkeys(node.outputs))
            self._known[at, given] = inside
        return self._known[at, given]
