"""The names that the fields of a recipe offer: of the program shown, and of its toolchain."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.computed import Computed
from devtools_app.state.state import State
from devtools_app.viewmodels.field_choices import (
    FieldChoice,
    Vocabulary,
    partitioner_choices,
    quantizer_choices,
    vocabulary,
)
from inspector.recipes.compile_job import CompileJob
from inspector.toolchain.listing import ListingError
from inspector.toolchain.table import toolchain_named

if TYPE_CHECKING:
    from inspector.files.session import Session


_LISTING = FieldChoice("…", "the partitioners of the toolchain are being listed", usable=False)


class FieldNamesKnown(QObject):
    """Collects names in threads.

    Signals:
        changed(): more names are known
    """

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.known = Vocabulary()
        self._toolchain: tuple[str, str] | None = None
        self._program: Computed[Vocabulary] = Computed("names of the program", self)
        self._partitioners: Computed[tuple[FieldChoice, ...]] = Computed("partitioners", self)
        self._quantizers: Computed[tuple[FieldChoice, ...]] = Computed("quantizers", self)
        self._quantizers.ready.connect(lambda _key: self._ready())
        self._program.ready.connect(lambda _key: self._ready())
        self._partitioners.ready.connect(lambda _key: self._ready())
        self._last: tuple[State | None, CompileJob | None] = (None, None)

    def set_functions(self, functions: tuple[str, ...]) -> None:
        """Offer the functions of a source."""
        self._know(replace(self.known, functions=functions))

    def ask(
        self, job: CompileJob, touched: Collection[str] = (), state: State | None = None
    ) -> None:
        """Offer the names for a recipe.

        Args:
            job: the recipe
            touched: fields that the user has changed: an interpreter that a file names is not
                started
            state: of the window, for the names in the program shown
        """
        self._last = (state, job)
        python = job.python if toolchain_named(job.toolchain).has_interpreter else ""
        if not python or "python" in touched:
            self._toolchain = (job.toolchain, python)
        self._ready()

    def _ready(self) -> None:
        state, job = self._last
        known = self.known
        shown = state.open_session if state is not None else None
        if state is not None and shown is not None:
            session, method = shown.session, state.method
            found = self._program.ask(
                (shown.id, shown.revision, method), lambda _token: _program(session, method)
            )
            if found is not None:
                known = replace(
                    found,
                    partitioners=known.partitioners,
                    quantizers=known.quantizers,
                    functions=known.functions,
                )
        if job is not None and self._toolchain is not None:
            toolchain, python = self._toolchain
            choices = self._partitioners.ask(
                self._toolchain, lambda _token: _choices(toolchain, python)
            )
            known = replace(known, partitioners=(_LISTING,) if choices is None else choices)
        quantizers = self._quantizers.ask("all", lambda _token: quantizer_choices())
        self._know(replace(known, quantizers=quantizers or ()))

    def _know(self, known: Vocabulary) -> None:
        if known != self.known:
            self.known = known
            self.changed.emit()

    def close(self) -> None:
        """Stop computing."""
        self._program.close()
        self._partitioners.close()
        self._quantizers.close()


def _program(session: Session, method: str) -> Vocabulary:
    return vocabulary(session, method)


def _choices(toolchain: str, python: str) -> tuple[FieldChoice, ...]:
    """Return the partitioners of a toolchain; where they cannot be listed, why."""
    try:
        return partitioner_choices(toolchain, python)
    except ListingError as error:
        return (FieldChoice("not listed", str(error), usable=False),)
