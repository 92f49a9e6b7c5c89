"""Options of compile, derived from the fields of a recipe, and their values."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import Field, fields, replace
from typing import Any, TypeVar, cast, get_type_hints

from inspector.cli.answer import USAGE, CommandError
from inspector.cli.job_runs import check_inputs, count
from inspector.recipes.compile_job import (
    BUILT_IN,
    EXECUTORCH,
    MODULE_WORDS,
    OVERRIDES,
    PRECISIONS,
    QUANTIZING_MODES,
    CompileJob,
    Precision,
    Quantization,
    Rules,
)
from inspector.recipes.edits import moved_up
from inspector.recipes.emission import in_file
from inspector.recipes.options import Option, option_of
from inspector.roofline.call_costs import DEVICE, STOCK, THIS, CallCosts, known_costs
from inspector.toolchain.table import toolchain_named
from schema.backends import DEFAULT
from schema.errors import Issue, Severity
from schema.objects.plural import plural
from schema.recipe.assignments import AssignmentError, parse_assignment
from schema.vendors.names import quantizer_names, quantizer_vendor

_Part = TypeVar("_Part")
AUTO = "auto"
_NUMBERED = re.compile(r":(\w+)=\d+$")
_DEFAULT = DEFAULT.partitioners[0].alias  # of the backend that the built-in quantizer is for
PARTS: tuple[type, ...] = (Rules, Quantization, Precision)
"""The parts of a recipe whose fields are options, in the order of the help."""


def add_fields(parser: ArgumentParser, kind: type) -> None:
    """Add an option for each field of a part of a recipe that has a flag."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        found = option_of(one)
        if found is not None and found.flag:
            _add(parser, found, hints[one.name], one.default)


def _add(parser: ArgumentParser, found: Option, kind: Any, default: object) -> None:  # noqa: ANN401
    flag = f"--{found.flag}"
    if kind is bool:
        parser.add_argument(flag, action="store_true", help=found.help)
    elif found.choices:
        values = [value for value, _ in found.choices if value]
        more = f"; default: {default}" if default else ""
        if found.more:  # argparse would refuse what is in no list
            shown = _shown((*values, found.more))
            parser.add_argument(
                flag, default=default, metavar=shown, help=f"{found.help}{more}", type=str
            )
            return
        parser.add_argument(
            flag,
            choices=values,
            default=default,
            metavar=_shown(values),
            help=f"{found.help}{more}",
        )
    elif kind == tuple[str, ...]:
        parser.add_argument(
            flag,
            action="append",
            default=[],
            metavar=found.metavar,
            help=f"{found.help}; may be repeated",
        )
    elif kind is str:
        parser.add_argument(flag, default="", metavar=found.metavar, help=found.help)
    else:  # an integer from 1, possibly none
        number = count_or_auto if found.automatic else count
        parser.add_argument(
            flag, type=number, default=default, metavar=found.metavar, help=found.help
        )


def _shown(words: Sequence[str]) -> str:
    """Return words to choose from in a line."""
    return "{" + ",".join(_grouped(words)) + "}"


def _grouped(words: Sequence[str]) -> Iterable[str]:
    """Return words to choose from; those that differ in a number are one with ``N``."""
    whole = {word: _NUMBERED.sub(r"[:\1=N]", word) for word in words}
    bases = {shown.partition("[")[0] for word, shown in whole.items() if shown != word}
    kept = [shown for word, shown in whole.items() if word not in bases]
    return dict.fromkeys(kept)


def count_or_auto(text: str) -> int | str:
    """Return a number from 1, or ``auto`` with a target."""
    return text if text.partition(":")[0] == AUTO else count(text)


def recipe_part(kind: type[_Part], options: Namespace) -> _Part:
    """Return the part of a recipe that the options select."""
    values = option_values(kind, options)
    if kind is Rules and isinstance(values["min_nodes"], str):
        costs = costs_named(values["min_nodes"].partition(":")[2])
        work = values["min_work"]
        values["min_nodes"] = costs.fewest_nodes
        values["min_work"] = costs.least_work if work is None else work
    if kind is Quantization and values["mode"] not in ("", *OVERRIDES):
        values = _with_vendor(values)
    return kind(**values)


def automatic_rules(options: Namespace) -> list[Issue]:
    """Return what ``--min-nodes auto`` stands for, in a sentence; empty without it.

    Raises: CommandError for the other toolchain, which does not weigh partitions
    """
    if not isinstance(options.min_nodes, str):
        return []
    if toolchain_named(options.toolchain).has_interpreter:
        raise CommandError("--min-nodes auto needs the built-in toolchain", USAGE)
    costs, rules = costs_named(options.min_nodes.partition(":")[2]), recipe_part(Rules, options)
    work = "" if rules.min_work is None else f", or {rules.min_work:,} FLOPs"
    text = f"at least {plural(rules.min_nodes, 'node')}{work} a partition: {costs.described}"
    return [Issue(Severity.INFO, "--min-nodes auto", text)]


