"""Operators that payloads and records name: those of torch that only compute.

torch.ops reaches more than that: loaders of libraries and modules, and operators that read and
write files. Whoever opens a file has not asked for these.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import torch

from runtime.untyped import OpOverload, is_dispatched

# Modules that register the operators of a namespace.
_REGISTERED_BY = {
    "quantized_decomposed": "torch.ao.quantization.fx._decomposed",
    "torchao": "torchao.quantization.quant_primitives",
}
# Where our kernels stand for operators that no library has registered.
_KERNELS = {"llama": ("etscope_attention", "runtime.kernels.attention")}
# Of torch itself: processes, profilers, memory pools, and debugging.
_NOT_COMPUTING = [
    "c10d",
    "_c10d_functional",
    "_c10d_functional_autograd",
    "_dtensor",
    "symm_mem",
    "profiler",
    "inductor",
    "inductor_prims",
    "debugprims",
    "debug_mode_ops",
    "export",
    "rngprims",
    "_test",
    "static_runtime",
]
# String arguments that name no file: of all operators of torch 2.13 but from_file and _print.
_WORDS = [
    "UPLO",
    "activation",
    "algorithm",
    "api_name",
    "approximate",
    "assert_msg",
    "driver",
    "equation",
    "indexing",
    "interpolation",
    "mode",
    "norm",
    "ord",
    "p",
    "pad_mode",
    "padding",
    "padding_side",
    "reduce",
    "rounding_mode",
    "side",
]
_TORCHS = ("aten", "prims", "quantized", "quantized_decomposed")


def operator_of_file(target: str) -> Any:  # noqa: ANN401 - torch's operators have no type
    """Return the operator ``namespace.name.overload`` that a file names, None if it has none.

    None for operators of torch with other effects than their results.
    """
    namespace, _, rest = target.partition(".")
    name, _, overload = rest.rpartition(".")
    if namespace in _NOT_COMPUTING:
        return None
    if namespace in _REGISTERED_BY:
        with contextlib.suppress(ImportError):
            importlib.import_module(_REGISTERED_BY[namespace])
    found = _registered(namespace, name, overload)
    if found is None and namespace in _KERNELS:
        importlib.import_module(_KERNELS[namespace][1])
        found = _registered(_KERNELS[namespace][0], name, overload)
    if not isinstance(found, OpOverload):
        return None
    return found if namespace not in _TORCHS or _computes(found) else None


def _registered(*parts: str) -> Any:  # noqa: ANN401
    found: Any = torch.ops
    for part in parts:
        found = getattr(found, part, None)
    return found


def _computes(operator: Any) -> bool:  # noqa: ANN401
    """Return whether it is of the dispatcher, not of TorchScript alone, and takes no file."""
    if not is_dispatched(operator.name()):
        return False
    strings = {one.name for one in operator._schema.arguments if "str" in str(one.type)}
    return strings.issubset(_WORDS)
