"""The values that a field of a recipe can have, as lists for its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from devtools_app.viewmodels.recipe_form import FormField
from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from inspector.graph.node_text import exported_name, operator_title
from inspector.recipes.emission import CONFIG, EDGE_CONFIG, PLANNING, in_file
from inspector.recipes.options import FieldNames
from inspector.recipes.python_file import names_in
from inspector.tables.verdicts import known_verdicts
from inspector.toolchain.listing import own_partitioners, stock_partitioners, vendor_quantizers
from inspector.toolchain.table import toolchain_named
from schema.dtypes.scalar_type import BY_NAME
from schema.graph import NodeKind
from schema.recipe.assignments import split_pair
from schema.recipe.passes import recipe_passes
from schema.recipe.planners import PLANNERS

_MOST = 5000  # nodes in a list; further ones are typed
_SETTINGS: Mapping[str, type] = {**CONFIG, **PLANNING}
_TYPED = (  # whose names may be patterns, or of another program
    *(FieldNames.OPERATOR, FieldNames.NODE, FieldNames.MODULE, FieldNames.RULE),
    *(FieldNames.METHOD, FieldNames.FUNCTION, FieldNames.DATA),
)
_IN_FILES = (
    FieldNames.PARTITIONER,
    FieldNames.PLANNER,
    FieldNames.PASS,
    FieldNames.QUANTIZER,
    FieldNames.DATA,
)


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A value that a field may have.

    Attributes:
        value: as in the recipe
        detail: what it is, or why it cannot be used here
        usable: whether it can be used here
    """

    value: str
    detail: str = ""
    usable: bool = True

    @property
    def text(self) -> str:
        """Return how it is listed."""
        return "  ·  ".join(filter(None, (self.value, self.detail)))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that fields of one recipe can have; those of a program are empty if unknown."""

    functions: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    partitioners: tuple[FieldChoice, ...] = ()
    quantizers: tuple[FieldChoice, ...] = ()


def vocabulary(session: Session, method: str) -> Vocabulary:
    """Return the names in the program of a session."""
    graph = model_graph(session, method)
    nodes = [one.node for one in graph.nodes] if graph is not None else []
    calls = [node for node in nodes if node.kind is NodeKind.CALL]
    verdicts = [one for found in known_verdicts(session, method).values() for one in found]
    operators = {operator_title(node.target) for node in calls}
    operators |= {operator_title(one.operator) for one in verdicts if one.operator}
    names = dict.fromkeys(filter(None, (exported_name(node) or node.name for node in calls)))
    modules = dict.fromkeys(frame.path for node in calls for frame in node.modules if frame.path)
    return Vocabulary(
        methods=tuple(session.methods),
        operators=tuple(sorted(operators)),
        nodes=tuple(names)[:_MOST],
        modules=tuple(modules)[:_MOST],
        rules=tuple(sorted({one.rule for one in verdicts if one.rule})),
    )


def partitioner_choices(toolchain: str, python: str) -> tuple[FieldChoice, ...]:
    """Return the partitioners of a toolchain: what each is, or why it is not usable and the remedy.

    Starts the interpreter of a toolchain that has one.

    Raises: ListingError
    """
    if not toolchain_named(toolchain).has_interpreter:
        return tuple(map(_partitioner_choice, own_partitioners()))
    return tuple(map(_partitioner_choice, stock_partitioners(python)["partitioners"]))


def quantizer_choices() -> tuple[FieldChoice, ...]:
    """Return the quantizers of vendors; looks for the packages of each on the disk."""
    return tuple(map(_partitioner_choice, vendor_quantizers()))


def _partitioner_choice(row: Mapping[str, str]) -> FieldChoice:
    if not row["why_not"]:
        return FieldChoice(row["alias"], row["summary"])
    remedy = f": {row['install']}" if row["install"] else ""
    why = f"not available here · {row['summary']} · {row['why_not']}{remedy}"
    return FieldChoice(row["alias"], why, usable=False)


def choices_of(one: FormField, known: Vocabulary) -> tuple[FieldChoice, ...]:
    """Return the values that a field may have, its own value not among them if it is no longer."""
    names = one.names
    if names is FieldNames.PARTITIONER:
        return known.partitioners
    if names is FieldNames.QUANTIZER:
        return known.quantizers
    if names is FieldNames.PLANNER:
        return tuple(FieldChoice(name, summary) for name, summary in PLANNERS.items())
    words: Mapping[FieldNames, Sequence[str]] = {
        FieldNames.FUNCTION: known.functions,
        FieldNames.METHOD: known.methods,
        FieldNames.OPERATOR: known.operators,
        FieldNames.NODE: known.nodes,
        FieldNames.MODULE: known.modules,
        FieldNames.RULE: known.rules,
        FieldNames.DTYPE: sorted(BY_NAME),
        FieldNames.PASS: recipe_passes(),
        FieldNames.SETTING: tuple(_SETTINGS),
        FieldNames.EDGE_SETTING: tuple(EDGE_CONFIG),
    }
    return tuple(map(FieldChoice, words.get(names, ())))


def may_be_typed(one: FormField) -> bool:
    """Return whether a field takes names that are in no list: patterns, names of files."""
    return one.names in (*_TYPED, *_IN_FILES)


def may_be_in_file(one: FormField) -> bool:
    """Return whether a field takes names of a Python file of the user."""
    return one.names in _IN_FILES


def names_for(one: FormField, path: str) -> tuple[str, ...]:
    """Return the names of a Python file that a field can have, as ``file.py:NAME``.

    Raises: OSError, SyntaxError, ValueError if it is not a readable Python file
    """
    found = names_in(path)
    names = (
        found.classes if one.names is FieldNames.PARTITIONER else (*found.classes, *found.functions)
    )
    if one.names is FieldNames.DATA:
        names = (*found.functions, *sorted(found.others - {each for each, _ in found.imports}))
    return tuple(f"{path}:{name}" for name in names if not name.startswith("_"))


def split_value(one: FormField, text: str) -> tuple[str, str]:
    """Return name and value of an entry of a list; the value is empty where it has none."""
    if one.names in (FieldNames.SETTING, FieldNames.EDGE_SETTING):
        name, value = split_pair(text)
    elif one.pair:
        name, value = split_pair(text, last=True)
    elif one.names is FieldNames.PARTITIONER:
        start = text.index(".py:") + len(".py:") if in_file(text) else 0
        name, _, value = text[start:].partition(":")
        name = text[:start] + name
    else:
        return text, ""
    return name, value


def joined_value(one: FormField, name: str, value: str) -> str:
    """Return an entry of a list; see ``split_value``."""
    if one.pair:
        return f"{name}={value}"
    return f"{name}:{value}" if value else name


def has_value(one: FormField) -> bool:
    """Return whether the entries of a list have a value besides their name."""
    return one.pair or one.names is FieldNames.PARTITIONER


def values_of(one: FormField, name: str, known: Vocabulary) -> tuple[str, ...] | type[int] | None:
    """Return the values that the entry of a name can have.

    Returns: their list, ``int`` for a number, or None for any text
    """
    kind = _SETTINGS.get(name) or EDGE_CONFIG.get(name)
    if one.names in (FieldNames.SETTING, FieldNames.EDGE_SETTING) and kind is not None:
        if kind is bool:
            return ("true", "false")
        return int if kind is int else tuple(_overloads(known.operators))
    return one.values or None


def first_value(one: FormField, name: str, known: Vocabulary) -> str:
    """Return the value with which the entry of a name begins."""
    values = values_of(one, name, known)
    if values is int:
        return "16"
    return values[0] if isinstance(values, tuple) and values else ""


def _overloads(operators: Sequence[str]) -> list[str]:
    return [name if name.count(".") > 1 else f"{name}.default" for name in operators]