def costs_named(name: str) -> CallCosts:
    """Return the costs of calls on a target, empty for the usual one.

    Raises: CommandError listing those that are known
    """
    known = list(known_costs())
    words = {"": THIS, BUILT_IN: THIS, EXECUTORCH: STOCK}
    requested = words.get(name, name)
    for one in known:
        if not name or requested in (one.target, one.target.removeprefix(DEVICE)):
            return one
    listed = ", ".join(one.target for one in known)
    more = f"; known: {listed}" if listed else ""
    which = f" of {name}" if name else ""
    words_of = "etscope roofline FILES… --calibrate-calls measures it"
    raise CommandError(f"the cost of a call{which} is not known: {words_of}{more}", USAGE)


def _with_vendor(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with a mode that names a vendor's quantizer as such.

    That of the default backend is the built-in one, as ``NAME`` or ``NAME:MODE``.
    """
    text: str = values["mode"]
    name, _, mode = text.partition(":")
    if name == _DEFAULT and (mode or QUANTIZING_MODES[0]) in QUANTIZING_MODES:
        return {**values, "mode": mode or QUANTIZING_MODES[0]}
    if quantizer_vendor(text) is None:
        own = [f"{_DEFAULT}:{one}" for one in QUANTIZING_MODES]
        there = ", ".join(_grouped((*OVERRIDES, *own, *quantizer_names())))
        alike = [word for word in OVERRIDES if word.startswith(f"{_NUMBERED.sub('', text)}:")]
        numbers = f"; N one of {', '.join(word.partition('=')[2] for word in alike)}"
        more = numbers if alike else ""
        raise CommandError(f"--quantize {text}: expected one of {there}{more}", USAGE)
    if values["quantizer"]:
        raise CommandError("--quantizer replaces --quantize and modules", USAGE)
    return {**values, "mode": "", "quantizer": text}


def option_values(kind: type, options: Namespace) -> dict[str, Any]:
    """Return the values of the options by field; fields without a flag are omitted."""
    found: dict[str, Any] = {}
    for one in fields(kind):
        known = option_of(one)
        if known is not None and known.flag:
            value = getattr(options, known.flag.replace("-", "_"))
            found[one.name] = tuple(cast("list[str]", value)) if isinstance(value, list) else value
    return found


def add_changes(parser: ArgumentParser) -> None:
    """Add the options that take back what a recipe has, and reorder its partitioners."""
    parser.add_argument(
        "--reset",
        action="append",
        default=[],
        metavar="OPTION",
        help="take back what the recipe has for this option, as --reset quantize-embedding, before"
        " the other options apply; may be repeated",
    )
    parser.add_argument(
        "--move-up",
        action="append",
        default=[],
        metavar="NAME",
        help="move this partitioner of the recipe one position forward; may be repeated",
    )


def without(job: CompileJob, options: Namespace) -> CompileJob:
    """Return a job with the defaults of the options that are taken back.

    Raises: CommandError listing what can be
    """
    resettable = {
        found.flag or one.name: (part, one)
        for part in (CompileJob, *PARTS)
        for one in fields(part)
        if (found := option_of(one)) is not None
    }
    for name in options.reset:
        flag = name.removeprefix("--")
        if flag not in resettable:
            there = ", ".join(sorted(resettable))
            raise CommandError(f"--reset {name}: expected one of {there}", USAGE)
        job = _with_default(job, *resettable[flag])
    return job


def _with_default(job: CompileJob, part: type, one: Field[Any]) -> CompileJob:
    default = {one.name: one.default}
    if part is CompileJob:
        return replace(job, **default)
    owner = next(each.name for each in fields(job) if type(getattr(job, each.name)) is part)
    return replace(job, **{owner: replace(getattr(job, owner), **default)})


def reordered(job: CompileJob, options: Namespace) -> CompileJob:
    """Return a job whose partitioners are in the order of the options.

    Raises: CommandError naming a partitioner that is not there
    """
    for name in options.move_up:
        try:
            job = replace(job, partitioners=moved_up(job.partitioners, name))
        except KeyError as error:
            raise CommandError(str(error.args[0]), USAGE) from error
    return job


def check_recipe_options(job: CompileJob) -> None:
    """Refuse options without effect before any file is loaded.

    Raises: CommandError
    """
    _check_quantization(job.quantising)
    typed = job.precision
    for text in (*typed.modules, *typed.operators, *typed.nodes):
        _check_pair(text, "TYPE", PRECISIONS)
    if job.rules != Rules() and not job.partitioners:
        raise CommandError("rules for partitioners need a --partitioner", USAGE)


def _check_quantization(requested: Quantization) -> None:
    if not requested.requested and requested != Quantization():
        raise CommandError("options about quantization need --quantize MODE", USAGE)
    if requested.quantizer and replace(requested, calibration="", quantizer="") != Quantization():
        raise CommandError("--quantizer replaces --quantize and modules", USAGE)
    named = requested.quantizer
    if named and not in_file(named) and quantizer_vendor(named) is None:
        there = ", ".join(quantizer_names())
        raise CommandError(f"--quantizer {named}: expected file.py:NAME or one of {there}", USAGE)
    if requested.calibration:
        check_inputs(requested.calibration)
    for text in requested.modules:
        _check_pair(text, "MODE", MODULE_WORDS)
    for text in (*requested.operators, *requested.nodes):
        _check_pair(text, "MODE", OVERRIDES)


def _check_pair(text: str, what: str, values: tuple[str, ...]) -> None:
    try:
        parse_assignment(text, what, values)
    except AssignmentError as error:
        raise CommandError(str(error), USAGE) from error
