"""The documented error codes, and the one exception that reports them.

Source: runtime/core/error.h; the runtime's frequently asked questions for the remedies
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ErrorCode(IntEnum):
    """The documented error codes with their values."""

    Ok = 0x00
    Internal = 0x01
    InvalidState = 0x02
    EndOfMethod = 0x03
    AlreadyLoaded = 0x04
    NotSupported = 0x10
    NotImplemented = 0x11
    InvalidArgument = 0x12
    InvalidType = 0x13
    OperatorMissing = 0x14
    RegistrationExceedingMaxKernels = 0x15
    RegistrationAlreadyRegistered = 0x16
    NotFound = 0x20
    MemoryAllocationFailed = 0x21
    AccessFailed = 0x22
    InvalidProgram = 0x23
    InvalidExternalData = 0x24
    OutOfResources = 0x25
    DelegateInvalidCompatibility = 0x30
    DelegateMemoryAllocationFailed = 0x31
    DelegateInvalidHandle = 0x32


# Remedies of causes that occur at several places.
OF_INPUTS = (
    "Compare the inputs with the method's metadata: count, dtype and rank must be those of export."
)
OF_SIZES = (
    "Pass inputs within the shapes the program was exported with, or export it with dynamic shapes "
    "and a larger upper bound."
)
OF_RUN = "Finish or reset the run in progress first."
OF_BACKEND = "Register the backend before loading, or lower the program without it."
OF_PAYLOAD = "Compile the program again for this backend's version."
OF_SCHEMA = (
    "A schema reads as my::scaled.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)."
)

# Codes with one remedy for all causes; other remedies are set where the error is raised.
_REMEDIES = {
    ErrorCode.EndOfMethod: "Reset the method to step through it again.",
    ErrorCode.RegistrationAlreadyRegistered: "Use another name: registrations are not replaced.",
    ErrorCode.MemoryAllocationFailed: "The program needs more memory than available, or its "
    "planned buffers are smaller than its tensors: compile it again.",
    ErrorCode.DelegateMemoryAllocationFailed: "The delegate needs more memory for these sizes than "
    "available: pass smaller inputs, or free memory.",
    ErrorCode.AccessFailed: "Check the path and the permissions of the file.",
    ErrorCode.InvalidProgram: "The file is damaged or was not written by an ExecuTorch compiler: "
    "compile it again.",
    ErrorCode.InvalidExternalData: "Load the program together with the .ptd file that was saved "
    "beside it.",
    ErrorCode.OutOfResources: "The run was stopped before it used up the memory.",
}


def usual_remedy(code: ErrorCode) -> str:
    """Return what to do about most errors of a code, empty when unknown."""
    return _REMEDIES.get(code, "")


class ExecutionError(RuntimeError):
    """A program that cannot be loaded or run; its string is one sentence, the code and a remedy.

    Attributes:
        code: the documented error code
        reason: cause, one sentence
        remedy: what to do, empty when unknown
        method: name of the method, empty outside of one
        instruction: index in its chain, None outside of instructions
        operator: full name of the operator or backend, empty if not applicable
        source: line of Python that the instruction comes from, empty if not recorded
        call: number of the call of a sequence, None outside of one
    """

    def __init__(self, code: ErrorCode, reason: str, *, remedy: str | None = None) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.remedy = usual_remedy(code) if remedy is None else remedy
        self.method = ""
        self.instruction: int | None = None
        self.operator = ""
        self.source = ""
        self.call: int | None = None

    def located(
        self,
        *,
        method: str = "",
        instruction: int | None = None,
        operator: str = "",
        source: str = "",
        call: int | None = None,
    ) -> ExecutionError:
        """Return self with the parts of the location filled in that are still unknown."""
        self.method = self.method or method
        if self.instruction is None:
            self.instruction = instruction
        self.operator = self.operator or operator
        self.source = self.source or source
        if self.call is None:
            self.call = call
        return self

    @property
    def place(self) -> str:
        """Return the location as a string, empty when it is unknown."""
        parts = [f"call {self.call}"] if self.call is not None else []
        if self.method:
            parts.append(f"method {self.method!r}")
        if self.instruction is not None:
            parts.append(f"instruction {self.instruction}")
        if self.operator:
            parts.append(self.operator)
        if self.source:
            parts.append(self.source)
        return ", ".join(parts)

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place else ""
        end = "" if self.reason.endswith((".", "!", "?")) else "."
        tail = f" {self.remedy}" if self.remedy else ""
        return f"{head}{self.reason}{end} ({self.code.name} 0x{self.code:02x}){tail}"


def invalid_program(reason: str) -> ExecutionError:
    """Return the error of a program whose tables contradict themselves."""
    return ExecutionError(ErrorCode.InvalidProgram, reason)


def invalid_argument(reason: str, *, remedy: str = "") -> ExecutionError:
    """Return the error of invalid arguments."""
    return ExecutionError(ErrorCode.InvalidArgument, reason, remedy=remedy)


def invalid_input(reason: str) -> ExecutionError:
    """Return the error of inputs that do not fit their method."""
    return invalid_argument(reason, remedy=OF_INPUTS)


class UnknownMethodError(ExecutionError, KeyError):
    """A method that the program does not have.

    ``executorch.runtime`` raises a KeyError, the older functions a RuntimeError: it is both.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            ErrorCode.InvalidArgument,
            f"the program has no method {name!r}",
            remedy=f"Available: {', '.join(sorted(known)) or 'none'}.",
        )
