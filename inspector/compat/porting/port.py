"""Port a script: its imports of `executorch` become imports of ours, by the table of names."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from inspector.compat.names import NamePlace
from inspector.compat.porting import resolve
from inspector.compat.porting.edits import Edits, ImportedItem
from inspector.compat.porting.modules import Binding, Decision, decide
from inspector.compat.porting.moved import LOGGERS, NOT_NEEDED
from inspector.compat.porting.scopes import ImportStatement, Script, Use, read_script

_DOTTED = re.compile(r"executorch(\.[A-Za-z_]\w*)+")


class PortVerdict(Enum):
    """Result of porting a name."""

    PORTED = "ported"
    MOVED = "moved"
    NOT_NEEDED = "not needed"
    MISSING = "no counterpart"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the package, or one that torch no longer has, in a script.

    Attributes:
        line: in the script, from 1
        name: the full name, as `executorch.exir.to_edge`
        ours: new import; empty if not imported
        verdict: the result
        remedy: manual change, or why none is needed; may be empty
        cell: of the line in a notebook, from 1; 0 in a script
    """

    line: int
    name: str
    ours: str
    verdict: PortVerdict
    remedy: str = ""
    cell: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether a manual change remains."""
        return self.verdict in (PortVerdict.MISSING, PortVerdict.UNRESOLVED)


@dataclass(frozen=True, slots=True)
class Ported:
    """A ported script.

    Attributes:
        source: before porting
        text: after porting; equal if nothing changed
        names: in the order of the lines
    """

    source: str
    text: str
    names: tuple[Name, ...]

    @property
    def missing(self) -> tuple[Name, ...]:
        """Return the names that need a manual change."""
        return tuple(name for name in self.names if name.is_open)


def port_source(source: str) -> Ported:
    """Return a script with its imports of `executorch` replaced by ours.

    Names without counterpart keep their import, so that the script fails there. Only import
    statements, and uses of a module whose names are in several of ours, change.

    Args:
        source: Python code, with any line ends

    Raises: SyntaxError
    """
    porter = _Porter(source)
    porter.port()
    names = sorted(set(porter.names), key=lambda one: (one.line, one.name))
    return Ported(source, porter.edits.result(), tuple(names))


class _Porter:
    """Collects the edits of one script and the verdicts on its names."""

    def __init__(self, source: str) -> None:
        self.edits = Edits(source)
        self.names: list[Name] = []
        self._words = frozenset(re.findall(r"\.\s*(\w+)", source))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the script itself, as an invalid escape
            self._script: Script = read_script(ast.parse(source))
        self._decisions: dict[ast.alias, Decision] = {}

    def port(self) -> None:
        """Port the statements after the modules that are used by attribute."""
        self._port_modules()
        for statement in self._script.imports:
            if isinstance(statement.node, ast.Import):
                self._port_import(statement, statement.node)
            elif not statement.node.level:
                self._port_from(statement, statement.node)
        for constant, called in self._script.strings:
            self._port_string(constant, called)

    def _add(
        self, line: int, name: str, found: NamePlace | str, verdict: PortVerdict, remedy: str = ""
    ) -> None:
        ours = found if isinstance(found, str) else f"{found.module}.{found.name}"
        self.names.append(Name(line, name, ours, verdict, remedy))

    def _add_place(self, line: int, name: str, place: NamePlace) -> None:
        of_torch = not name.startswith("executorch")
        verdict = PortVerdict.MOVED if of_torch else PortVerdict.PORTED
        self._add(line, name, place, verdict, "torch 2.13 no longer has it" if of_torch else "")

    def _add_missing(self, line: int, name: str) -> None:
        self._add(line, name, "", PortVerdict.MISSING, resolve.remedy(name))

    # Modules that are used by attribute

    def _port_modules(self) -> None:
        groups: dict[tuple[int, str], list[Binding]] = {}
        for statement in self._script.imports:
            for binding in _module_bindings(statement):
                groups.setdefault((binding.scope, binding.local), []).append(binding)
        uses: dict[tuple[int, str], list[Use]] = {key: [] for key in groups}
        for use in self._script.uses:
            if (use.scope, use.parts[0]) in uses:
                uses[use.scope, use.parts[0]].append(use)
        for key, bindings in groups.items():
            ported = [one for one in bindings if resolve.is_ported(one.module)]
            if ported:
                self._port_group(ported, uses[key])
            else:
                self._port_torch(bindings, uses[key])

    def _port_group(self, bindings: list[Binding], uses: list[Use]) -> None:
        decided = decide(bindings, uses, self._script.bound, self._words)
        self._decisions.update(decided.by_alias)
        for use, path in decided.missing:
            self._add_missing(use.line, path)
        for edit in decided.edits:
            if edit.use.stored or not self.edits.replace_chain(edit.node, edit.parts, edit.text):
                words = f"write {edit.text} by hand"
                self._add(edit.use.line, edit.path, edit.place, PortVerdict.UNRESOLVED, words)
            else:
                self._add_place(edit.use.line, edit.path, edit.place)
        for use, module in decided.bare:
            words = "the module itself is used as a value"
            self._add(use.line, module, "", PortVerdict.UNRESOLVED, words)

    def _port_torch(self, bindings: list[Binding], uses: list[Use]) -> None:
        """Port attributes of torch that it no longer has; its import stays."""
        for use in uses:
            base = bindings[0].base
            for depth in range(1, len(use.parts)):
                module = ".".join((base, *use.parts[1:depth]))
                path = f"{module}.{use.parts[depth]}"
                place = resolve.find_place(module, use.parts[depth])
                if place is not None:
                    self._replace_in_torch(use, depth, base, path, place)
                elif resolve.is_gone_name(path):
                    self._add_missing(use.line, path)
                else:
                    continue
                break

    def _replace_in_torch(
        self, use: Use, depth: int, base: str, path: str, place: NamePlace
    ) -> None:
        inside = f"{place.module}.{place.name}".removeprefix(f"{base}.")
        parts = use.parts[: depth + 1]
        can = inside != f"{place.module}.{place.name}" and not use.stored
        if can and self.edits.replace_chain(use.chain[depth], parts, f"{parts[0]}.{inside}"):
            self._add_place(use.line, path, place)
        else:
            words = f"write from {place.module} import {place.name}, and use that"
            self._add(use.line, path, place, PortVerdict.UNRESOLVED, words)

    # Import statements

    def _port_import(self, statement: ImportStatement, node: ast.Import) -> None:
        pieces: list[str | list[ImportedItem]] = []
        changed = False
        for alias in node.names:
            decision = self._decisions.get(alias)
            if decision is None:
                pieces.append(_import_text(alias))
                continue
            found = self._pieces(node, alias, decision, [_import_text(alias)])
            changed |= found != [_import_text(alias)]
            pieces += found
        self._finish(statement, pieces, changed=changed)

    def _finish(
        self,
        statement: ImportStatement,
        pieces: Sequence[str | list[ImportedItem]],
        *,
        changed: bool,
    ) -> None:
        if changed and pieces:
            self.edits.replace_statement(statement.node, pieces)
        elif changed:
            self.edits.remove_statement(statement.node, alone=statement.alone)

    def _pieces(
        self,
        node: ast.stmt,
        alias: ast.alias,
        decision: Decision,
        kept: list[str | list[ImportedItem]],
    ) -> list[str | list[ImportedItem]]:
        """Return the replacement of the import of one module."""
        line, module = node.lineno, decision.module
        if decision.target:
            self._add(line, module, decision.target, PortVerdict.PORTED)
            plain = decision.target == decision.local
            suffix = "" if plain else f" as {decision.local}"
            return [f"import {decision.target}{suffix}"]
        if resolve.is_not_needed(module) and not decision.items and not decision.keep:
            self._add(line, module, "", PortVerdict.NOT_NEEDED, NOT_NEEDED["executorch.kernels"])
            return []
        if decision.items or decision.keep:
            return [*(kept if decision.keep else []), *_grouped(decision.items)]
        if decision.dotted and resolve.is_known_module(module):
            self._add(line, module, "", PortVerdict.NOT_NEEDED, "the script does not use it")
            return []
        self._add_missing(line, module)
        return kept

    def _port_from(self, statement: ImportStatement, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.names[0].name == "*":
            if resolve.is_ported(module):
                self._port_star(statement, node, module)
            return
        pieces: list[str | list[ImportedItem]] = []
        items: list[ImportedItem] = []
        changed = False
        for alias in node.names:
            item = ImportedItem(module, alias.name, alias.asname or alias.name, alias)
            place = resolve.find_place(module, alias.name)
            if alias in self._decisions:
                found = self._pieces(node, alias, self._decisions[alias], [[item]])
                changed |= found != [[item]]
                pieces += [one for one in found if isinstance(one, str)]
                items += [one for group in found if not isinstance(group, str) for one in group]
                continue
            if place is not None:
                self._add_place(alias.lineno, f"{module}.{alias.name}", place)
                item = ImportedItem(place.module, place.name, item.local, alias)
                changed = True
            elif resolve.is_ported(module) or resolve.is_gone_name(f"{module}.{alias.name}"):
                self._add_missing(alias.lineno, f"{module}.{alias.name}")
            items.append(item)
        groups = _grouped(items)
        simple = len(groups) == 1 and not pieces and changed and len(items) == len(node.names)
        if not (simple and all(one.alias for one in items)) or not self.edits.rename_from(
            node, items
        ):
            self._finish(statement, [*pieces, *groups], changed=changed)

    def _port_star(self, statement: ImportStatement, node: ast.ImportFrom, module: str) -> None:
        """Import the names that the script uses of a star import; others are unknown."""
        free = {use.parts[0]: use for use in reversed(self._script.uses)}
        free = {
            name: use
            for name, use in free.items()
            if name not in self._script.bound and not hasattr(builtins, name)
        }
        places = resolve.names_of(module)
        items = [
            ImportedItem(places[name].module, places[name].name, name)
            for name in free
            if name in places
        ]
        for item in sorted(items, key=lambda one: one.local):
            self._add_place(node.lineno, f"{module}.{item.local}", places[item.local])
        unknown = sorted(name for name in free if name not in places and not name.startswith("__"))
        for name in unknown:
            words = f"{name} is not defined in the script; from {module} import * may provide it"
            self._add(free[name].line, f"{module}.{name}", "", PortVerdict.UNRESOLVED, words)
        if items or not unknown:
            groups = [*_grouped(sorted(items, key=lambda one: one.local))]
            self._finish(statement, groups, changed=True)

    # Strings

    def _port_string(self, constant: ast.Constant, called: str) -> None:
        text = str(constant.value)
        if called == "getLogger" and text in LOGGERS:
            if self.edits.replace_string(constant, LOGGERS[text]):
                self._add(constant.lineno, text, LOGGERS[text], PortVerdict.PORTED)
            return
        if not _DOTTED.fullmatch(text):
            return
        module, _, name = text.rpartition(".")
        place = resolve.find_place(module, name)
        home = resolve.only_home(text)
        if place is not None or home or resolve.is_known_module(text):
            words = "a string that names it; change it by hand if it is used for an import"
            self._add(constant.lineno, text, place or home, PortVerdict.UNRESOLVED, words)


def _import_text(alias: ast.alias) -> str:
    return f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")


def _grouped(items: Iterable[ImportedItem]) -> list[list[ImportedItem]]:
    """Return the items by source module, in the order of the first of each."""
    groups: dict[str, list[ImportedItem]] = {}
    for item in items:
        if item not in groups.setdefault(item.module, []):
            groups[item.module].append(item)
    return list(groups.values())


def _module_bindings(statement: ImportStatement) -> Iterable[Binding]:
    """Yield the relevant modules that a statement binds to a name."""
    node = statement.node
    for alias in node.names:
        if isinstance(node, ast.Import):
            dotted = alias.asname is None
            local = alias.asname or alias.name.partition(".")[0]
            base = local if dotted else alias.name
            yield Binding(statement.scope, local, alias, alias.name, base)
        elif not node.level and alias.name != "*":
            path = f"{node.module}.{alias.name}"
            known = resolve.is_known_module(path) or resolve.is_not_needed(path)
            if known and resolve.find_place(node.module or "", alias.name) is None:
                local = alias.asname or alias.name
                yield Binding(statement.scope, local, alias, path, path)
