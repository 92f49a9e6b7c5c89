"""A recipe as form fields generated from its dataclasses; and the differences of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.options import Option, option_of

_SEPARATOR = "."
_TITLES = {
    "source": "Source",
    "job": "Program",
    "rules": "Delegation rules",
    "quantising": "Quantization",
}


class FieldKind(str, Enum):
    """Kind of a field."""

    TEXT = "text"
    CHOICE = "choice"
    NUMBER = "number"  # an integer, possibly none
    FLAG = "flag"
    LINES = "lines"  # one a line


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a recipe.

    Attributes:
        path: as ``rules.deny_ops``
        label: its name
        kind: type of its value
        value: its value
        default: its default
        help: its description
        choices: (value, label) of a choice
        optional: whether it may be empty
        empty: meaning of an empty value
        is_file: whether its values are paths of files
    """

    path: str
    label: str
    kind: FieldKind
    value: object
    default: object
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    optional: bool = False
    empty: str = ""
    is_file: bool = False

    @property
    def is_default(self) -> bool:
        """Return whether it has its default."""
        return self.value == self.default


@dataclass(frozen=True, slots=True)
class Section:
    """Fields that belong together.

    Attributes:
        title: their heading
        fields: the fields
    """

    title: str
    fields: tuple[FormField, ...]


def sections(job: CompileJob) -> tuple[Section, ...]:
    """Return the fields of a recipe by the part they are in."""
    found = [Section(_TITLES["job"], tuple(_plain(job, "")))]
    for one in fields(job):
        part = getattr(job, one.name)
        if is_dataclass(part):
            title = _TITLES.get(one.name, _label_of(one.name).capitalize())
            found.append(Section(title, tuple(_plain(part, one.name + _SEPARATOR))))
    found.sort(key=lambda section: section.title != _TITLES["source"])
    return tuple(section for section in found if section.fields)


def with_value(job: CompileJob, path: str, value: object) -> CompileJob:
    """Return the recipe with another value of a field.

    Raises: KeyError for an unknown field
    """
    name, _, rest = path.partition(_SEPARATOR)
    if name not in {one.name for one in fields(job)}:
        raise KeyError(path)
    if not rest:
        return cast("CompileJob", replace(cast("Any", job), **{name: value}))
    part = getattr(job, name)
    if rest not in {one.name for one in fields(part)}:
        raise KeyError(path)
    return cast("CompileJob", replace(cast("Any", job), **{name: replace(part, **{rest: value})}))


def differences(old: CompileJob, new: CompileJob) -> tuple[str, ...]:
    """Return the differences of two recipes as text, one string per change."""
    found: list[str] = []
    before = {one.path: one for section in sections(old) for one in section.fields}
    for section in sections(new):
        for one in section.fields:
            if one.path in before and one.value != before[one.path].value:
                found += _change(one, before[one.path].value)
    return tuple(found)


def change_line(old: CompileJob, new: CompileJob) -> str:
    """Return what was changed in one line, empty without an error."""
    found = differences(old, new)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(found[:3]) + more


def _change(one: FormField, before: object) -> Iterator[str]:
    if one.kind is not FieldKind.LINES:
        yield f"{one.label} {_shown(one, one.value)}"
        return
    old, new = cast("tuple[str, ...]", before or ()), cast("tuple[str, ...]", one.value or ())
    come = [text for text in new if text not in old]
    gone = [text for text in old if text not in new]
    for sign, texts in (("+", come), ("−", gone)):
        if texts:
            more = f" and {len(texts) - 2} more" if len(texts) > 2 else ""
            yield f"{one.label} {sign} {', '.join(texts[:2])}{more}"
    if not come and not gone:
        yield f"{one.label} in the order {', '.join(new)}"


def _shown(one: FormField, value: object) -> str:
    if one.kind is FieldKind.FLAG:
        return "on" if value else "off"
    text = dict(one.choices).get(str(value))
    return text or (str(value) if value not in ("", None) else "as by default")


def _plain(part: object, prefix: str) -> Iterator[FormField]:
    kind = type(part)
    hints = _hints(kind)
    for one in fields(cast("Any", part)):
        value = getattr(part, one.name)
        if is_dataclass(value):
            continue
        known = option_of(one)
        if known is None:
            continue
        what, optional = _kind(hints[one.name], known)
        if what is None:
            continue
        default = "" if one.default is MISSING else one.default
        label = known.label or _label_of(one.name)
        path = prefix + one.name
        yield FormField(
            path,
            label,
            what,
            value,
            default,
            known.help,
            known.choices,
            optional,
            known.empty,
            known.is_file,
        )


def _kind(hint: Any, known: Option) -> tuple[FieldKind | None, bool]:  # noqa: ANN401
    if known.choices:
        return FieldKind.CHOICE, False
    if get_origin(hint) is tuple:
        return (FieldKind.LINES, False) if get_args(hint)[0] is str else (None, False)
    plain = get_args(hint) or (hint,)
    optional = type(None) in plain
    if bool in plain:
        return FieldKind.FLAG, optional
    if int in plain:
        return FieldKind.NUMBER, optional
    return (FieldKind.TEXT, optional) if str in plain else (None, optional)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _label_of(name: str) -> str:
    return name.replace("_", " ").replace(" ops", " operators")
