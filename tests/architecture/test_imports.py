"""Who may import whom: the contracts of pyproject.toml, and what a fresh process really loads."""

from __future__ import annotations

import json
import subprocess
import sys

import grimp
import networkx as nx
import pytest

import schema
from tests.architecture.tree import PACKAGES, ROOT, run_python

pytestmark = pytest.mark.slow

HEAVY = ("torch", "executorch", "PySide6", "pyqtgraph", "pandas", "networkx")

LOADED = """
import importlib, json, pkgutil, sys
import {package}
skipped = {skipped!r}

def load(package):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not module.name.startswith(skipped):  # nor what is in it
            found = importlib.import_module(module.name)
            if module.ispkg:
                load(found)

load({package})
print(json.dumps(sorted({{name.split(".")[0] for name in sys.modules}})))
"""


def test_schema_is_ours_not_the_package_of_the_same_name() -> None:
    assert schema.__file__ is not None
    assert schema.__file__.startswith(str(ROOT))


def test_contracts_all_are_kept() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout
    assert "0 broken" in finished.stdout


def test_files_no_circle_also_not_by_late_imports_or_for_types_alone() -> None:
    modules = grimp.build_graph(*PACKAGES, cache_dir=None)
    arrows = nx.DiGraph(
        (name, other)
        for name in modules.modules
        for other in modules.find_modules_directly_imported_by(name)
    )
    assert len(arrows) > 1000
    circles = [circle for circle in nx.strongly_connected_components(arrows) if len(circle) > 1]
    # The documented Event and EventBlock have class methods that build them from a trace.
    documented = "inspector.compat.devtools."
    assert [sorted(one) for one in circles if not all(n.startswith(documented) for n in one)] == []
    assert sum(map(len, circles)) <= 7


def test_import_inspector_loads_nothing_heavy() -> None:
    code = "import json, sys, inspector; print(json.dumps(sorted(sys.modules)))"
    loaded = {name.split(".")[0] for name in json.loads(run_python(code))}
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("schema", set()),
        ("inspector", {"compiler"}),  # the documented ETRecord, which loads no torch
        ("runtime", {"torch", "runtime"}),
        ("devtools_app", {"PySide6", "pyqtgraph"}),
        ("devtools_app.viewmodels", set()),
    ],
)
def test_import_every_module_loads_only_what_its_package_may(
    package: str, allowed: set[str]
) -> None:
    forbidden = {*HEAVY, "compiler", "runtime"} - allowed
    code = LOADED.format(package=package, skipped=_behind_the_worker(package))
    assert set(json.loads(run_python(code))).isdisjoint(forbidden)


def _behind_the_worker(package: str) -> tuple[str, ...]:
    # devtools_app.__main__ would start the window; it is started in its own test.
    # compat.export_session is compiler and runtime in one place, for scripts; nothing imports it.
    # inspector.toolchain.stock is what another interpreter runs.
    # Stages, taps and serde are documented names for live programs.
    # numerics.replay runs recorded graphs, for the worker and for the documented gap.
    live = ("compat.export_session", "compat.stages", "compat.taps", "compat.serde")
    live += ("numerics.replay.", "compat.numeric_gap.gap_table")
    live += ("compat.numeric_gap.recorded_values",)
    names = ("__main__", "worker.", "toolchain.stock.", *live)
    return tuple(f"{package}.{name}" for name in names)


def test_packages_upper_ones_are_unknown_to_lower_ones() -> None:
    order = ("schema", "inspector", "devtools_app")
    for index, package in enumerate(order):
        code = LOADED.format(package=package, skipped=_behind_the_worker(package))
        loaded = set(json.loads(run_python(code)))
        assert loaded.isdisjoint(order[index + 1 :])
    assert set(order) < set(PACKAGES)
