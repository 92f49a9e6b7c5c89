"""Errors of the outputs of several programs on the same inputs, beside one reference."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.compare.model import LESS, MORE, NEUTRAL, ComparePlace, Delta

ERROR, NOISE, BEYOND = "error of outputs", "signal to noise of outputs", "outputs beyond rounding"
DIFFERING = "integer outputs that differ"  # indices and classes, whose differences are not errors
Values = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class OutputErrors:
    """Errors of each program, of its worst output; or the reason why there are none.

    Units: snr_db decibels; beyond and differing shares of the elements

    Attributes:
        method: that was run
        reference: the reference of the outputs; empty if they are not compared
        max_abs: largest absolute difference of floats; None for a program that did not run
        snr_db: signal to noise; None also where it is infinite
        beyond: elements that differ by more than rounding
        differing: elements of integer outputs that differ; None for programs without any
        notes: sentences, such as why a program did not run or nothing was compared
    """

    method: str
    reference: str = ""
    max_abs: Values = ()
    snr_db: Values = ()
    beyond: Values = ()
    differing: Values = ()
    notes: tuple[str, ...] = ()

    def deltas(self) -> tuple[Delta, ...]:
        """Return the errors as figures of a comparison, none if they are not known."""
        if not self.reference:
            return ()
        note = f"beside {self.reference}, on the same inputs"
        rounding = {*self.beyond} == {0.0}  # whose size is no merit
        rows = (
            (ERROR, "", self.max_abs, NEUTRAL if rounding else LESS),
            (NOISE, "dB", self.snr_db, NEUTRAL if rounding else MORE),
            (BEYOND, "share", self.beyond, LESS),
            (DIFFERING, "share", self.differing, LESS),
        )
        where = tuple(ComparePlace(at, "evaluate", self.method) for at in range(len(self.max_abs)))
        return tuple(
            Delta("gap", what, unit, values, better, self.method, (), note, where)
            for what, unit, values, better in rows
            if any(value is not None for value in values)
        )
