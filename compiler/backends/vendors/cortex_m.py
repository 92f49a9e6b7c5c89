"""The flow of Cortex-M: its passes over the edge program of the package."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from compiler.backends.vendors.cortex_m_unfused import with_real_values
from compiler.backends.vendors.options import Creator, VendorOptions
from compiler.backends.vendors.package import backend_part


class CortexMFlow:
    """Compiles whole programs to operators of CMSIS-NN.

    Attributes:
        space: namespace of its operators
    """

    space = "cortex_m"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Store the settings of its passes."""
        self._settings = dict(settings)

    def edge(self, programs: Mapping[str, Any], constants: Mapping[str, Any], fused: Any) -> Any:  # noqa: ANN401
        """Return edge programs of exported ones, with the operators whole that its passes want."""
        del fused
        exir: Any = importlib.import_module("executorch.exir")
        config = backend_part("cortex_m.edge_compile_config").cortex_m_edge_compile_config()
        more = {"constant_methods": dict(constants)} if constants else {}
        return exir.to_edge(dict(programs), compile_config=config, generate_etrecord=True, **more)

    def transform(self, edge: Any) -> Any:  # noqa: ANN401 - edge programs of the package
        """Run its passes over the edge programs of all methods."""
        passes = backend_part("cortex_m.passes.cortex_m_pass_manager").CortexMPassManager
        dialect: Any = importlib.import_module("executorch.exir.dialects._ops").ops
        for name, program in [*edge._edge_programs.items()]:
            lowered = passes(program, **self._settings).transform()
            with_real_values(lowered.graph_module, dialect.edge.cortex_m)
            edge._edge_programs[name] = lowered
        return edge

    def emission(self) -> dict[str, Any]:
        """Return settings of the emission."""
        return {}


def flow(options: VendorOptions) -> Creator:
    """Return the factory of the flow of Cortex-M."""
    # The package of its passes comes first: that of its targets would import it half done.
    backend_part("cortex_m.passes.cortex_m_pass_manager")
    home = backend_part("cortex_m.target_config")
    config = home.CortexMTargetConfig
    targets = {config(cpu=one).target_string: one for one in home.CortexM}
    cpu = options.member("target", targets, home.CortexM.M55)
    isa = options.member("isa", backend_part("cortex_m.library").cmsis_nn.Backend.__members__)
    explicit = options.flag("explicit_layout")
    return lambda: CortexMFlow(
        {"target_config": config(cpu=cpu, isa=isa), "use_explicit_layout": explicit}
    )
