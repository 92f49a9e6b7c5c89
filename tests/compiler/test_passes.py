"""Passes: what a pass may do, what is kept on every node, and that nothing given is changed."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import subgraph_rewriter
from torch.fx.passes.infra.pass_base import PassBase, PassResult

import compiler
from compiler import ops, to_edge
from compiler.compat.passes.export_pass import ExportPass
from compiler.compat.passes.rewriting import replace_pattern
from compiler.compat.passes.values import ExportPassBaseError, NodeMetadata
from compiler.passes.base import ExportedProgramPassBase, ExportedProgramPassResult, PassError
from compiler.passes.manager import PassManager
from compiler.passes.pipeline import ExportedProgramPassManager
from tests.compiler.compare import exported, module_of
from tests.compiler.programs import EVERY, SAMPLES, Apply

pytestmark = pytest.mark.slow
_aten = ops.edge.aten
_KEPT = ("stack_trace", "nn_module_stack", "from_node", "debug_handle")


def _edge(function: Any, *inputs: Any, **options: Any) -> compiler.EdgeProgramManager:
    return to_edge(torch.export.export(Apply(function), inputs, **options))


def _calls(manager: compiler.EdgeProgramManager, name: str = "forward") -> list[Any]:
    nodes = manager.exported_program(name).graph.nodes
    return [node for node in nodes if node.op == "call_function"]


def _targets(manager: compiler.EdgeProgramManager) -> list[Any]:
    return [node.target for node in _calls(manager)]


class ReluToSigmoid(ExportPass):
    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op == _aten.relu.default:
            op = _aten.sigmoid.default
        return super().call_operator(op, args, kwargs, meta)


class AddToSubTwice(ExportPass):
    """x + y becomes (x - y) - y, with metadata the pass made up itself."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op is not _aten.add.Tensor:
            return super().call_operator(op, args, kwargs, meta)
        empty = NodeMetadata({})
        once = super().call_operator(_aten.sub.Tensor, args, {}, empty)
        return super().call_operator(_aten.sub.Tensor, (once, args[1]), {}, empty)


class WithoutClones(ExportPass):
    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op.__name__ == "dim_order_ops._clone_dim_order.default":
            return args[0]
        return super().call_operator(op, args, kwargs, meta)


