"""What to do next with a session: up to three actions, each with its expected gain."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from enum import Enum

from inspector.files.language_model import no_language_model
from inspector.files.session import EXPORTED, Session
from inspector.findings.attempts import can_try, command_of, edit_words, known_job, recipe_command
from inspector.findings.finding import Finding, Tone
from inspector.findings.session import findings
from inspector.profile.methods import why_no_events
from inspector.roofline.rows import known_limits

MOST = 3
_COMPILED = "-o", "compiled"
_GAINS = 2  # of the actions at most: the others show what else can be done
CHANGE_HERE = (
    "The program can be changed here: a right click on a node, an operator or a partition offers"
    " changes of its recipe with their effect, and Ctrl+R compiles, runs and compares it."
)
CHANGE_WITH_RECORD = (
    "The program can be changed and compiled here once its ETRecord is open beside it, or its"
    " recipe.json lies in its folder."
)


class NextAction(str, Enum):
    """Kinds of actions."""

    TRY = "try"  # the edits of a finding, previewed
    OPEN = "open"  # a file beside those that are open
    COMPILE = "compile"  # what was only exported, or what a record alone is of
    RUN = "run"  # the program, for its times
    GENERATE = "generate"  # text, for what a language model is run with
    VALUES = "values"  # run it with values and compare them with the record
    COMPARE = "compare"  # with the session beside it
    CALIBRATE = "calibrate"  # this machine
    SHOW = "show"  # the view of a finding


@dataclass(frozen=True, slots=True)
class NextStep:
    """One action.

    Attributes:
        action: its kind
        text: the action in words
        brings: its expected gain
        command: the same on the terminal, empty where it has none
        view: that the action leads to, empty for a file to open
        finding: whose edits are tried or whose view is shown, or None
    """

    action: NextAction
    text: str
    brings: str
    command: str = ""
    view: str = ""
    finding: Finding | None = None


def next_steps(
    session: Session, *, beside: str = "", values_compared: bool = False
) -> tuple[NextStep, ...]:
    """Return the actions that would bring most: at most three.

    Args:
        session: the session shown
        beside: name of another one open beside it that was not measured, empty for none
        values_compared: whether its values have been compared with its record
    """
    what = "whether it is faster, slower or not distinguishable, with size, memory and error"
    words = f"Measure it beside {beside}"
    first = [NextStep(NextAction.COMPARE, words, what, view="compare")] if beside else []
    done = [NextAction.VALUES] if values_compared else []
    steps = [one for one in _candidates(session, first) if one.action not in done]
    return tuple(steps[:MOST])


def change_words(session: Session) -> str:
    """Return how the program of a session can be changed, empty without a program or record."""
    if known_job(session) is not None:
        return CHANGE_HERE
    return CHANGE_WITH_RECORD if session.program is not None else ""


def _candidates(session: Session, first: list[NextStep]) -> list[NextStep]:
    """Return all actions, those that would bring most first."""
    costly = [one for one in findings(session) if one.edits or one.saved]
    gains = [_gain(session, one) for one in costly if one.saved or can_try(session, one)][:_GAINS]
    # edits that keep a program from failing or figures from misleading come before anything else
    urgent = [one for one in gains if one.finding is not None and one.finding.doubt]
    others = [one for one in gains if one not in urgent]
    steps = [*urgent, *_absent(session), *first, *others, *_more(session)]
    known = [one.finding for one in gains]
    return [*steps, *(one for one in _shown(session) if one.finding not in known)]


def _gain(session: Session, finding: Finding) -> NextStep:
    """Return the edits of a finding to try, else the place where it costs."""
    brings = "; ".join(filter(None, (finding.saved, _lowered(finding.text))))
    if can_try(session, finding):
        words = f"Try it: {edit_words(finding.edits)}"
        command = command_of(session, finding)
        return NextStep(NextAction.TRY, words, brings, command, finding.view, finding)
    view = finding.view
    words = f"Look at {view.capitalize()}"
    if view == "operators" and finding.event is not None:
        view, words = "graph", "See what is not delegated, and why"
    return NextStep(NextAction.SHOW, words, brings, view=view, finding=replace(finding, view=view))


def _lowered(text: str) -> str:
    """Return a sentence for the middle of another one; names keep their letters."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _absent(session: Session) -> list[NextStep]:
    """Return the actions that would add the missing files, the ones that add most first."""
    found: list[NextStep] = []
    exported = _exported_path(session)
    if exported and known_job(session) is not None:
        found.append(_compile(shlex.join(["etscope", "compile", exported, *_COMPILED])))
    if session.program is None:
        what = "instructions, memory plan, delegates, sizes, and running it here"
        found.append(NextStep(NextAction.OPEN, "Open the program (.pte) beside it", what))
        command = "" if exported else recipe_command(session, *_COMPILED)
        found += [_compile(command)] if command else []
    elif not session.dumps and not no_language_model(session.program):
        what = "tokens and their speed, and times, state and values of each call"
        text = "Generate text"
        command = _command(session, "llm", "run", "PROGRAM", "--prompt", "Once upon a time")
        found.append(NextStep(NextAction.GENERATE, text, what, command, "generate"))
    elif not session.dumps:
        what = "times of every operator and delegate, and memory as measured"
        text = "Run the program"
        found.append(NextStep(NextAction.RUN, text, what, _run_command(session), "run"))
    elif session.times_with_values:
        what = "times of operators and delegates without the logging of values, which these include"
        text = "Run the program again"
        found.append(NextStep(NextAction.RUN, text, what, _run_command(session), "run"))
    if session.record is None and not exported:
        what = "source lines, modules and names, and changing the program here"
        found.append(NextStep(NextAction.OPEN, "Open its ETRecord (.etrecord) beside it", what))
    return found


