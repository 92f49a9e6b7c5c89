"""Options of compile about quantisation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from inspector.cli.answer import USAGE, CommandError
from inspector.cli.job_runs import check_there
from inspector.recipes.compile_job import QUANTISING_MODES, Quantization
from inspector.recipes.emission import in_file
from schema.backends import DEFAULT


def add_quantising(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--quantize",
        choices=(*QUANTISING_MODES, "none"),
        default="",
        help=f"quantise for {DEFAULT.name} before lowering, none: only what other options name;"
        " needs torchao",
    )
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        default="",
        help="inputs to calibrate with: a list, saved by torch.save, of the arguments of each call;"
        " the example inputs by default",
    )
    parser.add_argument(
        "--per-tensor", action="store_true", help="weights have one scale, not one for each channel"
    )
    parser.add_argument(
        "--quantizer",
        metavar="FILE.PY:NAME",
        default="",
        help="a PT2E quantizer, its class, or a function that returns one, instead of --quantize",
    )
    parts = (
        ("module", "what is in a module"),
        ("op", "an operator as aten.linear"),
        ("node", "a node of the exported program"),
    )
    for name, what in parts:
        parser.add_argument(
            f"--quantize-{name}",
            action="append",
            default=[],
            metavar="NAME=MODE",
            help=f"another mode, or none, for {what}; may be repeated",
        )


def quantising(options: Namespace) -> Quantization:
    """Return what the options ask for."""
    return Quantization(
        options.quantize,
        options.calibration,
        options.per_tensor,
        tuple(options.quantize_module),
        tuple(options.quantize_op),
        tuple(options.quantize_node),
        options.quantizer,
    )


def check_quantising(asked: Quantization) -> None:
    """Refuse what has no meaning before anything is loaded.

    Raises: CommandError
    """
    if not asked.wanted and asked != Quantization():
        raise CommandError("options about quantization need --quantize MODE", USAGE)
    if asked.quantizer and replace(asked, calibration="", quantizer="") != Quantization():
        raise CommandError("--quantizer replaces --quantize and what is said of parts", USAGE)
    if asked.quantizer and not in_file(asked.quantizer):
        raise CommandError(f"--quantizer {asked.quantizer}: expected file.py:NAME", USAGE)
    if asked.calibration:
        check_there(asked.calibration)
    for text in (*asked.modules, *asked.operators, *asked.nodes):
        name, _, mode = text.rpartition("=")
        if not name or mode not in (*QUANTISING_MODES, "none"):
            modes = ", ".join((*QUANTISING_MODES, "none"))
            raise CommandError(f"{text!r} is no NAME=MODE; a mode is one of {modes}", USAGE)
