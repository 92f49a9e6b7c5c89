"""What stock ExecuTorch reads from a program, an ETDump, a bundled program or a data file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from executorch.devtools.bundled_program.serialize import (
    deserialize_from_flatbuffer_to_bundled_program,
)
from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.scalar_type import ScalarType
from executorch.exir.tensor import get_scalar_type
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from executorch.runtime import Runtime

from tests.oracle.plain import plain


def decoded_program(path: Path) -> dict[str, Any]:
    """Return the stock deserialisation of a .pte, blobs as length and digest."""
    return plain(deserialize_pte_binary(path.read_bytes()))


def decoded_etdump(path: Path) -> dict[str, Any]:
    """Return the stock deserialisation of an ETDump, prefixed with its size or not."""
    data = path.read_bytes()
    prefixed = data[4:8] != b"ED00"
    return plain(deserialize_from_etdump_flatcc(data, size_prefixed=prefixed))


def decoded_bundled_program(path: Path) -> dict[str, Any]:
    """Return the stock deserialisation of a bundled program."""
    return plain(deserialize_from_flatbuffer_to_bundled_program(path.read_bytes()))


def decoded_data_file(path: Path) -> dict[str, Any]:
    """Return the stock deserialisation of a .ptd."""
    return plain(FlatTensorSerializer().deserialize(Cord(path.read_bytes())))


def run_program(path: Path, data_path: Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Load a .pte on the stock runtime, run every method once, return facts of the outputs.

    The inputs come from the program itself and a fixed seed, so that two programs that should
    be equal can be told apart by their outputs.
    """
    program = Runtime.get().load_program(path, data_path=data_path)
    methods: dict[str, Any] = {}
    for name in sorted(program.method_names):
        method = program.load_method(name)
        inputs = _inputs(path, method.metadata, torch.Generator().manual_seed(seed))
        methods[name] = {"inputs": plain(inputs), "outputs": plain(method.execute(inputs))}
    return methods


def _inputs(path: Path, metadata: Any, generator: torch.Generator) -> list[Any]:
    inputs: list[Any] = []
    for index in range(metadata.num_inputs()):
        try:
            inputs.append(_tensor(metadata.input_tensor_meta(index), generator))
        except RuntimeError:  # not a tensor: a number stands in the program itself
            inputs.append(_recorded_number(path, metadata.name(), index))
    return inputs


def _tensor(info: Any, generator: torch.Generator) -> torch.Tensor:
    dtype, sizes = get_scalar_type(ScalarType(info.dtype())), tuple(info.sizes())
    if dtype.is_floating_point:
        return torch.rand(sizes, generator=generator).to(dtype)
    if dtype is torch.bool:
        return torch.ones(sizes, dtype=dtype)
    return torch.randint(0, 2, sizes, generator=generator).to(dtype)


def _recorded_number(path: Path, method: str, index: int) -> Any:
    plans = deserialize_pte_binary(path.read_bytes()).program.execution_plan
    plan = next(plan for plan in plans if plan.name == method)
    value = plan.values[plan.inputs[index]].val
    return next(iter(vars(value).values()))
