"""The steps of the walk: each by mouse or by keys, with what the window has to show then."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.walk.hands import RIGHT
from tests.walk.names import nameless
from tests.walk.screen_reader import Item, State
from tests.walk.walker import JOB_PATIENCE, Walker, WalkError

DRAWING = "canvas|chart"
_TABS = {
    "Look": (
        [
            "Overview",
            "Graph",
            "Timeline",
            "Memory",
            "Size",
            "Partitions",
            "Source",
            "Structure",
            "Roofline",
            "Tensor",
        ]
    ),
    "Change": ["Graph", "Recipe", "Stages", "Step", "Bisect", "Sweep", "Compile"],
    "Prove": ["Compare", "Numeric gap", "Tensor", "Evaluate", "Run", "Gates"],
}
_SAMPLE, _VARIANT = "keyword_spotter", "keyword_spotter_1"
_GROUP_KEYS = {group: f"ctrl+alt+{number}" for number, group in enumerate(_TABS, 1)}
_EDIT = r"^Keep (?!module ).* off XNNPACK$"  # of a node or a delegate, not of a module


@dataclass(frozen=True)
class Step:
    """One step; the same facts have to be seen whichever hand took it.

    Attributes:
        title: of report and screenshot
        by_mouse: takes the step with the pointer
        by_keys: takes it with the keyboard
        seen: waits for what has to be shown
    """

    title: str
    by_mouse: Callable[[Walker], object]
    by_keys: Callable[[Walker], object]
    seen: Callable[[Walker], object]


def _nothing(_walker: Walker) -> None:
    """Take no action."""


def _keys(*keys: str) -> Callable[[Walker], None]:
    return lambda walker: walker.hands.press(*keys)


def _click(role: str, name: str) -> Callable[[Walker], None]:
    return lambda walker: walker.click(walker.see(role, name))


# ---- the sample
def _sample_by_keys(walker: Walker) -> None:
    walker.tab_to("push button", "^Open the sample$")
    walker.hands.press("Return")


def _see_overview(walker: Walker) -> None:
    walker.see("frame", f"^{_SAMPLE} – ETScope$")
    walker.see("page tab", "^Overview$", "", State.SELECTED)
    walker.see("label", r"^\d[\d.]* [µm]s$")
    walker.see("label", "^What to do next$")


# ---- the graph
def drawing(walker: Walker, name: str, about: str = "") -> Item:
    """Wait for a drawing and return it."""
    return walker.see(DRAWING, f"^{name}$", about)


def _see_graph(walker: Walker) -> None:
    drawing(walker, "Graph", r"\d+ of \d+ nodes shown")
    walker.focus_on(DRAWING, "^Graph$")


def _select_by_mouse(walker: Walker) -> None:
    left, top, width, height = walker.reader.box(drawing(walker, "Graph"))
    for down in range(1, 20):
        for across in (30, 25, 35, 65):
            walker.hands.click(left + width * across // 100, top + height * down // 20)
            time.sleep(0.15)
            if walker.find(DRAWING, "^Graph$", "Selected: XNNPACK · delegate"):
                return
    raise WalkError("no click into the graph selects a delegate")


def _select_by_keys(walker: Walker) -> None:
    for key in ("Down", "Down", "Down", "Right", "Down", "Up"):
        walker.hands.press(key)
        time.sleep(0.4)
        if walker.find(DRAWING, "^Graph$", "Selected: XNNPACK · delegate"):
            return
    raise WalkError("no arrow key selects a delegate in the graph")


def _see_selection(walker: Walker) -> None:
    found = drawing(walker, "Graph", "Selected: XNNPACK")
    title = re.search(r"Selected: (XNNPACK · delegate \d+)", found.about)
    if title is None:
        raise WalkError(f"the graph does not name its selection: {found.about}")
    walker.see("label", f"^{title[1]}$")  # the head of the Node panel
    walker.see("label", "^mean time: ")
    walker.until(
        lambda: _heard(walker, title[1]),
        f"the announcement of {title[1]}; {walker.reader.announced}",
    )


def _heard(walker: Walker, words: str) -> bool:
    walker.reader.listen()
    return any(words in text for text in walker.reader.announced)


# ---- the edit
def _menu_entry(walker: Walker, name: str) -> Item | None:
    return next((one for one in walker.reader.menu() if re.search(name, one.name)), None)


def _choose_below(walker: Walker, opener: Item, name: str) -> None:
    """Choose an entry of the menu that was opened below an object."""
    time.sleep(0.5)
    left, top, width, height = walker.reader.box(opener)
    for down in range(1, 40):  # an entry is on the bus once the pointer was on one
        walker.hands.move(left + min(30, width // 2), top + height + 16 * down)
        if entry := _menu_entry(walker, name):
            walker.click(entry)
            return
    raise WalkError(f"the menu below {opener.name} has no {name}")


def _edit_by_mouse(walker: Walker) -> None:
    """Look for a delegate once more: the drawing is smaller since the panel of the node came."""
    left, top, width, height = walker.reader.box(drawing(walker, "Graph"))
    for down in range(2, 19):
        for across in (19, 54, 30):
            at = left + width * across // 100, top + height * down // 20
            walker.hands.click(*at, RIGHT)
            time.sleep(0.4)
            if entry := _edit_in_menu(walker, at):
                walker.click(entry)
                return
            walker.hands.press("Escape")
    raise WalkError("the menu of the box has no edit that keeps it off its delegate")


def _edit_in_menu(walker: Walker, at: tuple[int, int]) -> Item | None:
    """Return the edit of the menu that was opened, None if it has none."""
    for down in range(1, 40):  # an entry is on the bus once the pointer was on one
        walker.hands.move(at[0] + 40, at[1] + 20 * (down - 20))
        if entry := _menu_entry(walker, _EDIT):
            return entry
        if _menu_entry(walker, "^(Show everything|Keep module )"):  # of the ground or a module
            return None
    return None


def _edit_by_keys(walker: Walker) -> None:
    walker.hands.press("Menu")
    for _ in range(40):
        walker.hands.press("Down")
        focus = walker.reader.focus()
        if focus is not None and re.search(_EDIT, focus.name):
            walker.hands.press("Return")
            return
    raise WalkError("the menu of the box has no edit that keeps it off its delegate")


def _see_edit(walker: Walker) -> None:
    walker.see("push button", "^1 edit of the recipe, not compiled yet$", "deny (nodes|modules)")
    drawing(walker, "Graph", "edited")


# ---- the result
def _see_variant(walker: Walker) -> None:
    walker.see("frame", f"^{_VARIANT} – ETScope$", patience=JOB_PATIENCE)
    walker.see("page tab", "^Compare$", "", State.SELECTED)
    walker.see(
        "label",
        "^Verdict$",
        r"^C against A: .*(slower|faster|not distinguishable)",
        patience=JOB_PATIENCE,
    )


def _session(walker: Walker, name: str) -> None:
    walker.see("frame", f"^{name} – ETScope$")


def _sample_again_by_keys(walker: Walker) -> None:
    for _ in range(3):
        if walker.find("frame", f"^{_SAMPLE} – ETScope$"):
            return
        walker.hands.press("ctrl+Tab")
        time.sleep(0.5)


def _gap_by_mouse(walker: Walker) -> None:
    walker.click(walker.see("list item", f"^A, {_SAMPLE},"))
    _session(walker, _SAMPLE)
    walker.click(walker.see("page tab", "^Numeric gap$"))
    walker.click(walker.see("push button", "^Compare"))


def _gap_by_keys(walker: Walker) -> None:
    _sample_again_by_keys(walker)
    walker.hands.press("alt+2")
    walker.see("page tab", "^Numeric gap$", "", State.SELECTED)
    walker.tab_to("push button", "^Compare")
    walker.hands.press("Return")


def _see_gap(walker: Walker) -> None:
    _session(walker, _SAMPLE)
    walker.see(
        "chart", "^Error along the program$", r"^\d+ outputs, the largest", patience=JOB_PATIENCE
    )
    walker.see("table", "^numeric gaps$")


# ---- other views
def _timeline_by_mouse(walker: Walker) -> None:
    walker.click(walker.see("check box|toggle button", "^Look$"))
    walker.click(walker.see("page tab", "^Timeline$"))
    found = drawing(walker, "Timeline", "events in")
    left, top, width, _ = walker.reader.box(found)
    for down in range(60, 140, 10):
        walker.hands.click(left + width // 4, top + down)
        time.sleep(0.2)
        if walker.find(DRAWING, "^Timeline$", "Selected: "):
            return


def _timeline_by_keys(walker: Walker) -> None:
    walker.hands.press("ctrl+alt+1")
    walker.see("page tab", "^Timeline$")
    walker.hands.press("alt+3")
    walker.focus_on(DRAWING, "^Timeline$")
    walker.hands.press("j")  # the slowest call


def _see_timeline(walker: Walker) -> None:
    walker.see("page tab", "^Timeline$", "", State.SELECTED)
    drawing(walker, "Timeline", r"\d+ events in \d+ lanes.* Selected: ")
    walker.focus_on(DRAWING, "^Timeline$")


def _palette_command(words: str) -> Callable[[Walker], None]:
    def run(walker: Walker) -> None:
        walker.hands.press("ctrl+shift+p")
        walker.typing()
        walker.hands.write(words)
        time.sleep(0.4)
        walker.hands.press("Return")

    return run


def _see_jobs(walker: Walker) -> None:
    def listed() -> bool:  # the rows come after the table
        jobs = walker.see("table|tree table|tree|list", "[Jj]obs")
        words = " ".join(one.name for one in jobs.walk()).lower()
        return all(job in words for job in ("compile", "run"))

    walker.until(listed, "a compile and a run among the jobs")


def _guide_by_mouse(walker: Walker) -> None:
    """Press the button of the panel, or choose it in the menu that takes its place."""
    role, names = "check box|.*button.*", ("^Panel Guide$", "^Panels$")

    def look() -> Item | None:
        return next((one for name in names if (one := walker.find(role, name))), None)

    button = walker.until(look, "the button of the guide")
    walker.click(button)
    if button.name == "Panels":  # the tabs need the room
        _choose_below(walker, button, "^Guide$")


def _see_guide(walker: Walker) -> None:
    walker.see("text|entry", "guide")
    walker.see("text|label|document.*", "^Section of the guide$")


def _palette_by_mouse(walker: Walker) -> None:
    walker.click(walker.see("push button", "^Find node, operator, module$"))
    _choose_in_palette(walker)


def _palette_by_keys(walker: Walker) -> None:
    walker.hands.press("ctrl+p")
    _choose_in_palette(walker)


def _choose_in_palette(walker: Walker) -> None:
    walker.typing()
    walker.hands.write("aten_cumsum_default")
    time.sleep(0.6)
    walker.hands.press("Return")


def _see_found(walker: Walker) -> None:
    drawing(walker, ".*", "Selected: .*cumsum")


# ---- all views
def _every_view(show_group: Callable[[Walker, str], None]) -> Callable[[Walker], None]:
    def visit(walker: Walker) -> None:
        found: list[str] = []
        for group, tabs in _TABS.items():
            show_group(walker, group)
            shown = [one.name for one in walker.items() if one.role == "page tab"]
            missing = [tab for tab in tabs if not any(one.startswith(tab) for one in shown)]
            if missing:
                raise WalkError(f"{group} has no tab {missing}: {shown}")
            for tab in (one for one in walker.items() if _is_view(one, tabs)):
                key = re.search(r"Alt\+(\d)", tab.about)
                if key is None:  # the eleventh and later ones
                    _palette_command(tab.name)(walker)
                else:
                    walker.hands.press(f"alt+{key[1]}")
                walker.see("page tab", f"^{re.escape(tab.name)}$", "", State.SELECTED)
                time.sleep(0.3)
                found += nameless(walker.items(), f"{group}, {tab.name}")
        if found:
            raise WalkError("focusable without a name or role:\n" + "\n".join(dict.fromkeys(found)))

    return visit


def _is_view(item: Item, tabs: list[str]) -> bool:
    """Return whether an object is a tab in the row of the views."""
    row = item.parent.children if item.parent is not None and item.role == "page tab" else []
    return bool({one.name for one in row} & set(tabs[:1]))


def _group_by_mouse(walker: Walker, group: str) -> None:
    walker.click(walker.see("check box|toggle button", f"^{group}$"))
    walker.see("check box|toggle button", f"^{group}$", "", State.CHECKED)


def _group_by_keys(walker: Walker, group: str) -> None:
    walker.hands.press(_GROUP_KEYS[group])
    walker.see("check box|toggle button", f"^{group}$", "", State.CHECKED)


def _see_names(walker: Walker) -> None:
    found = nameless(walker.items(hidden=True), "the whole tree")
    if found:
        raise WalkError("focusable without a name or role:\n" + "\n".join(found))


def _quit_by_mouse(walker: Walker) -> None:
    menu = walker.see("menu item", "^File$")
    walker.click(menu)
    _choose_below(walker, menu, "^Quit$")


def _see_end(walker: Walker) -> None:
    over = time.monotonic() + 30
    while walker.process.poll() is None:
        if time.monotonic() > over:
            raise WalkError("the program does not quit")
        time.sleep(0.1)
    if walker.process.returncode or walker.complaints:
        raise WalkError(f"it ended with {walker.process.returncode}:\n{walker.complaints}")


STEPS = (
    Step("Start", _nothing, _nothing, lambda walker: walker.see("push button", "Open the sample")),
    Step("Overview", _click("push button", "^Open the sample$"), _sample_by_keys, _see_overview),
    Step("Graph", _click("page tab", "^Graph$"), _keys("alt+2"), _see_graph),
    Step("Node", _select_by_mouse, _select_by_keys, _see_selection),
    Step("Edit", _edit_by_mouse, _edit_by_keys, _see_edit),
    Step("Compare", _click("push button", "^Recompile"), _keys("ctrl+r"), _see_variant),
    Step("Numeric gap", _gap_by_mouse, _gap_by_keys, _see_gap),
    Step("Timeline", _timeline_by_mouse, _timeline_by_keys, _see_timeline),
    Step(
        "Jobs",
        _click("check box|toggle button", "^Jobs"),
        _palette_command("panel jobs"),
        _see_jobs,
    ),
    Step("Guide", _guide_by_mouse, _keys("F1"), _see_guide),
    Step("Palette", _palette_by_mouse, _palette_by_keys, _see_found),
    Step("Every view", _every_view(_group_by_mouse), _every_view(_group_by_keys), _see_names),
    Step("Quit", _quit_by_mouse, _keys("ctrl+q"), _see_end),
)


def walked(walker: Walker, *, keys: bool) -> Iterator[str]:
    """Walk all steps and iterate over their titles as they are done.

    Raises: WalkError when a step does not show what it has to show
    """
    for step in STEPS:
        try:
            (step.by_keys if keys else step.by_mouse)(walker)
            step.seen(walker)
        except WalkError as error:
            walker.failed(step.title)
            raise WalkError(f"{step.title}: {error}") from error
        walker.done(step.title)
        yield step.title
