"""Recipe edits that findings end in, and the command that tries them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import cast

import numpy as np

from inspector.files.session import Session
from inspector.findings.finding import Finding
from inspector.graph.delegation import MethodDelegation, analyse_delegation, verdicts_by_node
from inspector.profile.methods import time_of
from inspector.profile.operator_columns import REST
from inspector.profile.operator_rows import operator_rows
from inspector.recipes.compile_job import BUILT_IN, CompileJob
from inspector.recipes.edits import (
    SMALLEST_PLAN,
    EditTarget,
    TargetKind,
    called,
    edit_named,
    edit_that_takes,
)
from inspector.recipes.options import option_of
from inspector.recipes.recipe import RECIPE, RecipeError
from inspector.recipes.session_recipe import session_recipe
from inspector.roofline.rows import RooflineRow
from inspector.toolchain.table import toolchain_named
from schema.backends import DEFAULT
from schema.etrecord import RecordFile
from schema.etrecord.parts.guard import Refusal

Edits = tuple[tuple[str, EditTarget], ...]
_MOST = 32  # of one finding
_SMALL = 2  # nodes of a partition that may be not worth its boundaries
_NAMED = 3
_GREEDY, _INTERVAL = "greedy", "interval"  # memory planners
_LINEAR = ("linear", "addmm", "mm.out", "mm.default", "fully connected", "fullyconnected")
_SHRINKING = (
    ("dynamic", "aten.linear.default", _LINEAR),
    ("static", "aten.conv2d.default", ("conv",)),
)
_FLOATS = ("float", "bfloat")
_DEFAULT = DEFAULT.partitioners[0].alias
DELEGATE_ALL = ("add-partitioner", EditTarget(TargetKind.PARTITIONER, _DEFAULT))


def edits_that_delegate(session: Session, method: str) -> Edits:
    """Return the edits that let partitioners take nodes which a rule of the user or its size kept.

    None where a partitioner does not support what is left.
    """
    entry = next((one for one in analyse_delegation(session) if one.method == method), None)
    verdicts = verdicts_by_node(entry.verdicts) if entry is not None else {}
    found = (edit_that_takes(node, own[0]) for node, own in verdicts.items())
    return tuple(dict.fromkeys(edit for edit in found if edit is not None))[:_MOST]


def edits_that_exclude(refusals: Sequence[Refusal]) -> Edits:
    """Return the edits that keep refused nodes off their delegate."""
    names = dict.fromkeys(one.exported or one.node for one in refusals if one.node)
    return tuple(("keep-off", EditTarget(TargetKind.NODE, name)) for name in names)[:_MOST]


def edits_that_join(entry: MethodDelegation) -> Edits:
    """Return the edits that keep the smallest partitions off, whose boundaries cost most."""
    small = [one for one in entry.delegates if 0 < len(one.nodes) <= _SMALL]
    return tuple(
        (
            "keep-off",
            EditTarget(TargetKind.PARTITION, f"{one.backend_id} {one.index}", one.nodes),
        )
        for one in sorted(small, key=lambda one: len(one.nodes))[:_MOST]
    )


def edits_that_replan(session: Session) -> Edits:
    """Return the edit that plans memory with less waste, none where the recipe does already.

    Where none is named, the stock toolchain plans greedily and ours takes the smallest plan.
    """
    job = known_job(session)
    if job is None or not job.memory_planner:
        return ()
    built_in = not toolchain_named(job.toolchain).has_interpreter
    if job.memory_planner == _GREEDY and not built_in:
        return ()
    name = SMALLEST_PLAN if job.memory_planner in (_GREEDY, _INTERVAL) else _GREEDY
    return (("plan-with", EditTarget(TargetKind.PLANNER, name)),)


def edits_that_share(session: Session) -> Edits:
    """Return the edit that stores equal constants once: the built-in toolchain does."""
    job = known_job(session)
    if job is None or not toolchain_named(job.toolchain).has_interpreter:
        return ()
    return (("compile-with", EditTarget(TargetKind.TOOLCHAIN, BUILT_IN)),)


def edits_that_shrink(session: Session, rows: Sequence[RooflineRow]) -> Edits:
    """Return the edits that store the weights of linear layers and convolutions in a byte each.

    Convolutions read and write their images in a byte each, too, and are calibrated with the
    example inputs. None for quantized programs, for other backends than the default one, and for
    other operators.
    """
    job = known_job(session)
    if job is None or job.quantising.requested:
        return ()
    labels = [
        row.label.lower().replace("_", " ")
        for row in rows
        if row.backend in ("", DEFAULT.id) and row.work.dtype.startswith(_FLOATS)
    ]
    quantized = [
        (f"quantize-{mode}", EditTarget(TargetKind.OPERATOR, operator))
        for mode, operator, names in _SHRINKING
        if any(name in label for label in labels for name in names)
    ]
    return (DELEGATE_ALL, *quantized) if quantized else ()


def known_job(session: Session) -> CompileJob | None:
    """Return the recipe of a session, None where it is unknown."""
    try:
        return session_recipe(session).recipe.job
    except RecipeError:
        return None


def can_try(session: Session, finding: Finding) -> bool:
    """Return whether a finding has edits that change the recipe of its session."""
    job = known_job(session) if finding.edits else None
    return job is not None and edited(job, finding.edits) != job


def overhead_ms(session: Session, method: str) -> float | None:
    """Return what the calls of delegates take beyond their operators, None without times.

    It is their share of the time with a trace, of a run without one where that is known.
    """
    parts, time = operator_rows(session, method).parts, time_of(session, method)
    if len(parts) != 1 or time is None or not parts[0].has_shares:
        return None
    (part,) = parts
    share = float(np.nansum(part.share[(part.kind == REST) & part.timed]))
    return share * time.latency_ms if share > 0 else None


def edited(job: CompileJob, edits: Iterable[tuple[str, EditTarget]]) -> CompileJob:
    """Return a recipe with edits applied in order."""
    for name, target in edits:
        job = edit_named(name).apply(job, target)
    return job


def edit_words(edits: Edits) -> str:
    """Return edits in words, equal ones with the names of their first targets."""
    found: list[str] = []
    for name in dict.fromkeys(name for name, _ in edits):
        names = [called(target) for other, target in edits if other == name]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        text = edit_named(name).label.format(f"{', '.join(names[:_NAMED])}{more}", "delegates")
        found.append(text if not found else f"{text[:1].lower()}{text[1:]}")
    return ", ".join(found)


def command_of(session: Session, finding: Finding) -> str:
    """Return the command that compiles with the edits of a finding, empty where no command does.

    None does without edits or a recipe, where the recipe has them already, and where they empty a
    list of the recipe, which no option does.
    """
    job = known_job(session) if finding.edits else None
    if job is None:
        return ""
    new = edited(job, finding.edits)
    options = _options(job, new)
    if new.toolchain != job.toolchain:
        options += ["--toolchain", new.toolchain]
    return recipe_command(session, *options, "-o", "tried") if options else ""


def recipe_command(session: Session, *options: str) -> str:
    """Return the command that compiles the program of a session again, with options added.

    Empty where its recipe is unknown.
    """
    source = _recipe_path(session)
    if not source or known_job(session) is None:
        return ""
    return shlex.join(["etscope", "compile", "--recipe", source, *options])


def _recipe_path(session: Session) -> str:
    """Return the file that ``session_recipe`` reads."""
    records = [one.path for one in session.files if isinstance(one.artifact, RecordFile)]
    programs = [one.path for one in session.files if one.kind in ("pte", "bpte")]
    if records:
        return records[0]
    return f"{programs[0].rpartition('/')[0] or '.'}/{RECIPE}" if programs else ""


def _options(old: CompileJob, new: CompileJob) -> list[str]:
    """Return the options that turn one recipe into another, empty where no options do."""
    found: list[str] = []
    pairs: list[tuple[object, object]] = [(old, new)]
    pairs += [(getattr(old, name), getattr(new, name)) for name in ("rules", "quantising")]
    pairs.append((old.precision, new.precision))
    for before, after in pairs:
        for one in fields(type(after)):  # pyright: ignore[reportArgumentType]
            known, value = option_of(one), getattr(after, one.name)
            if known is None or not known.flag or getattr(before, one.name) == value:
                continue
            if not value:
                return []
            values = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            found += [word for each in values for word in (f"--{known.flag}", str(each))]
    return found
