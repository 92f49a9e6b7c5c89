"""Debugging a delegate: handles of what a backend makes, and metadata of its events."""

import json

from executorch.exir.backend.utils import DelegateMappingBuilder

numbers = {}
builder = DelegateMappingBuilder(generated_identifiers=True)
first = builder.insert_delegate_mapping_entry(handles=(1, 2, 3))
second = builder.insert_delegate_mapping_entry(handles=(4,))
mapping = builder.get_delegate_mapping()
numbers["generated"] = {str(key): list(value) for key, value in mapping.items()}
assert list(mapping) == [first, second]
assert [tuple(value) for value in mapping.values()] == [(1, 2, 3), (4,)]

builder = DelegateMappingBuilder()
assert (
    builder.insert_delegate_mapping_entry(handles=(5, 6), identifier="fused_conv") == "fused_conv"
)
mapping = builder.get_delegate_mapping()
numbers["named"] = {key: list(value) for key, value in mapping.items()}
assert numbers["named"] == {"fused_conv": [5, 6]}
for wrong in ({"handles": (7,)}, {"handles": (7,), "identifier": "fused_conv"}):
    try:
        builder.insert_delegate_mapping_entry(**wrong)
    except Exception as error:  # what is raised differs by case
        numbers["refused"] = numbers.get("refused", 0) + 1
assert numbers["refused"] == 2
print(json.dumps(numbers))
