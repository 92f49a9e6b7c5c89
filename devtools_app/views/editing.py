"""Recipe edits in the context menus of views; pointing at one previews its effect."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QLabel, QMenu, QWidget, QWidgetAction

from devtools_app.state.requests import EditRecipe, Select, ShowView
from devtools_app.state.variant_steps import shown_variant
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.item_panel import ItemPanel
from inspector.tables.selection import Selection

if TYPE_CHECKING:
    from devtools_app.viewmodels.edit_targets import Offer, OfferGroup
    from inspector.findings.finding import Finding
    from inspector.recipes.compile_job import CompileJob

_WIDTH = 380
_LINES, _LONGEST = 4, 200  # that the line at the end has room for, in lines and in characters
_POINT = "Point at a change to preview its effect on the partitions"


class EditMenu(QObject):
    """Fills a menu and shares its lifetime.

    The nearest target comes first and flat, the others are submenus; the last line shows
    the effect of the edit under the pointer, as soon as it is known.
    """

    def __init__(
        self, menu: QMenu, groups: tuple[OfferGroup, ...], base: CompileJob, context: ViewContext
    ) -> None:
        """Fill a menu.

        Args:
            menu: the menu
            groups: the edits, the nearest target first
            base: the recipe they change
            context: previews the edits and receives the chosen one
        """
        super().__init__(menu)
        self._previews = context.jobs.previews
        self._base = base
        self._ask = context.ask
        self._offers: dict[QAction, Offer] = {}
        self._pointed: Offer | None = None
        self.effect = _label()
        for number, group in enumerate(groups):
            self._add(menu, group, flat=number == 0)
        menu.addSeparator()
        last = QWidgetAction(menu)
        last.setDefaultWidget(self.effect)
        menu.addAction(last)
        menu.hovered.connect(self._hovered)
        self._previews.changed.connect(self._show_effect)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Return the edits in the menu, in its order."""
        return tuple(self._offers.values())

    def action_of(self, name: str, kind: str) -> QAction:
        """Return the line of an edit on a kind of target.

        Raises: KeyError when it is not offered
        """
        for action, offer in self._offers.items():
            if offer.edit.name == name and offer.target.kind.value == kind:
                return action
        raise KeyError(name)

    def _add(self, menu: QMenu, group: OfferGroup, *, flat: bool) -> None:
        title = group.title.replace("&", "&&")
        if flat:
            heading = menu.addAction(title)
            heading.setEnabled(False)  # style sheets leave the words of a section out
            inside = menu
        else:
            inside = menu.addMenu(title)
            inside.hovered.connect(self._hovered)
        choices: dict[str, QMenu] = {}
        for offer in group.offers:
            name = offer.family
            if name and name not in choices:
                choices[name] = inside.addMenu(name.replace("&", "&&"))
                choices[name].hovered.connect(self._hovered)
            self._add_offer(choices[name] if name else inside, offer)

    def _add_offer(self, menu: QMenu, offer: Offer) -> None:
        text = offer.edit.choice if offer.family else offer.label.replace("&", "&&")
        action = QAction(text, menu)
        action.setToolTip(offer.described)
        action.triggered.connect(lambda _on=False: self._choose(offer))
        menu.addAction(action)
        self._offers[action] = offer

    def _choose(self, offer: Offer) -> None:
        self._ask(EditRecipe(offer.job, f"{offer.described}: press Ctrl+R to recompile"))

    def _hovered(self, action: QAction) -> None:
        self.point_at(self._offers.get(action))

    def point_at(self, offer: Offer | None) -> None:
        """Preview an edit."""
        self._pointed = offer
        if self._pointed is not None:
            self._previews.ask(self._pointed.job, self._base)
        self._show_effect()

    def _show_effect(self) -> None:
        offer = self._pointed
        text = _POINT if offer is None else self._previews.effect(offer.job, self._base)
        self.effect.setToolTip(text if len(text) > _LONGEST else "")
        self.effect.setText(shortened(f"{text[:1].upper()}{text[1:]}", _LONGEST))


def _label() -> QLabel:
    """Return the effect of an edit as text; a menu keeps its size while it is open."""
    label = QLabel(_POINT)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setContentsMargins(8, 4, 8, 6)
    label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
    label.setFixedSize(_WIDTH, _LINES * label.fontMetrics().lineSpacing() + 12)
    return label


def shortened(text: str, longest: int) -> str:
    """Return a sentence truncated between words to a length."""
    if len(text) <= longest:
        return text
    return f"{text[:longest].rpartition(' ')[0]}…"


def offer_edits_of_rows(panel: ItemPanel, context: ViewContext) -> None:
    """Offer, in the menu of a table or tree, the edits on the selections of its rows."""

    def more(menu: QMenu, key: Hashable) -> None:
        if isinstance(key, Selection):
            add_tensors(menu, key, context)
            _add_edits(menu, key, context)

    panel.more_actions = more


