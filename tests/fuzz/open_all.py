"""Everything opening a file leads to: decode, then every analysis the window would ask for."""

from __future__ import annotations

from inspector.check.session import check_session
from inspector.files.session import LoadedFile, Session
from inspector.graph.delegation import analyse_delegation
from inspector.graph.model_graph import graph_names, model_graph
from inspector.join.links import link_block
from inspector.memory.plan import analyse_memory
from inspector.profile.methods import analyse_profile
from inspector.size.owners import program_size
from inspector.trace.blocks import trace_blocks
from schema.errors import FormatError
from schema.etdump.debug_buffer import tensor_extents
from schema.files import formats
from schema.objects import identity_cache
from schema.program import ProgramFile


def open_all(data: bytes, kind: str) -> str:
    """Open damaged bytes as a session of their own; returns opened or refused.

    Anything but a FormatError escapes and fails the run.
    """
    view = memoryview(data)
    entry = formats.recognise(view)
    if entry is None:
        return "unrecognised"
    try:
        artifact = entry.decode(view, file=f"mutant.{kind}")
    except FormatError:
        return "refused"
    try:
        _analyse(
            Session(
                "mutant", (LoadedFile(f"mutant.{kind}", entry.kind, len(data), view, artifact),)
            )
        )
    finally:
        identity_cache.clear()
    return "opened"


def _analyse(session: Session) -> None:
    program = session.program
    if isinstance(program, ProgramFile) and session.programs:
        size = program_size(program, session.files[0].data)
        assert sum(part.nbytes for part in size.parts) == size.total_bytes
    for method in session.methods:
        if program is not None:
            analyse_memory(program, method)
        for name in graph_names(session, method):
            _tolerant_graph(session, method, name)
    analyse_delegation(session)
    profile = analyse_profile(session)
    for row in list(profile.rows)[:200]:
        assert row.link is not None
    for block in trace_blocks(session.dumps).blocks:
        link_block(session, block)
    for dump in session.dumps:
        tensor_extents(dump)
    check_session(session)
    if session.record is not None:
        session.record.check()
    session.all_issues()


def _tolerant_graph(session: Session, method: str, name: str) -> None:
    try:
        model_graph(session, method, name)
    except FormatError:
        return  # one member of a record is damaged, the others are shown
