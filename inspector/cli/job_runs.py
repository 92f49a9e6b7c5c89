"""Common parts of verbs that run a worker."""

from __future__ import annotations

import stat
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from inspector.check.session import DO_NOT_BELONG, check_session
from inspector.cli.answer import FAILED, UNREADABLE, USAGE, CommandError
from inspector.cli.progress import Progress
from inspector.files.load import load_session
from inspector.jobs.backend_options import BackendOptionError, options_by_backend, with_options
from inspector.jobs.executing import ENGINES
from inspector.jobs.messages import Ended, Message, Outcome
from inspector.jobs.output_folder import FolderError
from inspector.recipes.data_source import DataSourceError, data_source
from schema.backends import engine_backends
from schema.files.vendor_models import is_vendor_model
from schema.objects.plural import plural

_STEP_SECONDS = 0.1  # Ctrl+C is noticed after at most that
SWEEP = "sweep"
_CODES = {"usage": USAGE, "unreadable": UNREADABLE}


class Running(Protocol):
    """A running job, with one or several workers."""

    @property
    def outcome(self) -> Outcome | None:
        """Return the outcome, None while it runs."""
        ...

    def take(self, timeout: float = 0.0) -> Sequence[Message]:
        """Return the messages since the last call, waiting for the first one."""
        ...

    def close(self) -> None:
        """End the job."""
        ...


def add_timeout(parser: ArgumentParser) -> None:
    """Add the option for a timeout."""
    parser.add_argument(
        "--timeout", type=positive, metavar="SECONDS", help="cancel after this many seconds"
    )


def add_program_data(parser: ArgumentParser, *, sweeps: bool = False) -> None:
    """Add options for data files and engines of a program.

    Args:
        parser: of the verb
        sweeps: whether several numbers of threads can be measured
    """
    parser.add_argument(
        "--ptd",
        action="append",
        default=[],
        metavar="FILE",
        help="external constants of the program; may be repeated",
    )
    add_libraries(parser)
    more = "; sweep measures 1, 2, 4, … and runs with the best" if sweeps else ""
    parser.add_argument(
        "--threads",
        type=_count_or_sweep if sweeps else count,
        default=1,
        metavar=f"N|{SWEEP}" if sweeps else "N",
        help=f"default: 1, which is steadiest{more}",
    )
    add_engine(parser)


def add_engine(parser: ArgumentParser) -> None:
    """Add the option for the engine of delegates."""
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=ENGINES[0],
        help=f"engine of {engine_backends()} delegates: the real kernels or torch's; default: auto",
    )


def add_backend_options(parser: ArgumentParser, what: str = "") -> None:
    """Add the options of backends.

    Args:
        parser: of the verb
        what: what they do, before the description of an option
    """
    known = ", ".join(one.name.lower() for one in with_options())
    parser.add_argument(
        "--backend-option",
        dest="backend_options",
        action="append",
        type=_backend_option,
        default=[],
        metavar="NAME:OPTION=VALUE",
        help=f"{what}option of a backend that runs ({known}), as precision=f32, device=GPU,"
        " threads=1 or a property by its name; may be repeated",
    )


def _backend_option(text: str) -> str:
    try:
        options_by_backend([text])
    except BackendOptionError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def add_libraries(parser: ArgumentParser) -> None:
    """Add the option for libraries that register operators with torch."""
    parser.add_argument(
        "--library",
        dest="libraries",
        action="append",
        default=[],
        metavar="FILE",
        help="a .py file or a shared library that registers operators with torch; its code is"
        " run; may be repeated",
    )


def check_record(program: str, record: str) -> None:
    """Raise CommandError if the record belongs to another program; may be empty."""
    if not record:
        return
    found = check_session(load_session([program, record], strict=True))
    if found.verdict == DO_NOT_BELONG:
        raise CommandError(f"the record is not one of this program: {found.mismatch}", UNREADABLE)


def engine_lines(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the engines of delegates, one line for each."""
    counts = Counter((one["backend"], one["source"], one["note"]) for one in partitions)
    return [
        f"{plural(count, 'delegate')} of {backend}: {source}{f' ({note})' if note else ''}"
        for (backend, source, note), count in counts.items()
    ]


def _count_or_sweep(text: str) -> int:
    return 0 if text == SWEEP else count(text)


def count(text: str) -> int:
    """Return an integer from 1."""
    return _whole(text, 1)


def count_or_none(text: str) -> int:
    """Return an integer from 0."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < least:
        raise ArgumentTypeError(f"expected an integer of at least {least}, found {text!r}")
    return int(text)


def not_negative(text: str) -> float:
    """Return a finite number from 0."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0.0 <= found < float("inf"):
        raise ArgumentTypeError(f"expected a number of at least 0, found {text!r}")
    return found


def positive(text: str) -> float:
    """Return seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds < 1e9:
        raise ArgumentTypeError(f"expected seconds, found {text!r}")
    return seconds


def check_there(path: str) -> None:
    """Refuse a missing file before the job starts; does not wait for a pipe.

    Raises: OSError, CommandError
    """
    if not stat.S_ISREG(Path(path).stat().st_mode) and not is_vendor_model(path):
        raise CommandError(f"{path} is not a file", UNREADABLE)


def check_inputs(text: str) -> None:
    """Refuse inputs whose file is missing before the job starts.

    Args:
        text: as of ``--inputs``: generated, a file, or one or all samples of a data source

    Raises: OSError, CommandError
    """
    try:
        source = data_source(text)
    except DataSourceError as error:
        raise CommandError(str(error), USAGE) from error
    if source.path and not Path(source.path).is_dir():
        check_there(source.path)


def refused(error: FolderError) -> CommandError:
    """Return a folder that cannot be used as a reason to stop."""
    return CommandError(str(error), USAGE if error.usage else FAILED)


def finished(
    running: Running,
    progress: Progress,
    *,
    verbose: bool,
    stop: Callable[[], bool] | None = None,
) -> Outcome:
    """Follow a job to its end and close it.

    Args:
        running: the job
        progress: shows its messages
        verbose: write the details of a failure
        stop: asks the job to end with partial results, for the first Ctrl+C; returns whether it
            will. None to cancel it

    Raises: CommandError if it did not finish
    """
    try:
        outcome = _watched(running, progress, stop)
    finally:
        running.close()
    if outcome.ended is Ended.FINISHED:
        return outcome
    progress.write_warnings()
    if verbose and outcome.details:
        sys.stderr.write(outcome.details.rstrip("\n") + "\n")
    raise CommandError(outcome.sentence, _CODES.get(outcome.blame, FAILED))


def _watched(running: Running, progress: Progress, stop: Callable[[], bool] | None) -> Outcome:
    while running.outcome is None:
        try:
            progress.show(running.take(_STEP_SECONDS))
        except KeyboardInterrupt:
            if stop is None or not stop():
                raise
            progress.say("stopping after this run; Ctrl+C again cancels")
            stop = None
    progress.show(running.take())
    progress.end()
    return running.outcome


def program_in_folder(path: str) -> tuple[str, str]:
    """Return the one program in a folder, and its record if there is one; both empty for a file.

    Raises: CommandError if it holds no program, or several
    """
    folder = Path(path)
    if not path or not folder.is_dir() or is_vendor_model(folder):
        return "", ""
    found = sorted(path for end in ("*.pte", "*.bpte") for path in folder.glob(end))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise CommandError(f"{folder}: expected one program in the folder, found {names}", USAGE)
    records = sorted(folder.glob("*.etrecord"))
    return str(found[0]), str(records[0]) if len(records) == 1 else ""
