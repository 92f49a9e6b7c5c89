"""Modules that a script uses by attribute become one module of ours, or names of several."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from inspector.compat.names import NamePlace
from inspector.compat.porting import resolve
from inspector.compat.porting.edits import ImportedItem
from inspector.compat.porting.scopes import Use


@dataclass(frozen=True, slots=True)
class Binding:
    """A name bound to a module by an import statement.

    Attributes:
        scope: index of the scope of the name
        local: the name
        alias: of the statement
        module: the imported module
        base: the bound module: `import a.b` binds `a`
    """

    scope: int
    local: str
    alias: ast.alias
    module: str
    base: str

    @property
    def dotted(self) -> bool:
        """Return whether the name is bound to the root package of the module."""
        return self.base != self.module


@dataclass(slots=True)
class Decision:
    """The replacement of an import of a module.

    Attributes:
        module: the original module
        local: its name in the script
        dotted: whether the name is bound to the root package
        target: module of ours bound to the name; empty if names are imported instead
        items: names imported instead
        keep: whether the import stays for names without counterpart
    """

    module: str
    local: str
    dotted: bool
    target: str = ""
    items: list[ImportedItem] = field(default_factory=list[ImportedItem])
    keep: bool = False


@dataclass(frozen=True, slots=True)
class UseEdit:
    """A use to rewrite: `parts`, which is `node`, becomes `text`."""

    use: Use
    node: ast.expr
    parts: tuple[str, ...]
    text: str
    path: str
    place: NamePlace


@dataclass(slots=True)
class Decided:
    """Result of porting the imports that share a name, and of its uses.

    Attributes:
        by_alias: decision of each import
        edits: uses to rewrite
        missing: uses without counterpart, and their full names
        bare: uses of the module as a value
    """

    by_alias: dict[ast.alias, Decision]
    edits: list[UseEdit] = field(default_factory=list[UseEdit])
    missing: list[tuple[Use, str]] = field(default_factory=list[tuple[Use, str]])
    bare: list[tuple[Use, str]] = field(default_factory=list[tuple[Use, str]])


@dataclass(frozen=True, slots=True)
class _FoundUses:
    use: Use
    depth: int
    path: str
    place: NamePlace


def decide(
    bindings: list[Binding], uses: list[Use], bound: set[str], words: Collection[str]
) -> Decided:
    """Decide on the imports that bind the same name in one scope.

    Args:
        bindings: the imports
        uses: of the name
        bound: names used in the script
        words: attribute names in the script, for uses that are not found
    """
    decisions = {one.alias: Decision(one.module, one.local, one.dotted) for one in bindings}
    decided = Decided(decisions)
    found: list[_FoundUses] = []
    for use in uses:
        _look_up(use, bindings, found, decided)
    homes = {one.place.module for one in found}
    if not found:
        homes = {resolve.only_home(one.module, words) for one in bindings}
    one_module = len({one.module for one in bindings}) == 1 and not bindings[0].dotted
    if one_module and not decided.missing and len(homes) == 1 and all(homes):
        target = homes.pop()
        for decision in decisions.values():
            decision.target = target
        _keep_alias(found, decided)
        return decided
    for _, path in [*decided.missing, *decided.bare]:
        for decision in _nearest(bindings, path, decided):
            decision.keep = True
    _import_names(found, bindings, bound, decided)
    return decided


def _look_up(use: Use, bindings: list[Binding], found: list[_FoundUses], decided: Decided) -> None:
    """Sort a use: found at some depth of its attributes, without counterpart, or of the module."""
    bases = list(dict.fromkeys(one.base for one in bindings))
    for base in bases:
        for depth in range(1, len(use.parts)):
            module = ".".join((base, *use.parts[1:depth]))
            place = resolve.find_place(module, use.parts[depth])
            path = f"{module}.{use.parts[depth]}"
            if place is not None:
                found.append(_FoundUses(use, depth, path, place))
                return
            if not resolve.is_known_module(path):
                break
    whole = ".".join((bases[0], *use.parts[1:]))
    if len(use.parts) == 1 and use.stored:
        return  # `exir = None` if the import fails
    if len(use.parts) == 1 or resolve.is_known_module(whole):
        decided.bare.append((use, whole))
    else:
        decided.missing.append((use, _up_to_unknown(bases[0], use.parts)))


def _up_to_unknown(base: str, parts: tuple[str, ...]) -> str:
    """Return the name up to its first part that no documented module has."""
    path = base
    for part in parts[1:]:
        path = f"{path}.{part}"
        if not resolve.is_known_module(path):
            break
    return path


def _keep_alias(found: list[_FoundUses], decided: Decided) -> None:
    """Keep the name; rewrite attributes that are named or nested differently."""
    for one in found:
        old = one.use.parts[: one.depth + 1]
        new = (old[0], one.place.name)
        if old != new:
            text = ".".join(new)
            node = one.use.chain[one.depth]
            decided.edits.append(UseEdit(one.use, node, old, text, one.path, one.place))


def _import_names(
    found: list[_FoundUses], bindings: list[Binding], bound: set[str], decided: Decided
) -> None:
    """Import each used name separately, under a name unused in the script."""
    locals_of: dict[NamePlace, str] = {}
    for one in found:
        if one.place not in locals_of:
            locals_of[one.place] = _free_name(one, bound)
            bound.add(locals_of[one.place])
        local = locals_of[one.place]
        item = ImportedItem(one.place.module, one.place.name, local)
        for decision in _nearest(bindings, one.path, decided):
            if item not in decision.items:
                decision.items.append(item)
        old = one.use.parts[: one.depth + 1]
        node = one.use.chain[one.depth]
        decided.edits.append(UseEdit(one.use, node, old, local, one.path, one.place))


def _free_name(one: _FoundUses, bound: set[str]) -> str:
    name = one.use.parts[one.depth]
    while name in bound:
        name = f"{one.use.parts[one.depth - 1]}_{name}"
    return name


def _nearest(bindings: list[Binding], path: str, decided: Decided) -> list[Decision]:
    """Return the decisions of the imports that cover most of a path, else the first."""
    above = [one for one in bindings if path == one.module or path.startswith(f"{one.module}.")]
    best = max(above or bindings[:1], key=lambda one: len(one.module)).module
    return [decided.by_alias[one.alias] for one in bindings if one.module == best]
