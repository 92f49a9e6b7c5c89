"""Where the upper bounds of changing sizes come from: a choice, in the form of a pass."""

from __future__ import annotations

from typing import Any

from compiler.passes.base import PassBase, PassResult


class ConstraintBasedSymShapeEvalPass(PassBase):
    """Sizes that change have the upper bounds of the ranges they were exported with."""

    def call(self, graph_module: Any) -> Any:  # noqa: ANN401 - as documented
        """Return the graph as it is: memory planning reads the choice from the configuration."""
        return PassResult(graph_module, False)


class HintBasedSymShapeEvalPass(PassBase):
    """Sizes that change have those of the example inputs as upper bounds, whatever the ranges say.

    Larger inputs do not fit into the program then.
    """

    def call(self, graph_module: Any) -> Any:  # noqa: ANN401 - as documented
        """Return the graph as it is: memory planning reads the choice from the configuration."""
        return PassResult(graph_module, False)
