"""Kernel yaml files: what they declare, what is refused, what can be made of them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.compat.kernel_yaml import read_kernel_yaml
from runtime.compat.selection import selected
from tests.tools.forked import run_stock

pytestmark = pytest.mark.slow

LIBRARY = b"""
# two kernels of one operator, and one of our own
- op: add.out
  type_alias:
    T0: [Float, Half]
    T1: [Int]
  dim_order_alias:
    D0: [[0, 1, 2, 3], [0, 2, 3, 1]]
    D1: [0]
  kernels:
    - arg_meta: {self: [T0, D0], other: [T0, D0], out: [T0, D0]}
      kernel_name: torch::executor::add_out
    - arg_meta: {self: [T1, D1], other: [T0, D1], out: [T0, D1]}
      kernel_name: torch::executor::add_mixed_out
- func: my::scaled.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: null
      kernel_name: my::native::scaled_out
"""


def test_library_has_names_schemas_and_kernel_keys() -> None:
    library = read_kernel_yaml(LIBRARY)
    assert library.names == ("aten::add.out", "my::scaled.out")
    assert library.missing == ("my::scaled.out",)
    add, scaled = library.operators
    assert [len(kernel.keys) for kernel in add.kernels] == [4, 2]
    assert add.kernels[0].keys[0] == "v1/6;0,1,2,3|6;0,1,2,3|6;0,1,2,3"
    assert "v1/5;0,2,3,1|5;0,2,3,1|5;0,2,3,1" in add.kernels[0].keys
    assert add.kernels[1].keys == ("v1/3;0|6;0|6;0", "v1/3;0|5;0|5;0")
    assert scaled.schema.startswith("my::scaled.out(")
    assert scaled.kernels[0].keys == ("default",)
    assert read_kernel_yaml(io.BytesIO(LIBRARY)) == library
    assert read_kernel_yaml(b"") == read_kernel_yaml(b"[]")


def test_library_gives_kernels_to_a_runtime_and_to_a_selection() -> None:
    library = read_kernel_yaml(LIBRARY)
    runtime = Runtime(operators=library.names)
    assert runtime.operator_registry.operator_names == {"aten::add.out"}
    done = library.register(runtime.operator_registry, {"scaled_out": torch.mul})
    assert done == ("my::scaled.out",)
    assert runtime.operator_registry.find("my::scaled.out") is not None
    with pytest.raises(ExecutionError) as twice:
        library.register(runtime.operator_registry, {"my::native::scaled_out": torch.mul})
    assert twice.value.code is ErrorCode.RegistrationAlreadyRegistered
    with pytest.raises(ExecutionError, match="is computed by 'other'"):
        library.register(Runtime().operator_registry, {"other": torch.mul})
    assert selected(libraries=[library]).operators == library.names
    assert selected(libraries=[library]).missing == library.missing
    with pytest.raises(ExecutionError, match="exactly one"):
        selected(libraries=[library], every=True)


def test_library_over_another_wins() -> None:
    first = read_kernel_yaml(b"- op: add.out\n  kernels: [{kernel_name: fast}]")
    second = read_kernel_yaml(LIBRARY)
    both = first.over(second)
    assert both.names == second.names
    assert [kernel.name for kernel in both.operators[0].kernels] == ["fast"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: [", "the yaml: "),
        (b"\xff\xfe\x00", "the yaml: "),
        (b"[" * 100_000, "the yaml: "),
        (b"- op: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        (b"text", "expected a list of operators"),
        (b"- 3", "entry 0: expected op or func"),
        (b"- kernels: []", "one of op and func"),
        (b"- {op: a.out, func: 'a::b(Tensor x) -> Tensor'}", "one of op and func"),
        (b"- func: 'my::bad('", "is not a schema"),
        (b"- op: add.out\n- op: aten::add.out", "entry 1: aten::add.out is defined twice"),
        (b"- {op: a.out, kernels: 3}", "kernels is not a list"),
        (b"- {op: a.out, kernels: [{arg_meta: null}]}", "no kernel_name"),
        (
            b"- {op: a.out, kernels: [{kernel_name: k}, {kernel_name: l}]}",
            "two kernels for default",
        ),
        (b"- {op: a.out, type_alias: {T: [Blob]}}", "unknown dtype 'Blob'"),
        (b"- {op: a.out, type_alias: 7}", "type_alias: expected a mapping"),
        (b"- {op: a.out, dim_order_alias: {D: [0, 2]}}", "is not a dim order"),
        (b"- {op: a.out, dim_order_alias: {D: [[0, 1], [0, 0]]}}", "is not a dim order"),
        (
            b"- {op: a.out, kernels: [{kernel_name: k, arg_meta: {self: [T0, D0]}}]}",
            "not an alias of types",
        ),
        (
            b"- {op: a.out, type_alias: {"
            + b", ".join(b"T%d: [Int, Long, Float, Half]" % at for at in range(12))
            + b"}, dim_order_alias: {D: [0]}, kernels: [{kernel_name: k, arg_meta: {"
            + b", ".join(b"a%d: [T%d, D]" % (at, at) for at in range(12))
            + b"}}]}",
            "combinations",
        ),
    ],
)
def test_file_that_is_no_library_is_one_sentence(text: bytes, words: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        read_kernel_yaml(text)
    assert caught.value.code is ErrorCode.InvalidArgument
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


_THEIRS = """
import json, pathlib, sys
import executorch
from executorch.codegen.gen import parse_yaml_files  # noqa: F401
from executorch.codegen.parse import parse_et_yaml_struct
import yaml
root = pathlib.Path(executorch.__path__[0])
answer = {}
for path in sorted(root.glob("kernels/*/*.yaml")) + [root / "runtime/kernel/test/functions.yaml"]:
    found = yaml.load(path.read_text(), yaml.SafeLoader)
    for entry in found:
        if "op" in entry:
            name = entry.pop("op")
            in_place = name.partition(".")[0].endswith("_")
            entry["func"] = name + ("(Tensor(a!) self) -> Tensor(a!)" if in_place else "() -> ()")
        for kernel in entry.get("kernels") or ():
            if kernel.get("arg_meta"):
                kernel["arg_meta"]["__line__"] = 1
    index = parse_et_yaml_struct(found).index
    answer[str(path)] = {
        str(name): sorted(key.to_native_string() for key in keys) for name, keys in index.items()
    }
print(json.dumps(answer))
"""


@pytest.mark.interop
def test_stock_libraries_have_the_keys_that_the_stock_generator_gives_them() -> None:
    libraries = json.loads(run_stock(["-c", _THEIRS]).stdout)
    assert len(libraries) >= 3
    for path, operators in libraries.items():
        ours = {
            one.name.partition("::")[2]: sorted(key for k in one.kernels for key in k.keys)
            for one in read_kernel_yaml(Path(path)).operators
            if one.kernels
        }
        assert ours == operators, path
