"""Options of compile about what goes to delegates, and in which type nodes are computed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from inspector.cli.answer import USAGE, CommandError
from inspector.cli.job_runs import count
from inspector.recipes.compile_job import GRANULARITIES, PRECISIONS, CompileJob, Precision, Rules
from inspector.recipes.edits import moved_up

_NAMES = {
    "op": "operator; a pattern such as 'aten.conv*' is possible, may be repeated",
    "node": "node; likewise",
    "module": "module, by path or class; likewise",
}
_NODES = {
    "force-node": "take this node whatever other rules say, if the partitioner has a rule for it;"
    " NODE=PARTITIONER where not any may",
    "cut-before": "this node and what it reads are not in one partition",
    "cut-after": "this node and what reads it are not in one partition",
    "alone-node": "this node gets a partition of its own",
    "alone-op": "each node of this operator gets a partition of its own",
    "deny-rule": "turn a rule of the partitioners off, by the name verdicts have for it",
}
_PRECISION = {"module": "in this module", "op": "of this operator", "node": "at this node"}


def add_delegation(parser: ArgumentParser) -> None:
    """Add the options about partitioners."""
    parser.add_argument(
        "--partitioner",
        action="append",
        default=[],
        metavar="NAME[:OPTION=VALUE…]",
        help="alias, class name or file.py:Class; may be repeated, first choice first;"
        " without one nothing is delegated",
    )
    parser.add_argument(
        "--move-up",
        action="append",
        default=[],
        metavar="NAME",
        help="let this partitioner of the recipe choose one place earlier; may be repeated",
    )
    for name, what in _NAMES.items():
        deny, allow = (
            f"no partitioner may take this {what}",
            f"partitioners may take only this {what}",
        )
        for way, words in (("deny", deny), ("allow", allow)):
            _add_names(parser, f"{way}-{name}", words)
    _add_names(parser, "deny-dtype", "as float16")
    for name, words in _NODES.items():
        _add_names(parser, name, f"{words}; may be repeated")
    parser.add_argument(
        "--min-nodes", type=count, default=1, metavar="N", help="smallest partition; default: 1"
    )
    parser.add_argument(
        "--max-partitions", type=count, metavar="N", help="most partitions of a method"
    )
    parser.add_argument(
        "--granularity",
        choices=GRANULARITIES,
        default=GRANULARITIES[0],
        help="how large partitions are; default: maximal",
    )


def _add_names(parser: ArgumentParser, name: str, words: str) -> None:
    parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=words)


def add_precision(parser: ArgumentParser) -> None:
    """Add the options about types."""
    for name, what in _PRECISION.items():
        parser.add_argument(
            f"--precision-{name}",
            action="append",
            default=[],
            metavar="NAME=TYPE",
            help=f"compute what is {what} in {', '.join(PRECISIONS)}; may be repeated",
        )


def rules_asked(options: Namespace) -> Rules:
    """Return the rules the options ask for."""
    return Rules(
        deny_ops=tuple(options.deny_op),
        allow_ops=tuple(options.allow_op),
        deny_nodes=tuple(options.deny_node),
        allow_nodes=tuple(options.allow_node),
        deny_modules=tuple(options.deny_module),
        allow_modules=tuple(options.allow_module),
        deny_dtypes=tuple(options.deny_dtype),
        min_nodes=options.min_nodes,
        max_partitions=options.max_partitions,
        granularity=options.granularity,
        force_nodes=tuple(options.force_node),
        cut_before=tuple(options.cut_before),
        cut_after=tuple(options.cut_after),
        alone_nodes=tuple(options.alone_node),
        alone_ops=tuple(options.alone_op),
        deny_rules=tuple(options.deny_rule),
    )


def precision_asked(options: Namespace) -> Precision:
    """Return the types the options ask for.

    Raises: CommandError for one that is no type
    """
    asked = [*options.precision_module, *options.precision_op, *options.precision_node]
    for text in asked:
        name, _, word = text.rpartition("=")
        if not name or word not in PRECISIONS:
            there = ", ".join(PRECISIONS)
            raise CommandError(f"{text!r} is no NAME=TYPE; a type is one of {there}", USAGE)
    return Precision(
        tuple(options.precision_module),
        tuple(options.precision_op),
        tuple(options.precision_node),
    )


def reordered(job: CompileJob, options: Namespace) -> CompileJob:
    """Return a job whose partitioners come in the order the options ask for.

    Raises: CommandError naming a partitioner that is not there
    """
    for name in options.move_up:
        try:
            job = replace(job, partitioners=moved_up(job.partitioners, name))
        except KeyError as error:
            raise CommandError(str(error.args[0]), USAGE) from error
    return job
