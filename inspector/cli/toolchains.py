"""Options about the toolchain that compiles or runs, and the list of its partitioners."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.cli.answer import FAILED, USAGE, Answer, CommandError, shown
from inspector.recipes.compile_job import BUILT_IN, TOOLCHAINS
from inspector.tables.written import partitioner_table
from inspector.toolchain.listing import ListingError, own_partitioners, stock_partitioners
from inspector.toolchain.table import toolchain_named


def add_toolchain(parser: ArgumentParser, what: str) -> None:
    """Add which toolchain, and the interpreter that has it."""
    parser.add_argument(
        "--toolchain",
        choices=TOOLCHAINS,
        default="",
        help=f"what {what}: ETScope's, or the executorch package of an interpreter;"
        f" default: {BUILT_IN}",
    )
    parser.add_argument(
        "--toolchain-python",
        metavar="PATH",
        default="",
        help="interpreter with the executorch package; default: the one ETScope runs in",
    )


def add_listing(parser: ArgumentParser) -> None:
    """Add the list of partitioners."""
    parser.add_argument(
        "--list-partitioners",
        action="store_true",
        help="list the partitioners of the toolchain instead, and why some cannot be used here",
    )


def toolchain_python(options: Namespace, own: str = "") -> str:
    """Return the requested interpreter.

    Args:
        options: of the verb
        own: interpreter named by another option

    Raises: CommandError for options that contradict each other
    """
    named: str = options.toolchain_python
    if named and options.toolchain == BUILT_IN:
        raise CommandError("--toolchain-python needs --toolchain executorch", USAGE)
    if named and own and named != own:
        words = "the function runs in the interpreter of the toolchain: remove --python"
        raise CommandError(words, USAGE)
    return named or own


def partitioner_list(options: Namespace) -> Answer:
    """Return the partitioners of the requested toolchain.

    Raises: CommandError
    """
    if not toolchain_named(options.toolchain).has_interpreter:
        rows = own_partitioners()
        return _listed({"toolchain": {"name": BUILT_IN}, "partitioners": rows}, rows)
    try:
        found = stock_partitioners(toolchain_python(options, options.python))
    except ListingError as error:
        raise CommandError(str(error), USAGE if error.usage else FAILED) from error
    return _listed(found, found["partitioners"])


def _listed(data: dict[str, Any], rows: list[dict[str, Any]]) -> Answer:
    tool = data["toolchain"]
    name = " ".join(str(tool[key]) for key in ("name", "version") if key in tool)
    return Answer(
        data, lines=[f"partitioners of {name}:"], tables=(shown(partitioner_table(rows)),)
    )
