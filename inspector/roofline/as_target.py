"""What a run would take with the calls of another runtime: kernels as measured, calls exchanged."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.files.machine import Machine
from inspector.files.origin import device_name
from inspector.files.run_report import run_report
from inspector.files.session import Session
from inspector.roofline.call_costs import STOCK, THIS, CallCosts, device_target, load_costs
from inspector.units import NS_PER_MS
from schema.errors import FormatError
from schema.objects.plural import plural
from schema.program import instructions
from schema.program import model as m


@dataclass(frozen=True, slots=True)
class ExchangedCalls:
    """The calls of a method, and their costs where it ran and on a target.

    Attributes:
        instructions: operators outside of delegates
        calls: of delegates
        here: costs where it ran
        there: costs on the target
    """

    instructions: int
    calls: int
    here: CallCosts
    there: CallCosts

    def taken_ms(self, ms: float) -> float:
        """Return the time of a run, in ms, on the target."""
        own, other = (
            one.overhead(self.instructions, self.calls) / NS_PER_MS
            for one in (self.here, self.there)
        )
        return max(0.0, ms - own) + other

    @property
    def words(self) -> str:
        """Return a description of the exchanged costs."""
        counts = (
            f"{plural(self.instructions, 'instruction')} and {plural(self.calls, 'delegate call')}"
        )
        if self.here == self.there:
            return f"measured on {self.there.where}: {counts}"
        return (
            f"kernels as measured, {counts} at the cost on {self.there.where} instead of"
            f" {self.here.where}"
        )


def ran_on(session: Session) -> str:
    """Return the target that ran the traces of a session, empty where no report names it."""
    device = device_name(session)
    if device:
        return device_target(device)
    reports = [run_report(dump) for dump in session.dumps]
    known = [report for report in reports if report is not None]
    if not known or len(known) < len(reports):
        return ""
    return STOCK if any(report.other_runtime for report in known) else THIS


def exchanged_calls(
    session: Session, method: str, ran: str = "", target: str = STOCK
) -> ExchangedCalls | None:
    """Return the calls of a method with their costs, None where they are unknown.

    Unknown are those of a program with jumps, and those of a trace without a report of what ran it.

    Args:
        session: with the program
        method: of the program
        ran: target that ran it; empty for that of the traces
        target: whose costs are put in their place
    """
    program = session.program
    plans = [] if program is None else [one for one in program.plans if one.name == method]
    machine = None if ran else _machine(session)
    ran = ran or ran_on(session)
    here, there = (_known(one, machine) if ran else None for one in (ran, target))
    if not plans or here is None or there is None:
        return None
    kinds = [type(instruction.instr_args) for *_, instruction in instructions(plans[0])]
    if m.JumpFalseCall in kinds:
        return None
    return ExchangedCalls(kinds.count(m.KernelCall), kinds.count(m.DelegateCall), here, there)


def _machine(session: Session) -> Machine | None:
    """Return the machine that wrote the traces, None if unknown; a device has the host's costs."""
    reports = [report for report in map(run_report, session.dumps) if report is not None]
    return next((one.machine for one in reports if one.device is None and one.machine), None)


def _known(target: str, machine: Machine | None) -> CallCosts | None:
    try:
        return load_costs(target, machine)
    except (FormatError, OSError):
        return None
