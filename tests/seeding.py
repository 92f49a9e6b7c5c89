"""What is drawn at random is the same in every run: by test, by fixture and by imported module.

Torch and numpy begin with a state of their own in each process, and what one test draws moves the
state of the next; so each piece draws from its own seed, whatever ran before it.
"""

from __future__ import annotations

import contextlib
import random
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_DRAWERS = ("numpy", "torch")
_seed = 0  # of what runs now, for a library that is imported in the midst of it


def _seed_library(name: str) -> None:
    module: Any = sys.modules.get(name)
    if module is not None and name == "numpy":
        module.random.seed(_seed)
    elif module is not None and hasattr(module, "default_generator"):
        # torch.manual_seed formats a stack trace for each kind of device: 2 ms, 16,000 times
        module.default_generator.manual_seed(_seed)


def seed(label: str) -> None:
    """Seed every source of random numbers by a name."""
    global _seed
    _seed = zlib.crc32(label.encode())
    random.seed(_seed)
    for name in _DRAWERS:
        _seed_library(name)


@contextlib.contextmanager
def seeded(label: str) -> Iterator[None]:
    """Draw from a seed of this name inside; what was drawn from before goes on behind it."""
    global _seed
    before, restore = _seed, _states()
    seed(label)
    try:
        yield
    finally:
        _seed = before
        for put, state in restore:
            put(state)


def _states() -> list[tuple[Callable[[Any], Any], Any]]:
    found: list[tuple[Callable[[Any], Any], Any]] = [(random.setstate, random.getstate())]
    numpy, torch = (sys.modules.get(name) for name in _DRAWERS)
    if numpy is not None and hasattr(numpy, "random"):
        found.append((numpy.random.set_state, numpy.random.get_state()))
    if torch is not None and hasattr(torch, "get_rng_state"):
        found.append((torch.set_rng_state, torch.get_rng_state()))
    return found


class _SeededLoader(Loader):
    """Runs a module with a seed of its own, or seeds the library that it is."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner, self._name = inner, name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._inner
        if self._name in _DRAWERS:
            self._inner.exec_module(module)
            _seed_library(self._name)
            return
        with seeded(self._name):
            self._inner.exec_module(module)


class SeededImports(MetaPathFinder):
    """Finds modules of the tests, and libraries that draw, as the finders behind it do."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _DRAWERS and fullname.partition(".")[0] != "tests":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _SeededLoader(spec.loader, fullname)
                return spec
        return None


def seed_imports() -> None:
    """Let modules of the tests draw from seeds of their own from now on."""
    if not any(isinstance(finder, SeededImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, SeededImports())
