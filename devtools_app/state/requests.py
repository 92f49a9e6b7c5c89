"""Requests of views to the window: each is data, never a widget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from devtools_app.state.state import Place
from inspector.tables.selection import NOTHING, Selection

if TYPE_CHECKING:
    from inspector.experiments.sweeps.request import SweepRequest
    from inspector.jobs.bisect import BisectJob
    from inspector.jobs.executing import ExecutingJob
    from inspector.recipes.compile_job import CompileJob


@dataclass(frozen=True, slots=True)
class Select:
    """Select this; the step is remembered for Back.

    Attributes:
        selection: the new selection
        view: view to bring to the front, or empty
    """

    selection: Selection = NOTHING
    view: str = ""


@dataclass(frozen=True, slots=True)
class GoTo:
    """Go to a place, possibly of another session; the step is remembered for Back."""

    place: Place


@dataclass(frozen=True, slots=True)
class ShowView:
    """Bring a view to the front and give it the focus.

    Attributes:
        view: its name
        begin: start the job of the view as well, if it has one
    """

    view: str
    begin: bool = False


@dataclass(frozen=True, slots=True)
class ShowTensor:
    """Show a tensor by its key in the view of tensors."""

    key: str


@dataclass(frozen=True, slots=True)
class ShowLosses:
    """Compare the values of a quantized session with its float program, and show the gap.

    Attributes:
        session: its id
        reference: name of the float program among the graphs to compare with
    """

    session: str
    reference: str


@dataclass(frozen=True, slots=True)
class OpenPaths:
    """Open files and folders together as one session."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenVariant:
    """Open the files of a variant as one session; the view in front stays."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenAlone:
    """Read the session shown again, with this file only."""

    path: str


@dataclass(frozen=True, slots=True)
class ChooseTicks:
    """Read the traces of a session in this unit, now and whenever they are opened again."""

    session: str
    unit: str


@dataclass(frozen=True, slots=True)
class Reload:
    """Read the files of a session again; with ``partial`` without those that are lost."""

    session: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class TrustCode:
    """Trust the code in files until the program ends, then handle a request.

    Attributes:
        paths: Python files and libraries
        then: the request that runs them
    """

    paths: tuple[str, ...]
    then: Request


@dataclass(frozen=True, slots=True)
class LocateFiles:
    """Ask for the folder with the files of the last workspace that were not found."""


@dataclass(frozen=True, slots=True)
class ChooseFiles:
    """Ask the user for files and open them; with ``beside`` they join the session shown."""

    beside: bool = False


@dataclass(frozen=True, slots=True)
class ShowSession:
    """Show another open session.

    Attributes:
        session: its id
        view: view to bring to the front then, or empty
    """

    session: str
    view: str = ""


@dataclass(frozen=True, slots=True)
class CompareSessions:
    """Show two sessions beside each other, and switch to the second.

    Attributes:
        former: id of the baseline
        session: id of the other one
    """

    former: str
    session: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close a session."""

    session: str


@dataclass(frozen=True, slots=True)
class OpenSource:
    """Open a source file of a stack trace in the user's editor.

    Attributes:
        file: path as recorded in the trace
        line: line number from 1
    """

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class AddSourceRoot:
    """Ask the user for a folder with source files of stack traces."""


@dataclass(frozen=True, slots=True)
class AskCompile:
    """Ask the user what to compile."""


@dataclass(frozen=True, slots=True)
class ShowDisk:
    """Show what runs and variants take on the disk."""


@dataclass(frozen=True, slots=True)
class Execute:
    """Run, verify or bundle in a separate process.

    Attributes:
        job: the request
        session: id of its session
        target: folder or file it writes, may be empty
    """

    job: ExecutingJob
    session: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class AskBundle:
    """Ask the user for the contents of a bundled program.

    Attributes:
        program: path of the program
        session: id of its session
        methods: of the program
    """

    program: str
    session: str
    methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EditRecipe:
    """Set the recipe for the next variant of the current program.

    Attributes:
        job: the recipe
        message: for the status line, may be empty
    """

    job: CompileJob
    message: str = ""


@dataclass(frozen=True, slots=True)
class UndoRecipe:
    """Undo the last edit of the recipe; with ``again`` do it once more."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class Recompile:
    """Recompile by the current recipe, run and compare with the previous variant."""


@dataclass(frozen=True, slots=True)
class Bisect:
    """Search the smallest set of nodes to remove from the delegates of the program shown.

    Attributes:
        job: the request
        fresh: start over instead of resuming the earlier trials
    """

    job: BisectJob
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class StartSweep:
    """Compile a recipe with all combinations of some of its fields.

    Attributes:
        request: the sweep
        target: folder of its files; a sweep that is in it is continued
    """

    request: SweepRequest
    target: str


class JobAction(str, Enum):
    """Actions on a job of the history."""

    AGAIN = "again"
    OPEN = "open"
    FOLDER = "folder"
    COPY = "copy"
    CLEAN = "clean"  # asks first
    REMOVE = "remove"  # the answer
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class DoWithJob:
    """Do something with a job of the history.

    Attributes:
        job: its id
        what: the action
    """

    job: str
    what: JobAction


@dataclass(frozen=True, slots=True)
class SetNote:
    """Replace the notes about a session."""

    session: str
    text: str


@dataclass(frozen=True, slots=True)
class ShowStatus:
    """Show a short sentence in the status line for a few seconds."""

    text: str


Request = (
    Select
    | GoTo
    | ShowView
    | ShowTensor
    | ShowLosses
    | OpenPaths
    | OpenVariant
    | ChooseFiles
    | LocateFiles
    | ShowSession
    | CompareSessions
    | CloseSession
    | OpenSource
    | AddSourceRoot
    | AskCompile
    | ShowDisk
    | Execute
    | AskBundle
    | EditRecipe
    | UndoRecipe
    | OpenAlone
    | Reload
    | ChooseTicks
    | TrustCode
    | Recompile
    | Bisect
    | StartSweep
    | DoWithJob
    | SetNote
    | ShowStatus
)
Ask = Callable[[Request], None]


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the user, shown above the views.

    Attributes:
        text: one or two sentences
        tone: info, warning or error
        details: further text to copy
        offers: labels of buttons and their requests
        decline: of a question the label of the button that does nothing, else empty
        session: id of the one it belongs to, empty for that in front
        until_read: whether it ends when the session is read again
        leaves: whether it ends when another session comes to the front
    """

    text: str
    tone: str = "info"
    details: str = ""
    offers: tuple[tuple[str, Request], ...] = ()
    decline: str = ""
    session: str = ""
    until_read: bool = False
    leaves: bool = False
