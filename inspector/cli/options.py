"""Arguments all verbs share, and the session they open."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from inspector.cli.answer import USAGE, CommandError
from inspector.files.load import load_session, logged_nothing
from inspector.files.origin import remember_unit
from inspector.files.session import LoadedFile, Session, SessionOptions
from inspector.files.session_groups import split_sessions
from inspector.units import TICK_UNITS

FORMATS = ("text", "json", "tsv", "csv")


def add_output(parser: ArgumentParser) -> None:
    """Add the output path and format."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write here, not to the terminal")
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the traceback of an error"
    )


def add_folder_output(parser: ArgumentParser, words: str) -> None:
    """Add where to write files; the result itself goes to standard output."""
    parser.add_argument("-o", "--output", dest="folder", metavar="FOLDER", help=words)
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the traceback of an error"
    )
    parser.set_defaults(output=None)


def add_reading(parser: ArgumentParser) -> None:
    """Add options for facts that the files do not contain."""
    parser.add_argument("--method", metavar="NAME", help="only this method")
    parser.add_argument(
        "--source-time-scale", choices=TICK_UNITS, help="unit of ETDump ticks; default: ns, assumed"
    )
    parser.add_argument(
        "--remember-time-scale",
        action="store_true",
        help="read these ETDumps with --source-time-scale from now on",
    )
    parser.add_argument(
        "--source-root",
        action="append",
        default=[],
        metavar="FOLDER",
        help="root folder of source files; may be repeated",
    )


def add_files(parser: ArgumentParser) -> None:
    """Add the files, options for reading them, output path and format."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="files or folders, any mix")
    add_reading(parser)
    add_output(parser)


def reading(options: Namespace) -> SessionOptions:
    """Return the choices made on the command line."""
    return SessionOptions(
        source_time_scale=options.source_time_scale or "ns",
        time_scale_assumed=options.source_time_scale is None,
        source_roots=tuple(options.source_root),
    )


def open_files(
    options: Namespace, paths: Sequence[str] | None = None, *, strict: bool = False
) -> Session:
    """Open the files named; record inputs, issues and unreadable files for the envelope.

    Args:
        options: of the verb
        paths: files and folders; None for those of the options
        strict: reject a set with an unreadable file, instead of keeping the others

    Raises: FormatError, OSError if none can be read, one is missing, or one is unreadable and
        strict is set; CommandError for a wrong method
    """
    names = one_session(options.files) if paths is None else list(paths)
    for name in names:
        if not logged_nothing(name):
            Path(name).stat()  # a file that is not there is named before anything is decoded
    session = load_session(names, reading(options), strict=strict)
    _remember(options, session)
    options.inputs = [*getattr(options, "inputs", ()), *(file.path for file in session.files)]
    known = getattr(options, "session_issues", ())
    options.session_issues = [*known, *session.all_issues()]
    unreadable = [_sentence(file) for file in session.files if file.error]
    options.unreadable = [*getattr(options, "unreadable", ()), *unreadable]
    if options.method and session.methods and options.method not in session.methods:
        there = ", ".join(session.methods)
        raise CommandError(f"unknown method {options.method!r}; available: {there}", USAGE)
    return session


def _remember(options: Namespace, session: Session) -> None:
    """Store the chosen unit of the traces if that was requested.

    Raises: CommandError without a unit; OSError
    """
    if not getattr(options, "remember_time_scale", False):
        return
    if options.source_time_scale is None:
        raise CommandError("--remember-time-scale needs --source-time-scale", USAGE)
    remember_unit(session.files, options.source_time_scale)


def split_names(names: str) -> list[str]:
    """Return the files of one side of a comparison: a path, or several with commas."""
    return [names] if Path(names).exists() else names.split(",")


def open_sides(options: Namespace, sides: Sequence[Sequence[str]]) -> list[Session]:
    """Open the sides of a comparison, whose method may exist on some of them only.

    Raises: FormatError, OSError; CommandError for a method that no side has
    """
    requested, options.method = options.method, None
    sessions = [open_files(options, side, strict=True) for side in sides]
    options.method = requested
    known = dict.fromkeys(name for session in sessions for name in session.methods)
    if requested and known and requested not in known:
        raise CommandError(f"unknown method {requested!r}; available: {', '.join(known)}", USAGE)
    return sessions


def one_session(paths: Sequence[str]) -> list[str]:
    """Return the paths of a verb for one session.

    Raises: CommandError naming the sessions if they are several
    """
    groups = split_sessions(paths)
    if len(groups) > 1:
        named = ", ".join(" + ".join(group) for group in groups)
        words = f"this verb expects one session, found {len(groups)}: {named}"
        hint = "Name one of them; `etscope compare A B` and `etscope diff A B` accept two"
        raise CommandError(f"{words}. {hint}", USAGE)
    return list(paths)


def _sentence(file: LoadedFile) -> str:
    named = file.error.startswith(file.path)
    return file.error if named else f"{file.path}: {file.error}"


def methods(session: Session, options: Namespace) -> tuple[str, ...]:
    """Return the selected methods; empty if unknown."""
    if options.method:
        return tuple(name for name in session.methods if name == options.method)
    return session.methods


def needs(what: str, files: str) -> str:
    """Return the error message for a verb whose files are missing."""
    return f"{what} needs {files}"


def short(path: str) -> str:
    """Return the last part of a path."""
    return Path(path).name
