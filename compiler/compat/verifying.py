"""The verifier of edge programs and the check of dtypes, called as ExecuTorch's are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._export.verifier import SpecViolationError
from torch.export import ExportedProgram
from typing_extensions import override

from compiler.dialect.dtype_rules import dtype_rule_of
from compiler.dialect.ops import EdgeOp
from compiler.dialect.templates import tensors_in
from compiler.edge.config import EdgeCompileConfig
from compiler.edge.verifier import check_program, operator_fault, verifier_for


class EdgeDialectVerifier:
    """Checks graphs and programs of the edge dialect.

    Args:
        config: exceptions from the checks
    """

    def __init__(self, config: EdgeCompileConfig) -> None:
        self._config = config
        self._of_graphs: Any = verifier_for(config)()

    def __call__(self, given: ExportedProgram | torch.fx.GraphModule) -> None:
        """Check a program, or a graph alone.

        Raises: SpecViolationError with every violation
        """
        if isinstance(given, ExportedProgram):
            check_program(given.graph_module, given.graph_signature, self._config)
        else:
            self._of_graphs.check_additional(given)

    def is_valid(self, given: ExportedProgram | torch.fx.GraphModule) -> bool:
        """Return whether there is no violation."""
        try:
            self(given)
        except SpecViolationError:
            return False
        return True

    def check_valid_edge_op(self, op: object) -> None:
        """Check an operator of the edge dialect.

        Raises: SpecViolationError if it is not an edge operator, or not allowed in a program
        """
        if not isinstance(op, EdgeOp):
            raise SpecViolationError(f"{op} is not an Edge operator")
        self.check_valid_op(op)

    def check_valid_op(self, op: object) -> None:
        """Check an operator of the edge dialect; other functions are checked where they are called.

        Raises: SpecViolationError if it is not allowed in a program
        """
        fault = operator_fault(op, self._config) if isinstance(op, EdgeOp) else ""
        if fault:
            raise SpecViolationError(fault)


def EXIREdgeDialectVerifier(  # noqa: N802 - as documented
    edge_compile_config: EdgeCompileConfig | None = None,
    class_only: bool = False,
    core_aten_ops_exception_list: Sequence[Any] | None = None,
    preserve_ops: Sequence[Any] | None = None,
) -> Any:  # noqa: ANN401
    """Return a verifier, or a class for `ExportedProgram(verifiers=[...])`.

    Args:
        edge_compile_config: exceptions from the checks
        class_only: return the class
        core_aten_ops_exception_list: further accepted operators
        preserve_ops: further preserved operators
    """
    given = edge_compile_config or EdgeCompileConfig()
    more = [*(core_aten_ops_exception_list or ()), *(preserve_ops or ())]
    config = replace(given, _check_ir_validity=True).with_exceptions(more)
    return verifier_for(config) if class_only else EdgeDialectVerifier(config)


class EdgeOpArgValidator(torch.fx.Interpreter):
    """Runs a graph and collects the calls whose dtypes an operator is not defined for.

    Attributes:
        violating_ops: operator -> (dtype of each tensor by its name in the schema, node)
    """

    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.violating_ops: dict[EdgeOp, tuple[dict[str, torch.dtype], torch.fx.Node]] = {}

    @override
    def run_node(self, n: torch.fx.Node) -> Any:
        """Run a node; record its operator if its dtypes are invalid."""
        result = super().run_node(n)
        rule = dtype_rule_of(n.target.op) if isinstance(n.target, EdgeOp) else None
        if rule is None or not isinstance(n.target, EdgeOp):
            return result
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        names = [argument.name for argument in n.target.op._schema.arguments]
        given = (*zip(names, args, strict=False), *kwargs.items())
        found = {name: tensors_in(value)[0].dtype for name, value in given if tensors_in(value)}
        results = [tensor.dtype for tensor in tensors_in(result)]
        if not rule.accepts(found, results):
            returned = {f"__ret_{place}": dtype for place, dtype in enumerate(results)}
            self.violating_ops[n.target] = {**found, **returned}, n
        return result
