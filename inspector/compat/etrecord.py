"""Names of ``executorch.devtools.etrecord._etrecord`` that are used but not documented."""

from __future__ import annotations

from enum import Enum

from compiler.record.user_values import reference_outputs_of as _get_reference_outputs
from compiler.record.user_values import representative_inputs_of as _get_representative_inputs
from schema.etrecord import members as m

__all__ = [
    "ETRecordReservedFileNames",
    "_get_reference_outputs",
    "_get_representative_inputs",
]


class ETRecordReservedFileNames(str, Enum):
    """The reserved member names of a record."""

    ETRECORD_IDENTIFIER = m.MARKER
    EXPORTED_PROGRAM = m.EXPORTED
    EXPORT_GRAPH_ID = m.GRAPH_ID
    EDGE_DIALECT_EXPORTED_PROGRAM = m.EDGE
    ET_DIALECT_GRAPH_MODULE = m.PLANNED
    DEBUG_HANDLE_MAP_NAME = m.HANDLES
    DELEGATE_MAP_NAME = m.DELEGATES
    INSTRUCTION_ID_TO_NUM_OUTS_MAP_NAME = m.COUNTS
    REFERENCE_OUTPUTS = m.OUTPUTS
    REPRESENTATIVE_INPUTS = m.INPUTS
