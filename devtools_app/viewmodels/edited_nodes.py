"""The nodes of a graph that the edits of a recipe name, each with those edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from devtools_app.viewmodels.recipe_form import FieldKind, FormField, all_fields, come_and_gone
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, ModelNode, model_graph
from inspector.graph.node_text import exported_name
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.options import FieldNames
from inspector.tables.verdicts import known_verdicts
from schema.etrecord.parts.verdicts import Verdict
from schema.graph import NodeKind
from schema.recipe.assignments import split_pair
from schema.recipe.patterns import name_fits, operator_pattern

_MARKED = (
    FieldNames.OPERATOR,
    FieldNames.NODE,
    FieldNames.MODULE,
    FieldNames.DTYPE,
    FieldNames.RULE,
)


@dataclass(frozen=True, slots=True)
class _NamedEdit:
    """A name that was added to a field or removed from it.

    Attributes:
        names: what it names
        pattern: the name, or a pattern of names
        words: the edit
    """

    names: FieldNames
    pattern: str
    words: str


def edited_nodes(
    session: Session, method: str, old: CompileJob, new: CompileJob, graph: str = COMPILED
) -> Mapping[str, str]:
    """Return by node what the difference of two recipes changes about it.

    Edits of the program as a whole are on no node.
    """
    edits = tuple(_named_edits(old, new))
    found = model_graph(session, method, graph) if edits else None
    if found is None:
        return {}
    verdicts = known_verdicts(session, method)
    touched: dict[str, str] = {}
    for node in found.nodes:
        if node.node.kind is NodeKind.CALL:
            names = _names_of(node, verdicts.get(node.node.name, ()))
            words = [one.words for one in edits if _fits(names[one.names], one.pattern)]
            if words:
                touched[node.name] = "; ".join(dict.fromkeys(words))
    return touched


def _named_edits(old: CompileJob, new: CompileJob) -> Iterator[_NamedEdit]:
    before = {one.path: one.value for one in all_fields(old)}
    for one in all_fields(new):
        if one.names in _MARKED and one.kind is FieldKind.LINES:
            for sign, texts in zip("+−", come_and_gone(one, before[one.path]), strict=True):
                for text in texts:
                    yield _NamedEdit(one.names, _pattern(one, text), f"{one.label} {sign} {text}")


def _pattern(one: FormField, text: str) -> str:
    name = split_pair(text, last=one.pair)[0]
    return operator_pattern(name) if one.names is FieldNames.OPERATOR else name


def _names_of(node: ModelNode, verdicts: Iterable[Verdict]) -> Mapping[FieldNames, list[str]]:
    inner = node.node
    modules = [(frame.path, frame.type_name.rpartition(".")[2]) for frame in inner.modules]
    tensors = [value.tensor for value in node.values]
    return {
        FieldNames.OPERATOR: [inner.target.replace("::", "."), *(one.operator for one in verdicts)],
        FieldNames.NODE: [inner.name, exported_name(inner)],
        FieldNames.MODULE: [name for pair in modules for name in pair],
        FieldNames.DTYPE: [tensor.dtype for tensor in tensors if tensor is not None],
        FieldNames.RULE: [one.rule for one in verdicts],
    }


def _fits(names: Iterable[str], pattern: str) -> bool:
    return any(name and name_fits(name, pattern) for name in names)
