"""Ported scripts bind and use the same things: both run on modules made of the table of names."""

from __future__ import annotations

import ast
import builtins
import random
from collections.abc import Iterator, Mapping

import pytest

from inspector.compat.names import NamePlace, places
from inspector.compat.porting.port import port_source


def is_hidden(module: str) -> bool:
    """Return whether an object has the name of a module, or of one that it is in.

    As executorch.export.recipe_registry; such a module is no attribute of its package.
    """
    package, _, name = module.rpartition(".")
    return bool(package) and ((package, name) in places() or is_hidden(package))


NAMES = sorted((module, name) for module, name in places() if not is_hidden(module))
MODULES = sorted({module for module, _ in NAMES})
AMBIGUOUS = {module.rpartition(".")[2] for module in MODULES} & {name for _, name in NAMES}


class Made:
    """A module that has its documented names, and the modules below it."""

    def __init__(self, path: str, names: Mapping[tuple[str, str], NamePlace]) -> None:
        for (module, name), place in names.items():
            if module == path:
                setattr(self, name, place)
        heads = {
            module[len(path) + 1 :].split(".")[0]
            for module, _ in names
            if module.startswith(f"{path}.")
        }
        for head in heads - set(vars(self)):
            setattr(self, head, Made(f"{path}.{head}", names))


STOCK = {key: places()[key] for key in NAMES}
OURS = {(place.module, place.name): place for place in places().values()}
ROOTS = {
    root: Made(root, names)
    for names in (STOCK, OURS)
    for root in {module.split(".")[0] for module, _ in names}
}


def made_import(name: str, _globals=None, _locals=None, fromlist=(), _level: int = 0):
    """Import a made module as `__import__` would; the modules are all there."""
    root, *rest = name.split(".")
    found = ROOTS[root]
    if fromlist:
        for part in rest:
            found = getattr(found, part)
    return found


def used_by(script: str) -> list[object]:
    """Run a script and return what it gave to `use`, in order."""
    used: list[object] = []
    names = {"__builtins__": {**vars(builtins), "__import__": made_import}, "use": used.append}
    exec(compile(script, "script", "exec"), names)
    return used


class Writer:
    """Writes a script of import statements of all forms, each with its uses."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def script(self) -> str:
        return "".join(self.block(0) for _ in range(self.random.randint(1, 5)))

    def block(self, depth: int) -> str:
        draw = self.random
        forms = (self.names, self.names, self.alias, self.package, self.dotted)
        lines = list(draw.choice(forms)())
        if draw.random() < 0.3:
            self.count += 1
            name = f"f{self.count}"
            return f"def {name}():\n" + indented(lines, "    ") + f"{name}()\n"
        if draw.random() < 0.2:
            return "try:\n" + indented(lines, "\t") + "except ImportError:\n\tuse(None)\n"
        if draw.random() < 0.2:
            return "; ".join(lines) + "\n" if not any("\n" in one for one in lines) else ""
        return indented(lines, "")

    def local(self, name: str) -> str:
        self.count += 1
        renamed = f"{name}_{self.count}"
        # What is bound to a module and to an object in turn is not ported, and named.
        return renamed if name in AMBIGUOUS else self.random.choice((name, renamed))

    def names(self) -> Iterator[str]:
        draw = self.random
        module = draw.choice(MODULES)
        known = [name for owner, name in NAMES if owner == module]
        chosen = draw.sample(known, draw.randint(1, min(4, len(known))))
        bound = {name: self.local(name) for name in chosen}
        if draw.random() < 0.3:
            bound[chosen[0]] = "x"  # a name that later statements bind again
        items = [name if name == own else f"{name} as {own}" for name, own in bound.items()]
        if draw.random() < 0.4:
            inner = "".join(f"\n        {item},{draw.choice(('', '  # é'))}" for item in items)
            yield f"from {module} import ({draw.choice(('', '  # head'))}{inner}\n    )"
        else:
            yield f"from {module} import {', '.join(items)}"
        for own in dict.fromkeys(bound.values()):
            yield f"use({own})"

    def uses(self, prefix: str, module: str) -> Iterator[str]:
        below = [(owner, name) for owner, name in NAMES if f"{owner}.".startswith(f"{module}.")]
        chosen = self.random.sample(below, min(len(below), self.random.randint(1, 3)))
        for owner, name in chosen:
            rest = owner[len(module) :]
            if (module, rest.split(".")[-1]) not in STOCK:
                yield f"use({prefix}{rest}.{name})"

    def alias(self) -> Iterator[str]:
        module = self.random.choice(MODULES)
        local = self.local("module")
        yield f"import {module} as {local}"
        yield from self.uses(local, module)

    def package(self) -> Iterator[str]:
        module = self.random.choice([one for one in MODULES if "." in one])
        package, _, last = module.rpartition(".")
        if (package, last) in STOCK:
            return
        local = self.local(last)
        yield f"from {package} import {last}" + (f" as {local}" if local != last else "")
        yield from self.uses(local, module)

    def dotted(self) -> Iterator[str]:
        module = self.random.choice(MODULES)
        yield f"import {module}"
        yield from self.uses(module, module)


def indented(lines: list[str], by: str) -> str:
    return "".join(f"{by}{line}\n" for line in lines or ["use(0)"])


def imported_roots(script: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("seed", range(300))
def test_ported_script_uses_the_same_things(seed: int) -> None:
    script = Writer(seed).script()
    ported = port_source(script)
    assert ported.missing == (), script
    assert "executorch" not in imported_roots(ported.text), ported.text
    assert used_by(ported.text) == used_by(script)
    assert port_source(ported.text).text == ported.text
    comments = [text.count("#") for text in (script, ported.text)]
    assert comments[0] == comments[1]
