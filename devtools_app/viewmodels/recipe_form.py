"""A recipe as form fields generated from its dataclasses; and the differences of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.options import GROUPS, FieldNames, Option, option_of
from inspector.recipes.source import SourceKind
from inspector.toolchain.table import toolchain_named

_SEPARATOR = "."
_OF_MODES = ("per_tensor", "modules", "operators", "nodes")
_FIRST = ("toolchain",)  # of its group: the others depend on it
_SOURCE = "source"  # whose fields are before those of the job itself


class FieldKind(str, Enum):
    """Kind of a field."""

    TEXT = "text"
    CHOICE = "choice"
    NUMBER = "number"  # an integer, possibly none
    FLAG = "flag"
    LINES = "lines"  # one per line


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
        names: what its values name
        pair: whether its values are ``NAME=VALUE``
        values: allowed ones behind the equals sign; empty allows any
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
    names: FieldNames = FieldNames.NOTHING
    pair: bool = False
    values: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the label as it stands beside the field: with a capital letter."""
        return f"{self.label[:1].upper()}{self.label[1:]}"

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
    """Return the fields of a recipe in the groups of its forms."""
    found: dict[str, list[FormField]] = {group: [] for group in GROUPS}
    parts = [(one.name, getattr(job, one.name)) for one in fields(job)]
    nested = [(f"{name}{_SEPARATOR}", part) for name, part in parts if is_dataclass(part)]
    nested.sort(key=lambda pair: not pair[0].startswith(_SOURCE))
    for prefix, part in (*nested[:1], ("", job), *nested[1:]):
        for group, one in _plain(part, prefix):
            found[group].append(one)
    for own in found.values():
        own.sort(key=lambda one: one.path not in _FIRST)
    return tuple(Section(group, tuple(own)) for group, own in found.items() if own)


def all_fields(job: CompileJob) -> tuple[FormField, ...]:
    """Return the fields of a recipe."""
    return tuple(one for section in sections(job) for one in section.fields)


def without_meaning(job: CompileJob) -> frozenset[str]:
    """Return the fields that have no meaning in a recipe as it is."""
    python = job.source.kind is SourceKind.PYTHON
    modes, elsewhere = job.quantising, toolchain_named(job.toolchain).has_interpreter
    by_mode = bool(modes.mode) and not modes.quantizer
    known = {
        "source.function": job.source.takes_function,
        "python": python or elsewhere,
        "quantising.mode": not modes.quantizer,
        "quantising.calibration": modes.requested,
        **{f"quantising.{name}": by_mode for name in _OF_MODES},
    }
    return frozenset(path for path, meant in known.items() if not meant)


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
    return tuple(text for one, before in _changed(old, new) for text in _change(one, before))


def diff_lines(old: CompileJob, new: CompileJob) -> tuple[str, ...]:
    """Return the differences of two recipes value by value, as a diff has them."""
    found: list[str] = []
    for one, before in _changed(old, new):
        if one.kind is not FieldKind.LINES:
            found += [f"− {one.label}: {_shown(one, before)}"]
            found += [f"+ {one.label}: {_shown(one, one.value)}"]
            continue
        come, gone = come_and_gone(one, before)
        found += [f"− {one.label}: {text}" for text in gone]
        found += [f"+ {one.label}: {text}" for text in come]
        found += [] if come or gone else list(_change(one, before))
    return tuple(found)


def _changed(old: CompileJob, new: CompileJob) -> Iterator[tuple[FormField, object]]:
    """Yield the fields that differ, with their former values."""
    before = {one.path: one.value for one in all_fields(old)}
    for one in all_fields(new):
        if one.value != before[one.path]:
            yield one, before[one.path]


def change_line(old: CompileJob, new: CompileJob) -> str:
    """Return what was changed in one line, empty without an error."""
    found = differences(old, new)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(found[:3]) + more


def _change(one: FormField, before: object) -> Iterator[str]:
    if one.kind is not FieldKind.LINES:
        yield f"{one.label} {_shown(one, one.value)}"
        return
    come, gone = come_and_gone(one, before)
    for sign, texts in (("+", come), ("−", gone)):
        if texts:
            more = f" and {len(texts) - 2} more" if len(texts) > 2 else ""
            yield f"{one.label} {sign} {', '.join(texts[:2])}{more}"
    if not come and not gone:
        yield f"{one.label} in the order {', '.join(cast('tuple[str, ...]', one.value))}"


def come_and_gone(one: FormField, before: object) -> tuple[list[str], list[str]]:
    """Return the values that were added to a list and those that were removed."""
    old, new = cast("tuple[str, ...]", before or ()), cast("tuple[str, ...]", one.value or ())
    return [text for text in new if text not in old], [text for text in old if text not in new]


def _shown(one: FormField, value: object) -> str:
    if one.kind is FieldKind.FLAG:
        return "on" if value else "off"
    text = dict(one.choices).get(str(value))
    return text or (str(value) if value not in ("", None) else "as by default")


def _plain(part: object, prefix: str) -> Iterator[tuple[str, FormField]]:
    """Yield the fields of a part without its nested parts, with their groups."""
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
        yield (
            known.group,
            FormField(
                prefix + one.name,
                known.label or _label_of(one.name),
                what,
                value,
                "" if one.default is MISSING else one.default,
                known.help,
                known.choices,
                optional,
                known.empty,
                known.names,
                bool(known.pair),
                known.values,
            ),
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
