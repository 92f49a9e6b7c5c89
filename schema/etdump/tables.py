"""Tables of etdump_schema_flatcc.fbs, identifier ED00.

Readers take slots, dtypes and defaults from here, the writer the layout of its records, the
structure view and the fuzz tests the rest; all events of a trace are read at once, by columns.
Source: etdump_schema_flatcc.fbs since 0.4; slots up to 0.3 are a prefix of these.
"""

from __future__ import annotations

from schema.flatbuf.spec import Field, tables

TABLES = tables(
    {
        "Int": "int_val:i64",
        "Bool": "bool_val:bool",
        "Float": "float_val:f32",
        "Double": "double_val:f64",
        "Tensor": "scalar_type:i8 sizes:[i64] strides:[i64] offset:i64",
        "TensorList": "tensors:[Tensor]",
        "Value": "val:i8 tensor:Tensor tensor_list:TensorList int_value:Int float_value:Float "
        "double_value:Double bool_value:Bool output:Bool",
        "ProfileEvent": "name:str chain_index:i32 instruction_id:i32=-1 "
        "delegate_debug_id_int:i32=-1 delegate_debug_id_str:str delegate_debug_metadata:bytes "
        "start_time:u64 end_time:u64",
        "AllocationEvent": "allocator_id:i32 allocation_size:u64",
        "DebugEvent": "chain_index:u64 instruction_id:i32=-1 debug_entry:Value "
        "delegate_debug_id_int:i32=-1 delegate_debug_id_str:str name:str",
        "Event": "profile_event:ProfileEvent allocation_event:AllocationEvent "
        "debug_event:DebugEvent",
        "Allocator": "name:str",
        "RunData": "name:str bundled_input_index:i32=-1 allocators:[Allocator] events:[Event]",
        "ETDump": "version:u32 run_data:[RunData]",
    }
)
ETDUMP, RUN_DATA, ALLOCATOR = TABLES["ETDump"], TABLES["RunData"], TABLES["Allocator"]
EVENT, VALUE = TABLES["Event"], TABLES["Value"]
TENSOR, TENSOR_LIST = TABLES["Tensor"], TABLES["TensorList"]
PROFILE_EVENT, ALLOCATION_EVENT = TABLES["ProfileEvent"], TABLES["AllocationEvent"]
DEBUG_EVENT = TABLES["DebugEvent"]
EVENT_TABLES = (PROFILE_EVENT, ALLOCATION_EVENT, DEBUG_EVENT)  # by EventKind, and slot of Event
_COLUMNS = {
    "delegate_debug_id_int": "delegate_id_int",
    "delegate_debug_id_str": "delegate_id_str",
    "delegate_debug_metadata": "metadata",
    "debug_entry": "value",
}


def column_of(field: Field) -> str:
    """Return the column of `EventStore` that holds a field of an event."""
    return _COLUMNS.get(field.name, field.name)