class ToHalf(ExportPass):
    """Casts the inputs of every operator, so that all values behind them change."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op is _aten.relu.default:
            cast = ops.edge.dim_order_ops._to_dim_order_copy.default
            half = {"dtype": torch.float16, "dim_order": [*range(args[0].to_tensor().dim())]}
            args = (super().call_operator(cast, args, half, meta),)
        return super().call_operator(op, args, kwargs, meta)


def test_one_operator_becomes_another_and_keeps_its_source_line() -> None:
    manager = _edge(lambda x: (x.relu() * 2).relu() + 1, torch.randn(3))
    changed = manager.transform([ReluToSigmoid()])
    pairs = list(zip(_calls(manager), _calls(changed), strict=True))
    assert [(a.target, b.target) for a, b in pairs if a.target is not b.target] == [
        (_aten.relu.default, _aten.sigmoid.default)
    ] * 2
    for before, after in pairs:
        assert all(after.meta[key] == before.meta[key] for key in _KEPT)
    assert (
        changed.exported_program()
        .module()(torch.ones(3))
        .allclose((torch.ones(3).sigmoid() * 2).sigmoid() + 1)
    )


def test_one_operator_becomes_two_with_its_lineage() -> None:
    manager = _edge(lambda x, y: (x + y).neg(), torch.randn(3), torch.randn(3))
    changed = manager.transform([AddToSubTwice()])
    first, second, last = _calls(changed)
    assert [first.target, second.target] == [_aten.sub.Tensor] * 2
    (add, _) = _calls(manager)
    for node in (first, second):
        assert all(node.meta[key] == add.meta[key] for key in _KEPT)
        assert node.meta["val"].shape == (3,)
    assert last.args == (second,)


def test_operator_is_removed_by_returning_its_input() -> None:
    manager = _edge(lambda x: x.clone().relu(), torch.randn(3))
    assert len(_calls(manager)) == 2
    assert _targets(manager.transform([WithoutClones()])) == [_aten.relu.default]


def test_values_behind_a_change_are_computed_anew() -> None:
    manager = _edge(lambda x: x.relu().neg().view(2, 3), torch.randn(3, 2))
    dtypes = [node.meta["val"].dtype for node in _calls(manager.transform([ToHalf()]))]
    assert dtypes == [torch.float16] * 4


@pytest.mark.parametrize("name", SAMPLES)
def test_pass_that_changes_nothing_gives_the_same_graph_and_file(name: str) -> None:
    manager = to_edge(exported(EVERY[name], module_of(EVERY[name])))
    before = str(manager.exported_program())
    changed = manager.transform([ExportPass()])
    assert str(changed.exported_program().graph) == str(manager.exported_program().graph)
    for old, new in zip(_calls(manager), _calls(changed), strict=True):
        assert old is not new
        assert {**old.meta, "val": None} == {**new.meta, "val": None}
    assert changed.to_executorch().buffer == manager.to_executorch().buffer
    assert str(manager.exported_program()) == before


@pytest.mark.parametrize("flow", ["cond", "map", "while", "scan"])
def test_pass_walks_bodies_of_control_flow(flow: str) -> None:
    from torch._higher_order_ops.map import map as map_op

    higher = torch.ops.higher_order
    functions: dict[str, Any] = {
        "cond": lambda x: torch.cond(x.sum() > 0, lambda y: y.relu(), lambda y: y.neg(), (x,)),
        "map": lambda x: map_op(lambda y: y.relu(), x),
        "while": lambda x: higher.while_loop(
            lambda i, y: i.sum() < 3, lambda i, y: (i + 1, y.relu()), (torch.zeros(1), x), ()
        ),
        "scan": lambda x: higher.scan(lambda c, y: [c + y, y.relu()], [x[0]], [x], []),
    }
    manager = _edge(functions[flow], torch.randn(3, 2))
    changed = manager.transform([ReluToSigmoid()])

    def inner(one: compiler.EdgeProgramManager) -> list[str]:
        modules = one.exported_program().graph_module.modules()
        graphs = [m.graph for m in modules if isinstance(m, torch.fx.GraphModule)]
        return [str(node.target) for graph in graphs[1:] for node in graph.nodes]

    assert any("relu" in target for target in inner(manager))
    assert not any("relu" in target for target in inner(changed))
    assert sum("sigmoid" in target for target in inner(changed)) == 1
    names = [n for n, _ in manager.exported_program().graph_module.named_children()]
    assert [n for n, _ in changed.exported_program().graph_module.named_children()] == names
    assert changed.to_executorch().buffer


def test_hooks_for_sizes_results_and_outputs_are_called() -> None:
    seen: list[str] = []

    class Watch(ExportPass):
        def call_sym(self, target: Any, args: Any, meta: Any) -> Any:
            seen.append(target.__name__)
            return super().call_sym(target, args, meta)

        def call_getitem(self, value: Any, key: int, meta: Any) -> Any:
            seen.append(f"getitem {key}")
            return super().call_getitem(value, key, meta)

        def placeholder(self, name: str, arg: Any, meta: Any) -> Any:
            seen.append(f"placeholder {name}")
            return super().placeholder(name, arg, meta)

        def output(self, results: Any, meta: Any) -> Any:
            seen.append(f"output {len(results)}")
            return super().output(results, meta)

    size = {0: torch.export.Dim("n", min=2, max=8)}
    manager = _edge(
        lambda x: (*x.topk(2), x.new_zeros(x.shape[0] * 2 + 1)),
        torch.randn(4, 5),
        dynamic_shapes=((size,),),
    )
    changed = manager.transform([Watch()])
    assert seen[0] == "placeholder x" or "placeholder" in seen[0]
    assert {"mul", "add", "getitem 0", "getitem 1", "output 3"} <= set(seen)
    assert str(changed.exported_program().graph) == str(manager.exported_program().graph)


def test_pass_without_base_init_says_so() -> None:
    class Forgetful(ExportPass):
        def __init__(self) -> None:
            pass

    with pytest.raises(PassError, match=r"Forgetful.__init__ does not call super"):
        _edge(torch.relu, torch.randn(2)).transform([Forgetful()])


def test_operator_that_cannot_take_its_new_arguments_is_named_with_the_line() -> None:
    class Wrong(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            return super().call_operator(_aten.mm.default, (args[0], args[0]), {}, meta)

    with pytest.raises(PassError, match=r"aten.mm.default cannot .*programs\.py:\d+") as caught:
        _edge(lambda x: x.relu(), torch.randn(2, 3)).transform([Wrong()])
    assert isinstance(caught.value.__cause__, ExportPassBaseError)


@pytest.mark.parametrize("kind", ["static", "other", "kept", "meant"])
def test_pass_that_overrides_symbolic_sizes_of_inputs_is_refused(kind: str) -> None:
    class Sizes(ExportPass):
        def placeholder(self, name: str, arg: Any, meta: Any) -> Any:
            if kind in ("static", "meant"):
                arg = arg.fake_mode.from_tensor(torch.empty(4, 3))
            elif kind == "other":
                arg = torch.cat([arg, arg])
            return super().placeholder(name, arg, meta)

        def should_preserve_symbolic_input_metadata(self) -> bool:
            return kind != "meant"

    dynamic = (({0: torch.export.Dim("n", min=2, max=8)},),)
    program = torch.export.export(
        Apply(lambda x: x.relu().sin()), (torch.randn(4, 3),), dynamic_shapes=dynamic
    )
    graph_module = to_edge(program).exported_program().graph_module
    if kind in ("kept", "meant"):
        made = Sizes()(graph_module).graph_module
        sizes = [n.meta["val"].shape[0] for n in made.graph.nodes if n.op == "placeholder"]
        assert [isinstance(size, int) for size in sizes] == [kind == "meant"]
        return
    with pytest.raises(ExportPassBaseError, match=r"position 0 did not preserve"):
        Sizes()(graph_module)


def test_metadata_protects_what_says_where_a_node_comes_from() -> None:
    meta = NodeMetadata({"debug_handle": 3})
    meta["delegation_tag"] = "a"
    with pytest.raises(RuntimeError, match="Could not override node key: debug_handle"):
        meta["debug_handle"] = 4
    assert meta.copy().data == {"debug_handle": 3, "delegation_tag": "a"}


class EditsInPlace(PassBase):
    """What passes without a tracer do: new nodes have no metadata at all."""

    def call(self, graph_module: Any) -> Any:
        for node in graph_module.graph.nodes:
            if node.target is _aten.relu.default:
                with graph_module.graph.inserting_before(node):
                    new = graph_module.graph.call_function(_aten.sigmoid.default, node.args)
                    last = graph_module.graph.call_function(_aten.neg.default, (new,))
                node.replace_all_uses_with(last)
                graph_module.graph.erase_node(node)
        graph_module.recompile()
        return PassResult(graph_module, True)


def _sum_pattern(x: Any, y: Any, z: Any) -> Any:
    return _aten.add.Tensor(_aten.add.Tensor(x, y), z)


def _sum_replacement(x: Any, y: Any, z: Any) -> Any:
    return _aten.mul.Tensor(_aten.sub.Tensor(x, y), z)


def _rewritten_by_torch(graph_module: Any) -> None:
    subgraph_rewriter.replace_pattern(graph_module, _sum_pattern, _sum_replacement)


@pytest.mark.parametrize("one", [EditsInPlace(), _rewritten_by_torch], ids=["edit", "rewriter"])
def test_nodes_made_without_metadata_inherit_it_from_what_they_replace(one: Any) -> None:
    manager = _edge(lambda x, y, z: (x + y + z).relu() * y, *(torch.randn(3) for _ in range(3)))
    by_target = {node.target: node for node in _calls(manager)}
    changed = manager.transform([one])
    known = {node.name for node in _calls(manager)}
    new = [node for node in _calls(changed) if node.name not in known]
    origin = by_target[_aten.relu.default if isinstance(one, EditsInPlace) else _aten.add.Tensor]
    assert len(new) == 2
    for node in new:
        assert all(node.meta[key] == origin.meta[key] for key in _KEPT)
        assert node.meta["val"].shape == (3,)
    assert changed.to_executorch().debug_handle_map["forward"]


def test_replaced_pattern_lists_matches_and_joins_origins() -> None:
    found: list[Any] = []

    def rewrite(graph_module: Any) -> None:
        found.extend(replace_pattern(graph_module, _sum_pattern, _sum_replacement))

    x, y, z = (torch.randn(3) for _ in range(3))
    manager = _edge(lambda x, y, z: ((x + y + z).relu() * y + y + x).neg(), x, y, z)
    changed = manager.transform([rewrite])
    assert len(found) == 2
    assert [len(one.replacements) for one in found] == [2, 2]
    sources = [node.meta["from_node"] for node in found[0].replacements]
    assert [len(names) for names in sources] == [2, 2]  # of both sums
    assert _aten.add.Tensor not in _targets(changed)
    wanted = -(((((x - y) * z).relu() * y) - y) * x)
    assert changed.exported_program().module()(x, y, z).allclose(wanted)


def test_pattern_filter_refuses_matches_and_graphs_may_be_given() -> None:
    pattern = torch.fx.symbolic_trace(lambda x: _aten.relu.default(x))
    replacement = torch.fx.symbolic_trace(lambda x: torch.ops.aten.sigmoid.default(x)).graph
    count: list[int] = []

    def rewrite(graph_module: Any) -> None:
        def second(match: Any, graph: Any, wanted: Any) -> bool:
            (node,) = (n for p, n in match.nodes_map.items() if p.op == "call_function")
            return node.name.endswith("_1")

        count.append(len(replace_pattern(graph_module, pattern, replacement, [second])))

    changed = _edge(lambda x: x.relu().neg().relu(), torch.randn(3)).transform([rewrite])
    assert count == [1]
    assert _targets(changed) == [_aten.relu.default, _aten.neg.default, _aten.sigmoid.default]


def test_tensor_that_a_pass_puts_into_the_module_becomes_a_constant() -> None:
    def shift(graph_module: Any) -> None:
        graph_module.register_buffer("shift", torch.tensor([1.0, 2.0]))
        (node,) = (n for n in graph_module.graph.nodes if n.target is _aten.relu.default)
        with graph_module.graph.inserting_before(node):
            held = graph_module.graph.get_attr("shift")
            summed = graph_module.graph.call_function(_aten.add.Tensor, (node.args[0], held))
        node.update_arg(0, summed)

    changed = _edge(torch.relu, torch.randn(2)).transform([shift])
    assert torch.equal(changed.exported_program().constants["shift"], torch.tensor([1.0, 2.0]))
    assert changed.exported_program().module()(torch.zeros(2)).tolist() == [1.0, 2.0]
    assert changed.to_executorch().buffer


def test_passes_by_method_change_only_the_methods_named() -> None:
    programs = {n: torch.export.export(Apply(torch.relu), (torch.randn(2),)) for n in "ab"}
    manager = to_edge(programs)
    changed = manager.transform({"b": [ReluToSigmoid()]})
    assert [n.target for n in _calls(changed, "a")] == [_aten.relu.default]
    assert [n.target for n in _calls(changed, "b")] == [_aten.sigmoid.default]
    with pytest.raises(KeyError, match="unknown method c to transform; available: a, b"):
        manager.transform({"c": [ReluToSigmoid()]})


def test_transform_passes_run_in_the_combined_path() -> None:
    program = torch.export.export(Apply(torch.relu), (torch.randn(2),))
    for passes in (
        [ReluToSigmoid()],
        {"forward": [ReluToSigmoid()]},
        PassManager([ReluToSigmoid()]),
    ):
        lowered = compiler.to_edge_transform_and_lower(program, transform_passes=passes)
        assert _targets(lowered) == [_aten.sigmoid.default]


def test_each_pass_is_a_stage_with_time_count_and_snapshot() -> None:
    seen: list[tuple[str, int | None]] = []

    def observer(event: Any) -> None:
        if event.seconds is not None:
            assert event.seconds >= 0
            graph = event.snapshot()
            seen.append((event.stage, event.nodes))
            assert sum(n.op == "call_function" for n in graph.nodes) == event.nodes
            graph.erase_node(next(iter(reversed(graph.nodes))))  # a copy: nothing notices

    manager = _edge(lambda x: x + x, torch.randn(2))
    changed = manager.transform([AddToSubTwice(), EditsInPlace()], observer=observer)
    assert seen == [("pass AddToSubTwice", 2), ("pass EditsInPlace", 2)]
    assert [event.stage for event in changed.events] == ["edge", *(name for name, _ in seen)]


def test_cancelled_transform_stops_before_the_next_pass() -> None:
    ran: list[int] = []
    manager = _edge(torch.relu, torch.randn(2))

    def first(graph_module: Any) -> None:
        ran.append(1)

    def second(graph_module: Any) -> None:
        ran.append(2)

    with pytest.raises(compiler.CancelledError, match="before stage pass second"):
        manager.transform([first, second], cancelled=lambda: bool(ran))
    assert ran == [1]


def test_pass_that_raises_or_returns_rubbish_is_named() -> None:
    def fails(graph_module: Any) -> Any:
        raise ValueError("no such thing")

    manager = _edge(torch.relu, torch.randn(2))
    with pytest.raises(PassError, match=r"the pass fails failed \(ValueError: no such thing\)"):
        manager.transform([fails])
    with pytest.raises(PassError, match="returned 3, not a PassResult"):
        manager.transform([lambda graph_module: 3])
    with pytest.raises(TypeError, match=r"pass an instance: ReluToSigmoid\(\)"):
        manager.transform([ReluToSigmoid])
    assert _targets(manager) == [_aten.relu.default]


def test_pass_that_changes_the_interface_is_refused() -> None:
    def takes_away(graph_module: Any) -> None:
        for node in graph_module.graph.nodes:
            if node.op == "placeholder" and not node.users:
                graph_module.graph.erase_node(node)

    def adds_result(graph_module: Any) -> None:
        last = next(iter(reversed(graph_module.graph.nodes)))
        last.args = ((*last.args[0], last.args[0][0]),)

    manager = _edge(lambda x, y: x.relu(), torch.randn(2), torch.randn(2))
    with pytest.raises(PassError, match="takes_away removed the user's input"):
        manager.transform([takes_away])
    with pytest.raises(PassError, match=r"adds_result produced results .* the program has 1"):
        manager.transform([adds_result])


def test_program_pass_checks_before_and_after() -> None:
    told: list[str] = []

    class Scale(ExportedProgramPassBase):
        def requires(self, exported_program: Any) -> None:
            told.append("requires")

        def call(self, exported_program: Any) -> ExportedProgramPassResult:
            told.append("call")
            for name, value in exported_program.state_dict.items():
                exported_program.state_dict[name] = torch.nn.Parameter(value * 2)
            return ExportedProgramPassResult(exported_program, True)

        def ensures(self, exported_program: Any) -> None:
            told.append("ensures")

    linear = torch.nn.Linear(2, 2).eval()
    before = linear.weight.detach().clone()
    manager = to_edge(torch.export.export(linear, (torch.randn(1, 2),)))
    changed = manager.transform([Scale()])
    assert told == ["requires", "call", "ensures"]
    assert torch.equal(changed.exported_program().state_dict["weight"], before * 2)
    assert torch.equal(manager.exported_program().state_dict["weight"], before)
    assert torch.equal(linear.weight, before)


def test_pass_manager_runs_checks_steps_and_constraints() -> None:
    graph_module = _edge(lambda x: x + x, torch.randn(2)).exported_program().graph_module
    counts: list[int] = []
    manager = PassManager([AddToSubTwice(), [ExportPass()]], run_checks_after_each_pass=True)
    manager.add_checks(lambda module: counts.append(len(module.graph.nodes)))
    result = manager(graph_module)
    assert counts == [3, 4, 4]
    assert result.modified
    assert len(result.graph_module.graph.nodes) == 4

    def fails(module: Any) -> None:
        if len(module.graph.nodes) == 4:
            raise ValueError("four")

    manager.set_checks(fails)
    with pytest.raises(PassError, match="a check failed after the pass 'AddToSubTwice': four"):
        manager(graph_module)
    manager.suppress_check_failures = True
    with pytest.warns(UserWarning, match="four"):
        manager(graph_module)
    with pytest.raises(TypeError, match="only take in one variable"):
        manager.add_checks(operator.add)


def test_pass_manager_orders_passes_by_constraints() -> None:
    ran: list[str] = []
    first, second = (lambda m: ran.append("a")), (lambda m: ran.append("b"))
    from torch.fx.passes.infra.pass_manager import this_before_that_pass_constraint as before

    module = torch.fx.symbolic_trace(torch.nn.Identity())
    PassManager([second, first], [before(first, second)])(module)
    assert ran == ["a", "b"]
    circular = PassManager([first, second], [before(first, second), before(second, first)])
    with pytest.raises(RuntimeError, match="Circular dependency"):
        circular(module)
    with pytest.raises(RuntimeError, match="constraint violated"):
        PassManager([second, first], [before(first, second)]).validate_constraints()


def test_pass_manager_names_the_pass_that_failed() -> None:
    def fails(module: Any) -> None:
        raise ValueError("bad luck")

    module = torch.fx.symbolic_trace(torch.nn.Identity())
    with pytest.raises(PassError, match=r"'fails' pass after the following passes: \[\]: bad luck"):
        PassManager([fails])(module)


def test_program_pass_manager_takes_both_kinds_and_leaves_the_program() -> None:
    program = _edge(lambda x: x + x, torch.randn(2)).exported_program()
    before = str(program)
    manager = ExportedProgramPassManager(
        [AddToSubTwice(), compiler.RemoveUnusedParametersPass()], run_checks_after_each_pass=True
    )
    checked: list[Any] = []
    manager.add_checks(checked.append)
    result = manager(program)
    assert result.modified
    assert [n.target for n in result.exported_program.graph.nodes if n.op == "call_function"] == [
        _aten.sub.Tensor
    ] * 2
    assert all(isinstance(one, torch.export.ExportedProgram) for one in checked)
    assert len(checked) == 3
    assert str(program) == before


def test_pattern_bound_to_an_operator_is_its_kernel() -> None:
    with torch.library._scoped_library("bound_test", "FRAGMENT") as library:

        @compiler.bind_pattern_to_op(library, "shifted(Tensor x, Tensor y) -> Tensor")
        def pattern(x: Any, y: Any) -> Any:
            return torch.ops.aten.relu.default(torch.ops.aten.add.Tensor(x, y))

        own = ops.backend.bound_test.shifted.default
        found: list[Any] = []

        def fuse(graph_module: Any) -> None:
            found.extend(replace_pattern(graph_module, pattern, lambda x, y: own(x, y)))

        x, y = torch.randn(3), torch.randn(3)
        manager = _edge(lambda x, y: (x + y).relu().neg(), x, y)
        changed = manager.transform([fuse, ExportPass()])
        assert len(found) == 1
        assert _targets(changed) == [own, _aten.neg.default]
        assert changed.exported_program().module()(x, y).equal(-(x + y).relu())


def test_node_is_shown_in_its_graph_with_what_is_known() -> None:
    graph = _edge(lambda x: x.relu().neg(), torch.randn(3)).exported_program().graph
    node = next(n for n in graph.nodes if n.target is _aten.neg.default)
    text = compiler.inspect_node(graph, node)
    (marked,) = (line for line in text.splitlines() if line.startswith("--> "))
    assert "%aten_neg_default" in marked
    assert "debug_handle: 2" in text
    assert "programs.py:" in text
    assert "The node stacktrace:\nTraceback (most recent call last):\nFile" in text
    with pytest.raises(ValueError, match="not a node of this graph"):
        compiler.inspect_node(torch.fx.Graph(), node)


def test_pass_after_delegation_keeps_the_delegates() -> None:
    from compiler.backends.demo import AddMulPartitionerDemo

    manager = _edge(lambda x, y: ((x + y) * y).relu() + x, torch.randn(2, 2), torch.randn(2, 2))
    delegated = manager.to_backend(AddMulPartitionerDemo())
    changed = delegated.transform([ReluToSigmoid()])
    names = [n for n, _ in delegated.exported_program().graph_module.named_children()]
    assert [n for n, _ in changed.exported_program().graph_module.named_children()] == names
    assert _aten.sigmoid.default in _targets(changed)
    assert changed.verdicts == delegated.verdicts
    before, after = (one.to_executorch().delegate_map for one in (delegated, changed))
    assert before == after


def test_recomputed_results_keep_the_layout_of_the_kernels() -> None:
    class Again(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op is _aten.convolution.default:
                args = (super().call_operator(_aten.relu.default, (args[0],), {}, meta), *args[1:])
            return super().call_operator(op, args, kwargs, meta)

    conv = torch.nn.Conv2d(4, 4, 3).eval().to(memory_format=torch.channels_last)
    for given in (
        torch.randn(1, 4, 6, 6),
        torch.randn(1, 4, 6, 6).to(memory_format=torch.channels_last),
    ):
        manager = to_edge(torch.export.export(conv, (given,)))
        changed = manager.transform([Again()])
        (old,) = (n for n in _calls(manager) if n.target is _aten.convolution.default)
        (new,) = (n for n in _calls(changed) if n.target is _aten.convolution.default)
        assert new.meta["val"].stride() == old.meta["val"].stride()
