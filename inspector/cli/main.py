"""The entry of the command line: parses, opens the files, runs the verb, sets the exit code."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from inspector.cli.answer import (
    FAILED,
    FINE,
    INTERRUPTED,
    UNREADABLE,
    USAGE,
    Answer,
    CommandError,
)
from inspector.cli.examples import epilog
from inspector.cli.output import Heading, emit, envelope, to_json
from inspector.cli.text import printable, stdout_is_utf8
from schema.errors import FormatError, Issue
from schema.version import __version__

# verb -> what it does; the module of a verb is inspector.cli.<verb with underscores>
VERBS: dict[str, str] = {
    "summary": "summary of the files and findings",
    "profile": "times by event",
    "delegation": "delegated and remaining operators",
    "memory": "planned buffers, peak and its values",
    "roofline": "FLOPs, bytes and rates of operators beside the limits of the machine",
    "size": "every byte of the files and its owner",
    "table": "any table of the window by name, filtered, sorted, grouped",
    "tensors": "constants, planned values and logged tensors",
    "graph": "nodes and edges of a graph",
    "check": "check whether files belong together",
    "diff": "two programs or sessions side by side",
    "compare": "two or more side by side: changes and their effect",
    "trace": "runs as a Chrome or Perfetto trace",
    "report": "one self-contained HTML file",
    "extract": "payloads, constants and tensors as files",
    "split": "move a program's constants and named data to a .ptd",
    "merge": "a program and its .ptd files as one .pte",
    "json": "the flatbuffer of a file as JSON in flatc's form, and a file from such JSON",
    "export": "Model Explorer JSON, or an anonymised copy for a bug report",
    "backends": "what each backend is and needs, and which share of a model each would take",
    "compile": "a program file and an ETRecord from a PyTorch module",
    "run": "run a program on ETScope's runtime: outputs, trace, times",
    "llm": "export, run, measure and plan a language model",
    "device": "machines and phones that programs run on: add, list, edit, test, clean, remove",
    "verify": "check the outputs of the cases of a bundled program",
    "step": "inside of a delegate call: run to a node, read values, replace them",
    "gap": "numeric gap between a run and the recorded program",
    "eval": "errors of programs over a data set beside the float program or each other",
    "gate": "does a program meet its requirements?",
    "sweep": "a recipe with every combination of some of its fields",
    "bisect": "which nodes to remove from a delegate so that a metric is within its bound",
    "bundle": "a bundled program: a program with inputs and expected outputs",
    "clean": "what runs and variants take on the disk, and removing some of it",
    "doctor": "what disturbs measuring on this machine",
    "port": "rewrite imports of scripts written for the executorch package",
    "inspector-cli": "the stock tool's table, with its own options",
}


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} ({self.prog} --help describes it)", USAGE)


def _verb(name: str) -> Any:  # noqa: ANN401 - a module
    return importlib.import_module(f"inspector.cli.{name.replace('-', '_')}")


def help_text(extra_verbs: dict[str, str] | None = None) -> str:
    """Return the overview of all verbs."""
    lines = ["usage: etscope [VERB] FILES… [options]", "", "verbs:"]
    for name, what in {**(extra_verbs or {}), **VERBS}.items():
        lines.append(f"  {name:<14} {what}")
    lines += [
        "",
        "FILES are any mix of .pte, .ptd, .bpte, ETRecord, ETDump and debug buffer, or folders of",
        "them; the kind of a file follows from its content. Without a verb the window opens.",
        "",
        "examples:",
        "  etscope model.pte model.etrecord run.etdp",
        "  etscope summary model.pte",
        "  etscope profile model.pte model.etrecord run.etdp --top 20",
        "",
        "exit codes: 0 fine, 1 check, diff, verify, gate or port found something, 2 wrong usage,",
        "3 unreadable file, 4 the job failed, 130 interrupted",
        "",
        "etscope VERB --help describes one verb; etscope --version prints the version.",
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None, extra_verbs: dict[str, str] | None = None) -> int:
    """Run one verb and return the exit code.

    Args:
        argv: arguments without the program's name; those of the process when None
        extra_verbs: verbs handled by the caller, listed in the help only
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    stdout_is_utf8()
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(help_text(extra_verbs))
        return FINE
    if arguments[0] == "--version":
        sys.stdout.write(f"etscope {__version__}\n")
        return FINE
    verb = arguments[0]
    if verb not in VERBS:
        import difflib  # only for who mistypes

        close = difflib.get_close_matches(verb, [*VERBS, *(extra_verbs or {})], 1)
        hint = f"; did you mean {close[0]}?" if close else "; etscope --help lists the verbs"
        sys.stderr.write(f"etscope: unknown verb {verb!r}{hint}\n")
        return USAGE
    return _guarded(_Request(verb, arguments[1:]))


