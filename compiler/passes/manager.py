"""Runs passes one after the other over a graph module or a program, with checks between them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._export.verifier import SpecViolationError

from compiler.errors import CancelledError
from compiler.passes.base import (
    PassError,
    PassResult,
    PassType,
    flat_passes,
    graph_result,
    pass_name,
)

Check = Callable[[Any], None]
Constraint = Callable[[Any, Any], bool]


class PassManager:
    """Runs passes over a graph module.

    Attributes:
        passes: in order
        run_checks_after_each_pass: check after each pass, not only before the first
        suppress_check_failures: let a failing check warn instead of raise
        steps: how often the passes run, while they change something
    """

    def __init__(
        self,
        passes: Sequence[Any] | None = None,
        constraints: Sequence[Constraint] | None = None,
        steps: int = 1,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        """Store passes, flattening nested lists.

        Args:
            passes: callables of a graph module
            constraints: each decides for two passes whether the first may run before the second
            steps: largest number of iterations
            run_checks_after_each_pass: check after each pass too
            suppress_check_failures: warn where a check fails

        Raises: TypeError if a pass is not callable
        """
        self.passes: list[PassType] = flat_passes(list(passes or ()))
        self.constraints: list[Constraint] = list(constraints or ())
        self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._checks: list[Check] = []

    def add_pass(self, one: PassType) -> None:
        """Append a pass."""
        self.passes += flat_passes([one])

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a rule about the order of passes."""
        self.constraints.append(constraint)

    def add_checks(self, check: Check) -> None:
        """Add a check: a callable of the input of the passes that raises on failure.

        Raises: TypeError if it does not accept exactly one argument
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self._checks.append(check)

    def set_checks(self, check: Check) -> None:
        """Replace all checks by one."""
        self._checks.clear()
        self.add_checks(check)

    def check(self, module: Any) -> None:  # noqa: ANN401
        """Run all checks; subclasses may override this to add their own.

        Raises: ValueError naming a call of a method; errors of the checks
        """
        if isinstance(module, torch.fx.GraphModule):
            for inner in module.modules():
                _check_calls(inner)
        for check in self._checks:
            check(module)

    def validate_constraints(self) -> None:
        """Check that the order of the passes satisfies all constraints.

        Raises: RuntimeError naming two passes that violate one
        """
        for constraint in self.constraints:
            for place, first in enumerate(self.passes):
                for second in self.passes[place + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated: {pass_name(first)} runs before "
                            f"{pass_name(second)}"
                        )

    def solve_constraints(self) -> None:
        """Sort the passes so that all constraints are satisfied.

        Raises: RuntimeError naming passes that depend on each other
        """
        left = list(self.passes)
        ordered: list[PassType] = []
        while left:
            free = [one for one in left if not self._waits(one, left)]
            if not free:
                names = ", ".join(map(pass_name, left))
                raise RuntimeError(f"Circular dependency detected within the passes {names}")
            ordered.append(free[0])
            left.remove(free[0])
        self.passes = ordered

    def _waits(self, one: PassType, left: Sequence[PassType]) -> bool:
        return any(
            not c(one, other) for c in self.constraints for other in left if other is not one
        )

    def __call__(self, module: Any) -> Any:  # noqa: ANN401
        """Return the transformed graph module, and whether it changed.

        Raises: PassError naming the pass that failed, or behind which a check fails
        """
        state: torch.fx.GraphModule = module

        def step(one: PassType) -> bool:
            nonlocal state
            result = graph_result(one, state, one(state))
            state = result.graph_module
            state.recompile()
            return bool(result.modified)

        modified = self.drive(step, lambda: state)
        return PassResult(state, modified)

    def drive(self, step: Callable[[PassType], bool], state: Callable[[], Any]) -> bool:
        """Run the passes through a callback, with the checks between them.

        Args:
            step: runs one pass and returns whether it changed anything
            state: returns the input of the checks

        Raises: PassError naming the pass that failed, or after which a check failed
        """
        self._guarded("before the first pass", state())
        return self._steps(step, state)

    def _steps(self, step: Callable[[PassType], bool], state: Callable[[], Any]) -> bool:
        if self.constraints:
            self.solve_constraints()
        overall = False
        for _ in range(self.steps):
            changed = [self._one(place, step, state) for place in range(len(self.passes))]
            overall = overall or any(changed)
            if not any(changed):
                break
        return overall

    def _one(self, place: int, step: Callable[[PassType], bool], state: Callable[[], Any]) -> bool:
        one = self.passes[place]
        name = pass_name(one)
        try:
            modified = step(one)
        except (CancelledError, SpecViolationError):
            raise
        except Exception as error:
            earlier = [pass_name(p) for p in self.passes[:place]]
            raise PassError(
                name,
                f"An error occurred when running the '{name}' pass after the following passes: "
                f"{earlier}: {error}",
            ) from error
        if self.run_checks_after_each_pass:
            self._guarded(f"after the pass '{name}'", state(), name)
        return modified

    def _guarded(self, when: str, module: Any, name: str = "") -> None:  # noqa: ANN401
        try:
            self.check(module)
        except Exception as error:
            text = f"a check failed {when}: {error}"
            if not self.suppress_check_failures:
                raise PassError(name, text) from error
            warnings.warn(text, stacklevel=4)


def _check_calls(module: torch.nn.Module) -> None:
    for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
        if node.op == "call_method":
            raise ValueError(f"call_method `{node.name}` is not supported in a graph of operators")
