"""The toolchains: the built-in one, and the ``executorch`` package of an interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from inspector.recipes.compile_job import BUILT_IN, EXECUTORCH, CompileJob
from schema.backends import resolve


class Toolchain(Protocol):
    """Compiles, runs and bisects programs; no other code distinguishes toolchains."""

    @property
    def name(self) -> str:
        """Return its name in recipes and reports."""
        ...

    @property
    def is_warm(self) -> bool:
        """Return whether the warm worker compiles and previews with it."""
        ...

    @property
    def has_interpreter(self) -> bool:
        """Return whether it is that of an interpreter, which the user may choose."""
        ...

    def compile(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        """Compile in a worker: a ``CompileJob`` and its ``Task``."""
        ...

    def run(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        """Run in a worker: a ``RunJob`` and its ``Task``."""
        ...

    def measure(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        """Measure side by side in a worker: a ``MeasureJob`` and its ``Task``."""
        ...

    def bisect(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        """Bisect in a worker: a ``BisectJob`` and its ``Task``."""
        ...

    def script(self, job: CompileJob) -> str:
        """Return a Python script that compiles as a job does."""
        ...

    def credit(self, version: str) -> str:
        """Return a note for programs it has built, empty for the default."""
        ...


@dataclass(frozen=True, slots=True)
class _Named:
    """A toolchain by dotted names of its functions, since those of workers import torch.

    Attributes:
        name: in recipes and reports
        title: with its version in sentences, empty for the default
        is_warm: whether the warm worker compiles and previews with it
        has_interpreter: whether it runs in an interpreter chosen by the user
        functions: compile, run, measure, bisect and script, each as ``module:function``
    """

    name: str
    title: str
    is_warm: bool
    has_interpreter: bool
    functions: tuple[str, str, str, str, str]

    def compile(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        return resolve(self.functions[0])(job, task)

    def run(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        return resolve(self.functions[1])(job, task)

    def measure(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        return resolve(self.functions[2])(job, task)

    def bisect(self, job: Any, task: Any) -> dict[str, Any]:  # noqa: ANN401
        return resolve(self.functions[3])(job, task)

    def script(self, job: CompileJob) -> str:
        return resolve(self.functions[4])(job)

    def credit(self, version: str) -> str:
        return f"{self.title} {version}" if self.title else ""


_OWN: Toolchain = _Named(
    BUILT_IN,
    "",
    is_warm=True,
    has_interpreter=False,
    functions=(
        "inspector.worker.compile_job:compile_built_in",
        "inspector.worker.executing:run_built_in",
        "inspector.worker.executing:measure_built_in",
        "inspector.worker.bisect_job:bisect_built_in",
        "inspector.toolchain.recipe_script:built_in_script",
    ),
)
_STOCK: Toolchain = _Named(
    EXECUTORCH,
    "ExecuTorch",
    is_warm=False,
    has_interpreter=True,
    functions=(
        "inspector.worker.toolchain_compile:work",
        "inspector.worker.toolchain_run:work",
        "inspector.worker.toolchain_measure:measure_with_executorch",
        "inspector.worker.toolchain_bisect:work",
        "inspector.toolchain.script:stock_script",
    ),
)


def toolchain_named(name: str) -> Toolchain:
    """Return a toolchain; the empty name is the built-in one.

    Raises: KeyError for an unknown name
    """
    found = {"": _OWN, BUILT_IN: _OWN, EXECUTORCH: _STOCK}
    return found[name]
