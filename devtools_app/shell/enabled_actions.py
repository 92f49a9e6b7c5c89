"""Which actions of the table can be used, and which are on."""

from __future__ import annotations

from collections.abc import Collection

from devtools_app.actions.table import Actions
from devtools_app.sample_data import MODULE
from devtools_app.state.state import State
from devtools_app.state.tab_groups import TabGroup
from devtools_app.state.variant_steps import shown_variant

_OF_A_SESSION = (
    "reload",
    "close_session",
    "add_files",
    "goto",
    "bookmark",
    "clear",
    "colour_by_file",
    "recompile",
)
_OF_SESSIONS = ("save_workspace", "save_workspace_as", "colleague")
_OF_A_VARIANT = ("change", "copy_python", "copy_command")
_OF_THE_SAMPLE = ("sample", "tour")
_GROUPS = {
    TabGroup.LOOK: "look",
    TabGroup.CHANGE: "change_program",
    TabGroup.PROVE: "prove",
}


def enable_actions(bound: Actions, state: State) -> None:
    """Enable the actions that a state allows."""
    variant = shown_variant(state)
    allowed = {
        **dict.fromkeys(_OF_A_SESSION, state.open_session is not None),
        **dict.fromkeys(_OF_SESSIONS, bool(state.sessions)),
        **dict.fromkeys(_OF_A_VARIANT, variant is not None),
        "next_session": len(state.sessions) > 1,
        "back": bool(state.past),
        "forward": bool(state.future),
        "undo": variant is not None and bool(variant.draft.past),
        "redo": variant is not None and bool(variant.draft.future),
    }
    for name, on in allowed.items():
        bound[name].setEnabled(on)


def check_groups(bound: Actions, shown: TabGroup, groups: Collection[TabGroup]) -> None:
    """Show the actions of the groups of tabs that there are, and which is in front."""
    for group, name in _GROUPS.items():
        bound[name].setVisible(group in groups)
        bound[name].setChecked(group is shown)


def offer_sample(bound: Actions) -> None:
    """Show the actions of the sample where it is installed."""
    for name in _OF_THE_SAMPLE:
        bound[name].setVisible(MODULE.is_file())
