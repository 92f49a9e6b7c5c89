"""Programs: ``.pte`` files, read and written field for field."""

from schema.program.codec import decode, encode, encode_parts, sniff, with_header
from schema.program.program import (
    ProgramFile,
    backend_id,
    instruction_kind,
    instructions,
    operator_name,
)

__all__ = [
    "ProgramFile",
    "backend_id",
    "decode",
    "encode",
    "encode_parts",
    "instruction_kind",
    "instructions",
    "operator_name",
    "sniff",
    "with_header",
]
