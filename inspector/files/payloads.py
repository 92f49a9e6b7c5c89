"""The decoded payload of each delegate of a program."""

from __future__ import annotations

from threading import RLock

from inspector.files.session import Session
from schema import payloads
from schema.backends import backend_of, resolve
from schema.errors import FormatError, Issue, Severity
from schema.objects.identity_cache import identity_cache
from schema.payloads import Payload
from schema.program import ProgramFile
from schema.program import model as m


def delegate_payload(
    program: ProgramFile, plan: m.ExecutionPlan, index: int, external: tuple[object, ...] = ()
) -> Payload:
    """Return the payload of a delegate; never raises, issues name what could not be read.

    Args:
        program: the program that holds the bytes
        plan: the method
        index: position in the method's delegates
        external: flat tensor files that may hold its named data

    Raises: IndexError if the method has no such delegate
    """
    delegate = plan.delegates[index]
    decoded = _decoded(program, external)
    with decoded.lock:  # of several threads one decodes it and the others wait
        found = decoded.payloads.get(id(delegate))
        if found is None:
            found = delegate, _decode(program, plan, index, external)
            decoded.payloads[id(delegate)] = found
        return found[1]


def executed_payload(session: Session, method: str, index: int) -> Payload:
    """Return what runs here of a delegate: its payload, or what the record has in its place.

    Of a command stream that is the graph that it was compiled from, if the record has kept it.

    Args:
        session: with the program
        method: name
        index: position in the method's delegates

    Raises: IndexError if the method has no such delegate
    """
    program = session.program
    assert program is not None
    plan = program.plan(method)
    payload = delegate_payload(program, plan, index, tuple(session.external))
    return _kept_graphs(session, method).get(index, payload)


@identity_cache
def _kept_graphs(session: Session, method: str) -> dict[int, Payload]:
    program, record = session.program, session.record
    found: dict[int, Payload] = {}
    if program is None or record is None:
        return found
    for index, delegate in enumerate(program.plan(method).delegates):
        reader = backend_of(delegate.id).executed
        if not reader:
            continue
        specs = tuple((spec.key, bytes(spec.value)) for spec in delegate.compile_specs)
        try:
            kept = record.kept(program.delegate_data(delegate))
        except FormatError:  # is an issue of the files
            continue
        made: Payload | None = resolve(reader)(kept, specs)
        if made is not None and made.graph is not None:
            found[index] = made
    return found


class _Decoded:
    """The payloads of one program: it may have thousands, more than a cache of results keeps."""

    def __init__(self) -> None:
        self.lock = RLock()
        # by the address of the delegate, which is kept so that no other one has it
        self.payloads: dict[int, tuple[m.BackendDelegate, Payload]] = {}


@identity_cache
def _decoded(program: ProgramFile, external: tuple[object, ...]) -> _Decoded:
    del program, external  # are the key
    return _Decoded()


def _decode(
    program: ProgramFile, plan: m.ExecutionPlan, index: int, external: tuple[object, ...]
) -> Payload:
    delegate = plan.delegates[index]
    specs = tuple((spec.key, bytes(spec.value)) for spec in delegate.compile_specs)
    try:
        data = program.delegate_data(delegate)
    except FormatError as error:
        issue = Issue(Severity.ERROR, f"{plan.name} delegate {index}", str(error))
        return Payload(delegate.id, "unknown", 0, issues=(issue,))
    return payloads.decode(delegate.id, data, named_blobs(program, external), specs)


@identity_cache
def named_blobs(program: ProgramFile, external: tuple[object, ...] = ()) -> dict[str, memoryview]:
    """Return the blobs a delegate can look up by key: external files first, then the program's."""
    from schema.flat_tensor import FlatTensor

    found = program.named_data_map()
    for source in reversed(external):
        if isinstance(source, FlatTensor):
            found.update(source.blobs())
    return found


def unread_payloads(program: ProgramFile) -> tuple[Issue, ...]:
    """Return why payloads of delegates could not be read, one issue a payload."""
    found: list[Issue] = []
    for plan in program.plans:
        for index, delegate in enumerate(plan.delegates):
            issues = delegate_payload(program, plan, index).issues
            wrong = next((one for one in issues if one.severity is Severity.ERROR), None)
            if wrong is not None:
                where = f"{plan.name} delegate {index} ({delegate.id})"
                found.append(Issue(Severity.ERROR, where, wrong.message))
    return tuple(found)
