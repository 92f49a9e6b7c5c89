"""Serves `import executorch...`: documented names from this project, helpers of the tests as files.

A name resolves to the first of
  the counterpart in inspector/compat/names.py, under whatever path the stock package re-exports it
  what a helper of the tests, a file that describes or reads bytes, or a pass or planner that
  stock does not document defines; such files are run over this project's classes
  a submodule, a literal constant, or a name which the stock module takes from another package
  `Missing`
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from inspector.compat.names import NamePlace, place_of, places
from schema.dtypes.scalar_type import tensor_nbytes
from tests.suites import missing

_SPEC = importlib.util.find_spec("executorch")
WHEEL = Path(((_SPEC and _SPEC.submodule_search_locations) or ["."])[0])
HELPERS = (
    "backends.test",
    "backends.transforms.test",
    "backends.xnnpack.test",
    "devtools.bundled_program.util",
    "devtools.etrecord.tests",
    "devtools.inspector.tests",
    "examples",
    "exir.backend.test",
    "exir.tests",
    "extension.llm.export",
    "extension.pybindings.test",
    "extension.training.examples",
)
READERS = (
    "backends.native.serialization",
    "backends.xnnpack.serialization",
    "data",
    "devtools.bundled_program.schema",
    "devtools.bundled_program.version",
    "devtools.debug_format",
    "devtools.etdump",
    "exir._serialize",
    "exir._warnings",
    "exir.debug_handle_utils",
    "exir.dim_order_utils",
    "exir.error",
    "exir.scalar_type",
    "exir.schema",
    "exir.tensor_layout",
    "exir.version",
    "export.utils",
    "extension.flat_tensor",
    "extension.pytree",
)
# Somebody's passes, planners and tools: they run as a user's would.
GUESTS = (
    "backends.transforms",
    "backends.xnnpack._passes",
    "backends.xnnpack.utils",
    "devtools.intermediate_output_tap",
    "devtools.pte_tool",
    "exir.backend.canonical_partitioners.duplicate_constant_node_pass",
    "exir.banked_memory_planning",
    "exir.passes",
    "export.target_recipes",
)
# Tests replace functions in them, so the counterpart stands there itself.
WHOLE = ("executorch.export.stages",)
ABSENT_PACKAGES = ("torchvision",)
_NOTHING = object()


class Shim(types.ModuleType):
    """A module of the stock package of which nothing is executed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        ours = self.__name__.startswith("executorch")
        found = resolve(self.__name__, name) if ours else missing.Missing(full)
        if not isinstance(found, missing.Missing):
            vars(self)[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Let no submodule hide a documented name that is called as it is."""
        if not isinstance(value, types.ModuleType) or place_of(self.__name__, name) is None:
            super().__setattr__(name, value)


class ShimLoader:
    """Creates shims."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Shim:
        return Shim(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave the shim, or put the counterpart there, of which tests replace functions."""
        vars(module)["__all__"] = []
        if module.__name__ in WHOLE:
            homes = {place.module for key, place in places().items() if key[0] == module.__name__}
            (home,) = homes
            sys.modules[module.__name__] = importlib.import_module(home)

    def get_resource_reader(self, name: str) -> Any:
        from importlib.readers import FileReader

        return FileReader(types.SimpleNamespace(path=str(_path(name) / "__init__.py")))


class FileLoader(importlib.machinery.SourceFileLoader):
    """Executes a stock file; documented names that it defines are replaced by their counterpart."""

    def set_data(self, *_args: Any, **_options: Any) -> None:
        """Write no compiled file beside the wheel's."""

    def exec_module(self, module: types.ModuleType) -> None:
        missing.importing += 1
        try:
            super().exec_module(module)
        except Exception:
            if not _below(module.__name__.partition(".")[2], GUESTS):
                raise
            sys.modules[module.__name__] = Shim(module.__name__)  # its names are missing
            return
        finally:
            missing.importing -= 1
        for name, value in list(vars(module).items()):
            place = place_of(module.__name__, name)
            if place is not None and getattr(value, "__module__", None) == module.__name__:
                setattr(module, name, _at(place))


class Finder:
    """Stands before all other finders and answers for the stock package alone."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, rest = name.partition(".")
        if package in ABSENT_PACKAGES and _asked_by_a_suite():
            return importlib.machinery.ModuleSpec(name, ShimLoader(), is_package=True)
        if package != "executorch" or not _exists(name):
            return None
        file = _file(name)
        if file is None or not _below(rest, (*HELPERS, *READERS, *GUESTS)) or _is_ours(name):
            spec = importlib.machinery.ModuleSpec(name, ShimLoader(), is_package=True)
            spec.submodule_search_locations = [str(_path(name))]
            return spec
        folders = [str(_path(name))] if file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, file, loader=FileLoader(name, str(file)), submodule_search_locations=folders
        )


def install() -> None:
    """Serve the stock package from now on; it must not have been imported before."""
    assert "executorch" not in sys.modules
    sys.meta_path.insert(0, Finder())
    from compiler.compat import emission
    from compiler.compat.session.session import ExportSession
    from compiler.delegate.lowered_module import LoweredBackendModule
    from compiler.pipeline.program_manager import ExecutorchProgramManager

    lowered: Any = LoweredBackendModule
    lowered.program = _alone
    emission_of: Any = emission
    emission_of.decode = _tables  # no test but one of a suite asks for it
    own: Any = ExecutorchProgramManager.executorch_program
    tables = property(lambda self: _tables(self.buffer) if _asked_by_a_suite() else own.fget(self))
    vars_of: Any = ExecutorchProgramManager
    vars_of.executorch_program = tables
    of_session: Any = ExportSession
    get_own = of_session.get_executorch_program
    of_session.get_executorch_program = lambda self: (
        _tables(self.get_pte_buffer()) if _asked_by_a_suite() else get_own(self)
    )


def _alone(module: Any, emit_stacktrace: bool = False, memory_planning: Any = None) -> Any:
    """Return the tables of a lowered module's program."""
    options = {"emit_stacktrace": emit_stacktrace, "memory_planning": memory_planning}
    return _tables(module._alone(**options).buffer)


def _tables(buffer: bytes) -> Any:
    """Return a program as the data classes of the stock reader, which the tests look into.

    Constants are as the stock emitter has them: the reader leaves the padding behind each.
    """
    program = importlib.import_module("executorch.exir._serialize._program")
    rows = importlib.import_module("executorch.exir.schema")
    read = program.deserialize_pte_binary(buffer).program
    constants = read.constant_buffer = read.constant_buffer or [rows.Buffer(b"")]
    for value in (value.val for plan in read.execution_plan for value in plan.values):
        if isinstance(value, rows.Tensor) and 0 < value.data_buffer_idx < len(constants):
            extra = value.extra_tensor_info
            if value.allocation_info is None and (extra is None or not extra.location):
                held = constants[value.data_buffer_idx]
                size = tensor_nbytes(int(value.scalar_type), value.sizes)
                held.storage = held.storage[:size]
    return read


def resolve(module: str, name: str) -> Any:
    """Return what `from module import name` gives."""
    home, attribute = definition(module, name)
    place = place_of(module, name) or _by_definition().get((home, attribute))
    if place is not None:
        return _at(place)
    if _exists(f"{module}.{name}"):
        return importlib.import_module(f"{module}.{name}")
    if not home.startswith("executorch"):
        return _from_elsewhere(home, attribute, f"{module}.{name}")
    if attribute == "":
        return importlib.import_module(home)
    if attribute in _literals(home):
        return _literals(home)[attribute]
    if home != module and _below(home.partition(".")[2], (*HELPERS, *READERS, *GUESTS)):
        found = getattr(importlib.import_module(home), attribute, _NOTHING)
        if found is not _NOTHING:
            return found
    return missing.Missing(f"{home}.{attribute}")


@cache
def definition(module: str, name: str) -> tuple[str, str]:
    """Return the stock module that defines a name, and the name there ("" for a module)."""
    seen = {(module, name)}
    while module.startswith("executorch"):
        taken = _imports(module).get(name)
        if taken is None or taken in seen:
            break
        module, name = taken
        seen.add(taken)
        if name and module.startswith("executorch") and _exists(f"{module}.{name}"):
            return f"{module}.{name}", ""
    return module, name


@lru_cache(maxsize=1)
def _by_definition() -> dict[tuple[str, str], NamePlace]:
    return {definition(*documented): place for documented, place in places().items()}


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return the names that a stock module takes from others: name -> module and name there."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom):
            home = _absolute(module, node)
            found.update({taken.asname or taken.name: (home, taken.name) for taken in node.names})
        elif isinstance(node, ast.Import):
            for taken in node.names:
                home = taken.name if taken.asname else taken.name.partition(".")[0]
                found[taken.asname or home] = (home, "")
    return found


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    file = _file(module)
    parts = module.split(".")
    kept = len(parts) - node.level + (file is not None and file.name == "__init__.py")
    return ".".join([*parts[:kept], *([node.module] if node.module else [])])


@cache
def _literals(module: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in _tree(module).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    try:
                        found[target.id] = ast.literal_eval(node.value)
                    except ValueError:
                        continue
    return found


def _from_elsewhere(module: str, attribute: str, asked: str) -> Any:
    try:
        found = importlib.import_module(module)
        return getattr(found, attribute) if attribute else found
    except (ImportError, AttributeError):
        return missing.Missing(asked)


def _tree(module: str) -> ast.Module:
    file = _file(module)
    return ast.parse(file.read_text("utf-8") if file is not None else "")


def _at(place: NamePlace) -> Any:
    return getattr(importlib.import_module(place.module), place.name)


def _path(module: str) -> Path:
    return WHEEL.joinpath(*module.split(".")[1:])


def _file(module: str) -> Path | None:
    path = _path(module)
    candidates = (path / "__init__.py", path.parent / f"{path.name}.py")
    return next((file for file in candidates if file.is_file()), None)


def _exists(module: str) -> bool:
    path = _path(module)
    return path.is_dir() or _file(module) is not None or any(path.parent.glob(f"{path.name}.*.so"))


def _below(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


@cache
def _is_ours(module: str) -> bool:
    """Tell whether a module defines documented names, which have a counterpart here."""
    if not _below(module.partition(".")[2], GUESTS):
        return False
    homes = {home for home, _ in (*places(), *_by_definition())}
    return module in homes or module == "executorch.exir.passes"


def _asked_by_a_suite() -> bool:
    frame: Any = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and "executorch" in frame.f_code.co_filename
