"""Properties of operator schemas, as in `executorch.exir.operator` and `executorch.exir.common`.

Operators of torch and of the edge dialect are accepted; the latter return edge operators.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch

from compiler.dialect.ops import edge_op
from compiler.dialect.out_variants import find_out_variant
from compiler.errors import MissingOutVariantsError
from compiler.untyped import OpOverload, native

T = TypeVar("T")


def unwrap_op_overload(target: object) -> Any:  # noqa: ANN401 - an operator overload of torch
    """Return torch's overload of a node's target: the target itself, or that of an edge operator.

    Raises: TypeError if it is neither
    """
    for found in (target, getattr(target, "_op", None)):
        if isinstance(found, OpOverload):
            return found
    name = type(target).__name__
    raise TypeError(f"expected an operator overload or one of the edge dialect, found {name}")


def to_out_variant(op_overload: object) -> tuple[Any, tuple[str, ...]]:
    """Return the overload that writes into given memory, and the names of those arguments.

    Raises: MissingOutVariantsError for an operator without one
    """
    op = unwrap_op_overload(op_overload)
    if not _out_names(op):
        variant = find_out_variant(op)
        if variant is None:
            raise MissingOutVariantsError([edge_op(op).name()], [])
        op = variant.op
    return op, _out_names(op)


def _out_names(op: Any) -> tuple[str, ...]:  # noqa: ANN401
    return tuple(argument.name for argument in op._schema.arguments if argument.is_out)


def output_to_aliased_input_map(schema: Any) -> dict[int, int]:  # noqa: ANN401 - of torch._C
    """Return a map from results to the mutated arguments that they alias, by index.

    Of several arguments with one alias set it is the first.
    """
    written: dict[frozenset[str], int] = {}
    for place, argument in enumerate(schema.arguments):
        if (found := _write_set(argument)) is not None:
            written.setdefault(found, place)
    results = ((place, _write_set(result)) for place, result in enumerate(schema.returns))
    return {place: written[found] for place, found in results if found in written}


def _write_set(formal: Any) -> frozenset[str] | None:  # noqa: ANN401
    info = formal.alias_info
    return frozenset(info.before_set) if info is not None and info.is_write else None


def gen_out_variant_schema(func_op_schema: str) -> str:
    """Return the schema of the out variant of a functional, in-place or mutable operator.

    Raises: errors of torchgen for an invalid schema
    """
    model: Any = importlib.import_module("torchgen.model")
    generation: Any = importlib.import_module("torchgen.native_function_generation")
    namespace, _, entity = func_op_schema.rpartition("::")
    func = model.FunctionSchema.parse(entity)
    makers: dict[Any, Any] = {
        model.SchemaKind.inplace: generation.self_to_out_signature,
        model.SchemaKind.functional: generation.functional_to_out_signature,
        model.SchemaKind.mutable: generation.mutable_to_out_signature,
    }
    built: Any = makers[func.kind()](func) if func.kind() in makers else func
    return f"{namespace}::{built}" if namespace else str(built)


def get_schema_for_operators(ops: Sequence[str]) -> dict[str, str]:
    """Return `namespace::name.overload` -> schema of names such as `torch.ops.aten.cat.default`.

    The schema of an unknown operator is "<No Schema Found>".
    """
    known = {
        f"{schema.name}.{schema.overload_name or 'default'}": str(schema)
        for schema in native._jit_get_all_schemas()
    }
    names = [re.sub(r"^torch\.ops\.([^.]+)\.", r"\1::", op) for op in ops]
    return {name: known.get(name, "<No Schema Found>") for name in names}


def without_views(ops: Iterable[Any]) -> list[Any]:
    """Return the operators that can be preserved: no result aliases an argument."""
    return [op for op in ops if not any(result.alias_info for result in op._schema.returns)]


def extract_out_arguments(schema: Any, keyword_args: Mapping[str, T]) -> Any:  # noqa: ANN401
    """Return (name, value) of the out argument of a call; a list if there are several."""
    named = [argument.name for argument in schema.arguments if argument.is_out] or ["out"]
    found = [(name, keyword_args[name]) for name in named if name in keyword_args]
    return found[0] if len(found) == 1 else found


def format_target_name(target_name: str) -> str:
    """Return an operator's name without its namespace: `add.Tensor` of `aten.add.Tensor`."""
    namespace, _, rest = target_name.partition(".")
    return rest if "." in rest else f"{namespace}.{rest}" if rest else namespace


def function_schema(op_overload: Any) -> Any:  # noqa: ANN401 - torchgen's FunctionSchema
    """Return the schema of an overload as torchgen parses it.

    Raises: errors of torchgen for an invalid schema
    """
    model: Any = importlib.import_module("torchgen.model")
    return model.FunctionSchema.parse(
        str(unwrap_op_overload(op_overload)._schema).split("::", 1)[1]
    )


def is_inplace_variant(qualified_opname: str, overload: str) -> bool:
    """Return whether an overload writes its result over its first argument.

    Args:
        qualified_opname: `namespace::name`
        overload: its name; "" is `default`

    Raises: AttributeError if torch has no such overload
    """
    return function_schema(_overload(qualified_opname, overload)).kind().name == "inplace"


def is_out_variant(qualified_opname: str, overload: str) -> bool:
    """Return whether an overload writes into memory of the caller; see `is_inplace_variant`."""
    return bool(_out_names(_overload(qualified_opname, overload)))


def _overload(qualified_opname: str, overload: str) -> Any:  # noqa: ANN401
    namespace, name = qualified_opname.split("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    return getattr(packet, overload or "default")
