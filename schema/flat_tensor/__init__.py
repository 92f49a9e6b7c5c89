"""External data: ``.ptd`` files in the current layout and that of ExecuTorch 0.6."""

from schema.flat_tensor.decode import decode, header_fields, root_table, sniff
from schema.flat_tensor.encode import (
    SEGMENT_ALIGNMENT,
    PlacedBlob,
    encode,
    encode_parts,
    pack,
    with_header,
)
from schema.flat_tensor.model import Entry, FileSegment, FlatTensor, FlatTensorHeader, TensorLayout

__all__ = [
    "SEGMENT_ALIGNMENT",
    "Entry",
    "FileSegment",
    "FlatTensor",
    "FlatTensorHeader",
    "PlacedBlob",
    "TensorLayout",
    "decode",
    "encode",
    "encode_parts",
    "header_fields",
    "pack",
    "root_table",
    "sniff",
    "with_header",
]
