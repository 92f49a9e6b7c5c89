"""Traces: ETDump files, read and written by columns."""

from schema.etdump.build import dump, run, table
from schema.etdump.decode import decode, header_fields, root_table, sniff
from schema.etdump.encode import encode
from schema.etdump.events import (
    EMULATED,
    AllocationEvent,
    AnyEvent,
    Blobs,
    DebugEvent,
    EventKind,
    EventStore,
    ProfileEvent,
)
from schema.etdump.from_json import is_json, trace_of
from schema.etdump.join import joined
from schema.etdump.model import ETDump, RunData
from schema.etdump.table import EventTable
from schema.etdump.values import DebugTensor, DebugValue, DebugValues, ValueColumns, ValueType

__all__ = [
    "EMULATED",
    "AllocationEvent",
    "AnyEvent",
    "Blobs",
    "DebugEvent",
    "DebugTensor",
    "DebugValue",
    "DebugValues",
    "ETDump",
    "EventKind",
    "EventStore",
    "EventTable",
    "ProfileEvent",
    "RunData",
    "ValueColumns",
    "ValueType",
    "decode",
    "dump",
    "encode",
    "header_fields",
    "is_json",
    "joined",
    "root_table",
    "run",
    "sniff",
    "table",
    "trace_of",
]
