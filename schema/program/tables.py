"""Field tables of program.fbs, identifier ET12, release 1.5 and all before."""

from __future__ import annotations

from schema.flatbuf import spec as fb
from schema.flatbuf.spec import Blob, Text, Union, Vec, spec
from schema.program import model as m

TEXT = Text()
_INDICES = Vec(fb.I32)

CONTAINER_METADATA = spec(
    "ContainerMetadata", m.ContainerMetadata, ("encoded_inp_str", TEXT), ("encoded_out_str", TEXT)
)
NULL = spec("Null", m.Null)
INT = spec("Int", m.Int, ("int_val", fb.I64))
BOOL = spec("Bool", m.Bool, ("bool_val", fb.BOOL))
DOUBLE = spec("Double", m.Double, ("double_val", fb.F64))
STRING = spec("String", m.String, ("string_val", TEXT))
INT_LIST = spec("IntList", m.IntList, ("items", Vec(fb.I64)))
DOUBLE_LIST = spec("DoubleList", m.DoubleList, ("items", Vec(fb.F64)))
BOOL_LIST = spec("BoolList", m.BoolList, ("items", Vec(fb.BOOL)))
TENSOR_LIST = spec("TensorList", m.TensorList, ("items", _INDICES))
OPTIONAL_TENSOR_LIST = spec("OptionalTensorList", m.OptionalTensorList, ("items", _INDICES))
ALLOCATION_DETAILS = spec(
    "AllocationDetails",
    m.AllocationDetails,
    ("memory_id", fb.U32),
    ("memory_offset_low", fb.U32),
    ("memory_offset_high", fb.U32),
)
EXTRA_TENSOR_INFO = spec(
    "ExtraTensorInfo",
    m.ExtraTensorInfo,
    ("mutable_data_segments_idx", fb.U64),
    ("fully_qualified_name", TEXT),
    ("location", fb.I8),
    ("device_type", fb.I8),
    ("device_index", fb.I8),
)
TENSOR = spec(
    "Tensor",
    m.Tensor,
    ("scalar_type", fb.I8),
    ("storage_offset", fb.I32),
    ("sizes", _INDICES),
    ("dim_order", Vec(fb.U8)),
    ("requires_grad", fb.BOOL),
    ("data_buffer_idx", fb.U32),
    ("allocation_info", ALLOCATION_DETAILS),
    ("layout", fb.I8),
    ("shape_dynamism", fb.I8),
    ("extra_tensor_info", EXTRA_TENSOR_INFO),
)
KERNEL_TYPES = Union(
    "KernelTypes",
    (
        None,
        NULL,
        INT,
        BOOL,
        DOUBLE,
        TENSOR,
        STRING,
        INT_LIST,
        DOUBLE_LIST,
        BOOL_LIST,
        TENSOR_LIST,
        OPTIONAL_TENSOR_LIST,
    ),
)
EVALUE = spec("EValue", m.EValue, ("val", KERNEL_TYPES))
KERNEL_CALL = spec("KernelCall", m.KernelCall, ("op_index", fb.I32), ("args", _INDICES))
DELEGATE_CALL = spec("DelegateCall", m.DelegateCall, ("delegate_index", fb.I32), ("args", _INDICES))
MOVE_CALL = spec("MoveCall", m.MoveCall, ("move_from", fb.I32), ("move_to", fb.I32))
JUMP_FALSE_CALL = spec(
    "JumpFalseCall",
    m.JumpFalseCall,
    ("cond_value_index", fb.I32),
    ("destination_instruction", fb.I32),
)
FREE_CALL = spec("FreeCall", m.FreeCall, ("value_index", fb.I32))
INSTRUCTION_ARGUMENTS = Union(
    "InstructionArguments",
    (None, KERNEL_CALL, DELEGATE_CALL, MOVE_CALL, JUMP_FALSE_CALL, FREE_CALL),
)
INSTRUCTION = spec("Instruction", m.Instruction, ("instr_args", INSTRUCTION_ARGUMENTS))
FRAME = spec(
    "Frame",
    m.Frame,
    ("filename", TEXT),
    ("lineno", fb.I32),
    ("name", TEXT),
    ("context", TEXT),
)
FRAME_LIST = spec("FrameList", m.FrameList, ("items", Vec(FRAME)))
CHAIN = spec(
    "Chain",
    m.Chain,
    ("inputs", _INDICES),
    ("outputs", _INDICES),
    ("instructions", Vec(INSTRUCTION)),
    ("stacktrace", Vec(FRAME_LIST), None),
)
OPERATOR = spec("Operator", m.Operator, ("name", TEXT), ("overload", TEXT))
DATA_REFERENCE = spec(
    "BackendDelegateDataReference",
    m.BackendDelegateDataReference,
    ("location", fb.I8),
    ("index", fb.U32),
)
COMPILE_SPEC = spec("CompileSpec", m.CompileSpec, ("key", TEXT), ("value", Blob()))
BACKEND_DELEGATE = spec(
    "BackendDelegate",
    m.BackendDelegate,
    ("id", TEXT),
    ("processed", DATA_REFERENCE),
    ("compile_specs", Vec(COMPILE_SPEC)),
)
NON_CONST_BUFFER_DEVICE = spec(
    "NonConstBufferDevice",
    m.NonConstBufferDevice,
    ("buffer_idx", fb.I32),
    ("device_type", fb.I8),
    ("device_index", fb.I8),
)
EXECUTION_PLAN = spec(
    "ExecutionPlan",
    m.ExecutionPlan,
    ("name", TEXT),
    ("container_meta_type", CONTAINER_METADATA),
    ("values", Vec(EVALUE)),
    ("inputs", _INDICES),
    ("outputs", _INDICES),
    ("chains", Vec(CHAIN)),
    ("operators", Vec(OPERATOR)),
    ("delegates", Vec(BACKEND_DELEGATE)),
    ("non_const_buffer_sizes", Vec(fb.I64)),
    ("non_const_buffer_device", Vec(NON_CONST_BUFFER_DEVICE), None),
)
BUFFER = spec("Buffer", m.Buffer, ("storage", Blob(16)))
INLINE_DATA = spec("BackendDelegateInlineData", m.BackendDelegateInlineData, ("data", Blob(16)))
DATA_SEGMENT = spec("DataSegment", m.DataSegment, ("offset", fb.U64), ("size", fb.U64))
SUBSEGMENT_OFFSETS = spec(
    "SubsegmentOffsets",
    m.SubsegmentOffsets,
    ("segment_index", fb.U32),
    ("offsets", Vec(fb.U64)),
)
NAMED_DATA = spec("NamedData", m.NamedData, ("key", TEXT), ("segment_index", fb.U32))
PROGRAM = spec(
    "Program",
    m.ProgramTable,
    ("version", fb.U32),
    ("execution_plan", Vec(EXECUTION_PLAN)),
    ("constant_buffer", Vec(BUFFER), None),
    ("backend_delegate_data", Vec(INLINE_DATA), None),
    ("segments", Vec(DATA_SEGMENT), None),
    ("constant_segment", SUBSEGMENT_OFFSETS),
    ("mutable_data_segments", Vec(SUBSEGMENT_OFFSETS), None),
    ("named_data", Vec(NAMED_DATA), None),
)