@dataclass(slots=True)
class _Request:
    """A verb and its arguments, possibly only partly parsed."""

    verb: str
    arguments: list[str]
    options: argparse.Namespace | None = None

    def inputs(self) -> list[str]:
        """Return the input files, if known."""
        known: list[str] = getattr(self.options, "inputs", [])
        return known or list(getattr(self.options, "files", []))

    def asks_for_json(self) -> bool:
        """Return whether the answer was to be JSON, also when parsing failed."""
        if self.options is not None:
            return getattr(self.options, "format", "") == "json"
        pairs = itertools.pairwise(self.arguments)
        return "--format=json" in self.arguments or ("--format", "json") in pairs


def _guarded(request: _Request) -> int:
    """Run a verb; every way out is one sentence and a code."""
    try:
        return _run(request)
    except SystemExit as leaving:  # --help
        return int(leaving.code or 0)
    except CommandError as error:
        return _refuse(request, str(error), error.code)
    except BrokenPipeError:
        return _broken_pipe()
    except (FormatError, OSError) as error:
        _show_where(request)
        return _refuse(request, _sentence(error), UNREADABLE)
    except KeyboardInterrupt:
        sys.stderr.write("etscope: interrupted\n")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user who did not ask
        _show_where(request)
        sentence = f"{request.verb} failed: {type(error).__name__}: {error} (-v shows where)"
        return _refuse(request, sentence, FAILED)


def _show_where(request: _Request) -> None:
    if "-v" in request.arguments or "--verbose" in request.arguments:
        import traceback

        traceback.print_exc()


def _sentence(error: FormatError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return str(error)


def _refuse(request: _Request, sentence: str, code: int) -> int:
    sys.stderr.write(f"etscope: {printable(sentence)}\n")
    if request.asks_for_json():
        found = envelope(request.verb, request.inputs(), (), None, sentence)
        with contextlib.suppress(OSError):
            sys.stdout.write(to_json(found) + "\n")
    return code


def _broken_pipe() -> int:
    # The reader went away: nothing to say, and the interpreter must not complain at exit.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FINE


def _as_sentence(words: str) -> str:
    end = "" if words.endswith("?") else "."
    return f"{words[0].upper()}{words[1:]}{end}"


def _run(request: _Request) -> int:
    verb = request.verb
    module = _verb(verb)
    parser = _Parser(
        prog=f"etscope {verb}",
        description=_as_sentence(VERBS[verb]),
        epilog=epilog(verb),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    options = request.options = parser.parse_args(request.arguments)
    answer: Answer = module.run(options)
    issues: list[Issue] = [*getattr(options, "session_issues", ()), *answer.issues]
    unreadable: list[str] = getattr(options, "unreadable", [])
    heading = Heading(verb, tuple(request.inputs()), tuple(issues), "; ".join(unreadable))
    emit(heading, answer, options)
    for sentence in unreadable:
        sys.stderr.write(f"etscope: {printable(sentence)}\n")
    return UNREADABLE if unreadable else answer.code
