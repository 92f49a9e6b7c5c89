"""backends: what each is, needs and would take of a model; environments of vendors' packages."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.backend_environments import (
    install_environment,
    list_environments,
    remove_environment,
)
from inspector.cli.job_runs import add_libraries, add_timeout, check_there, finished
from inspector.cli.options import add_output
from inspector.cli.progress import Progress
from inspector.cli.recipe_options import add_fields, check_recipe_options, recipe_part
from inspector.cli.recipes import known_recipe, merged
from inspector.jobs.backend_plan import BackendCardJob, BackendFacts, BackendPlan, BackendPlanJob
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob, Quantization, Rules
from inspector.recipes.source import SourceError, parse_source
from inspector.tables.backends import card_table, plan_table
from inspector.toolchain.backend_cards import (
    BackendCard,
    backend_card,
    backend_cards,
    card_lines,
    plannable,
)
from inspector.units import format_share
from schema.errors import Issue
from schema.objects.plural import plural


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("action", choices=_ACTIONS, help="what to do")
    parser.add_argument(
        "subject",
        nargs="?",
        default="",
        metavar="NAME|SOURCE",
        help="show, install, remove: a backend; plan: file.py:function, a .pt2 file, an"
        " ETRecord, or a recipe.json",
    )
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="plan: a partitioner with options, as --partitioner of compile; may be repeated;"
        " default: all that can be used here",
    )
    add_libraries(parser)
    add_fields(parser, Quantization)
    add_timeout(parser)
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Do the action.

    Raises: CommandError
    """
    return _ACTIONS[options.action](options)


def _show(options: Namespace) -> Answer:
    if not options.subject:
        cards = backend_cards()
        here = sum(not one.missing for one in cards)
        lines = [f"{here} of {plural(len(cards), 'backend')} can be used here"]
        data = {"backends": [_json(one) for one in cards]}
        return Answer(data, lines=lines, tables=(shown(card_table(cards)),))
    try:
        card = backend_card(options.subject)
    except KeyError as error:
        raise CommandError(str(error.args[0]), USAGE) from error
    details = card_lines(card, *_of_tables(card, verbose=options.verbose))
    data = {"backends": [{**_json(card), "details": details}]}
    width = max(map(len, details))
    lines = [f"{title:<{width}}  {text}" for title, text in details.items()]
    return Answer(data, lines=lines)


def _of_tables(card: BackendCard, *, verbose: bool) -> tuple[str, str]:
    """Return options and operators as the vendor's own tables list them.

    What the packages of the vendor print when they are imported for it is left out.
    """
    running = JobRun(BackendCardJob(card.name))
    finished(running, Progress(sys.stderr, verbose=verbose, logs=False), verbose=verbose)
    found: BackendFacts = running.result
    return found.option_words(), found.operator_words()


def _json(card: BackendCard) -> dict[str, Any]:
    return {**asdict(card), "state": card.state, "traps": list(card.traps)}


def _job(options: Namespace) -> tuple[CompileJob, list[Issue]]:
    """Return what is planned, by a recipe or by a source and options, and issues of the recipe.

    Raises: CommandError, FormatError, OSError
    """
    quantization = recipe_part(Quantization, options)
    libraries = tuple(options.libraries)
    if options.subject.endswith(".json"):
        check_there(options.subject)
        known, issues = known_recipe(options.subject, own_source=True)
        asked = CompileJob(known.source, quantising=quantization, libraries=libraries)
        return merged(known, asked), issues
    try:
        source = parse_source(options.subject)
    except SourceError as error:
        raise CommandError(str(error), USAGE) from error
    return CompileJob(source, quantising=quantization, libraries=libraries), []


def _plan(options: Namespace) -> Answer:
    if not options.subject:
        raise CommandError("which model? etscope backends plan file.py:function", USAGE)
    job, issues = _job(options)
    check_there(job.source.path)
    check_recipe_options(replace(job, rules=Rules()))  # those of a recipe hold for all backends
    running = JobRun(
        BackendPlanJob(job, tuple(options.backend) or plannable()), timeout=options.timeout
    )
    finished(running, Progress(sys.stderr, verbose=options.verbose), verbose=options.verbose)
    plan: BackendPlan = running.result
    best = max(plan.rows, key=lambda one: one.share, default=None)
    lines = (
        [
            f"{best.backend} takes most: {best.taken} of {plural(best.nodes, 'node')},"
            f" {format_share(best.share)}"
        ]
        if best is not None and best.taken
        else ["no backend takes any node"]
    )
    data = {"plan": [{**asdict(one), "share": one.share} for one in plan.rows]}
    return Answer(data, lines=lines, tables=(shown(plan_table(plan)),), issues=issues)


_ACTIONS: Mapping[str, Callable[[Namespace], Answer]] = {
    "show": _show,
    "plan": _plan,
    "install": install_environment,
    "list": list_environments,
    "remove": remove_environment,
}