def add_tensors(menu: QMenu, selection: Selection, context: ViewContext) -> None:
    """Offer to show the tensors of a selection."""
    from devtools_app.viewmodels.selected_tensors import may_have_tensors

    session = context.store.state.session
    if session is not None and may_have_tensors(session, selection):
        menu.addAction("Show in Tensor", partial(context.ask, Select(selection, "tensor")))
        menu.addSeparator()


def edits_menu(parent: QWidget, selection: Selection, context: ViewContext) -> QMenu:
    """Return a menu with the edits of a selection."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.setToolTipsVisible(True)
    _add_edits(menu, selection, context)
    if menu.isEmpty():
        nothing = menu.addAction("No recipe edits available here")
        nothing.setEnabled(False)
    return menu


def named_menu(parent: QWidget, name: str) -> QMenu:
    """Return a menu whose first line is the name of what was clicked."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.setToolTipsVisible(True)
    menu.addAction(name.replace("&", "&&")).setEnabled(False)
    return menu


def item_menu(
    parent: QWidget,
    name: str,
    selection: Selection,
    here: str,
    context: ViewContext,
    module: str = "",
) -> QMenu:
    """Return a menu of the clicked item: its name, where else it is shown, edits if it has any.

    Args:
        parent: of the menu
        name: of what was clicked, its first line
        selection: what was clicked, empty for what no other view knows
        here: name of the view it was clicked in
        context: of the view
        module: path of the module that was clicked, in place of a selection
    """
    menu = named_menu(parent, name)
    menu.addAction("Copy the name", lambda: QGuiApplication.clipboard().setText(name))
    menu.addSeparator()
    places = [
        menu.addAction(f"Show in {title}", partial(context.ask, ShowView(view)))
        for view, title in _places(selection, context)
        if view != here
    ]
    menu.aboutToShow.connect(lambda: fold_to_fit(menu, "Show in", places))
    menu.addSeparator()
    _add_edits(menu, selection, context, module)
    return menu


def fold_to_fit(menu: QMenu, title: str, actions: list[QAction]) -> None:
    """Move actions into a submenu where the screen is too low for all of a menu in one column.

    Their labels begin with the title of the submenu, which does not repeat it.
    """
    shown = [one for one in menu.actions() if one.isVisible()]
    columns = {menu.actionGeometry(one).left() for one in shown}
    if len(columns) == 1 or not actions or actions[0] not in shown:
        return
    inner = QMenu(title, menu)
    menu.insertMenu(actions[0], inner)
    for one in actions:
        menu.removeAction(one)
        one.setText(one.text().removeprefix(title).strip())
        inner.addAction(one)


def _places(selection: Selection, context: ViewContext) -> list[tuple[str, str]]:
    """Return the views that show something of the selection: their names and titles."""
    from devtools_app.viewmodels.scene_search import related_to
    from devtools_app.viewmodels.selected_tensors import may_have_tensors
    from inspector.profile.join_index import join_index

    state = context.store.state
    if state.session is None or not selection:
        return []
    found = related_to(selection, join_index(state.session, selection.method or state.method))
    shown = {
        ("graph", "Graph"): found.nodes,
        ("timeline", "Timeline"): found.events,
        ("memory", "Memory"): found.values or found.reads,
        ("tensor", "Tensor"): may_have_tensors(state.session, selection),
        ("operators", "Operators"): found.events or found.nodes,
        ("node", "Node"): True,
    }
    return [place for place, there in shown.items() if there]


def show_edits(parent: QWidget, at: QPoint, selection: Selection, context: ViewContext) -> QMenu:
    """Show the edits of a selection at a position of a widget; return the menu."""
    menu = edits_menu(parent, selection, context)
    menu.popup(parent.mapToGlobal(at))
    return menu


def show_finding_edits(
    parent: QWidget, at: QPoint, finding: Finding, context: ViewContext
) -> QMenu:
    """Show the edits of a finding at a position of a widget, previewed; return the menu."""
    from devtools_app.viewmodels.finding_links import finding_offers

    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    one = shown_variant(context.store.state)
    groups = finding_offers(finding, one.draft.present) if one is not None else ()
    if one is None or not groups:
        text = "The recipe has it already" if one is not None else "No recipe is known to change"
        menu.addAction(text).setEnabled(False)
    else:
        base = one.draft.present
        filled = EditMenu(menu, groups, base, context)
        filled.point_at(filled.offers[0])  # the preview needs no pointer: there is one edit
    menu.popup(parent.mapToGlobal(at))
    return menu


def _add_edits(menu: QMenu, selection: Selection, context: ViewContext, module: str = "") -> None:
    from devtools_app.viewmodels.edit_targets import edit_targets, module_targets, offers

    state = context.store.state
    one = shown_variant(state)
    if one is None or state.session is None:
        return
    base = one.draft.present
    method = selection.method or state.method
    targets = module_targets(module) or edit_targets(state.session, method, selection)
    groups = offers(base, targets)
    if groups:
        context.jobs.previews.ask(base, base)  # the worker gets warm while the edits are read
        EditMenu(menu, groups, base, context)
