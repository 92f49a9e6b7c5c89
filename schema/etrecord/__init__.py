"""ETRecords: zip archives of graphs, maps and tensors, read without torch or unpickling."""

from schema.etrecord.archive.zip_index import Member
from schema.etrecord.codec import decode, encode, replace_member, replace_members
from schema.etrecord.graph.graph_json import RecordedProgram, read_program
from schema.etrecord.graph.node_list import ListedNode, node_list
from schema.etrecord.members import MARKER, OWN_PREFIX, Roles, is_record, sniff
from schema.etrecord.parts.lowered import (
    LoweredModule,
    RecordedCompileSpec,
    RecordedNamedData,
    lowered_modules,
)
from schema.etrecord.parts.maps import CountMap, DelegateMap, DelegateMaps, HandleMap
from schema.etrecord.record import RecordFile
from schema.etrecord.torch_file.tensor_data import Opaque, TensorData
from schema.etrecord.torch_file.torch_save import SavedTree, read_torch_save, tensors

__all__ = [
    "MARKER",
    "OWN_PREFIX",
    "CountMap",
    "DelegateMap",
    "DelegateMaps",
    "HandleMap",
    "ListedNode",
    "LoweredModule",
    "Member",
    "Opaque",
    "RecordFile",
    "RecordedCompileSpec",
    "RecordedNamedData",
    "RecordedProgram",
    "Roles",
    "SavedTree",
    "TensorData",
    "decode",
    "encode",
    "is_record",
    "lowered_modules",
    "node_list",
    "read_program",
    "read_torch_save",
    "replace_member",
    "replace_members",
    "sniff",
    "tensors",
]