def _compile(command: str) -> NextStep:
    what = "a program with its memory plan, delegates and sizes, which runs here"
    return NextStep(NextAction.COMPILE, "Compile it", what, command, "recipe")


def _exported_path(session: Session) -> str:
    """Return the file of an exported program that was not compiled, empty for any other session."""
    if session.program is not None:
        return ""
    return next((file.path for file in session.files if file.kind == EXPORTED), "")


def _more(session: Session) -> list[NextStep]:
    """Return the actions on existing files."""
    found: list[NextStep] = []
    if session.program is not None and session.record is not None:
        logged = session.debug_buffer is not None
        text = "Compare the logged values" if logged else "Run it with values and compare"
        what = "the error of every operator beside the recorded graph, inside delegates too"
        found.append(NextStep(NextAction.VALUES, text, what, view="gap"))
    timed = session.timed_dumps and not session.times_with_values and not why_no_events(session)
    if timed and known_limits(session).missing:
        what = "how far each operator is from the limit of this machine"
        command = shlex.join(["etscope", "roofline", *_paths(session), "--calibrate"])
        text = "Calibrate this machine"
        found.append(NextStep(NextAction.CALIBRATE, text, what, command, "roofline"))
    return found


def _shown(session: Session) -> list[NextStep]:
    """Return the views of findings that need a look, then of the others."""
    own = [one for one in findings(session) if one.view != "overview" and not one.edits]
    own.sort(key=lambda one: one.tone not in (Tone.BAD, Tone.WARN))
    return [
        NextStep(
            NextAction.SHOW,
            f"Look at {one.view.capitalize()}",
            _lowered(one.text),
            view=one.view,
            finding=one,
        )
        for one in own
    ]


def _paths(session: Session) -> list[str]:
    return [one.path for one in session.files if one.kind != "debug_buffer"]


def _run_command(session: Session) -> str:
    return _command(session, "run", "PROGRAM", "-o", "run")


def _command(session: Session, *words: str) -> str:
    """Return a command with the path of the program in the place of PROGRAM, empty without one."""
    path = next((one.path for one in session.files if one.kind in ("pte", "bpte")), "")
    placed = (path if word == "PROGRAM" else word for word in words)
    return shlex.join(["etscope", *placed]) if path else ""
