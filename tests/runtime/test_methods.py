"""Programs, methods and their memory through the documented names."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Method, Runtime
from runtime.compat.module import Module
from runtime.memory.slots import TensorSlot
from schema import flat_tensor
from schema.program import encode
from schema.program import model as m
from tests.runtime.one_op import Builder, program_of
from tests.runtime.samples import folder, inputs_of, load

pytestmark = pytest.mark.slow


def _raised(call: Any, *arguments: Any) -> ExecutionError:
    with pytest.raises(ExecutionError) as raised:
        call(*arguments)
    return raised.value


def test_program_loads_from_path_text_bytes_and_file_object_alike() -> None:
    path = folder("corpus/v1.5.1/mm_portable") / "model.pte"
    data = path.read_bytes()
    given = [path, str(path), data, bytearray(data), memoryview(data), io.BytesIO(data)]
    outputs = []
    for source in given:
        program = Runtime.get().load_program(source)
        assert program.method_names == {"forward"}
        inputs = inputs_of(program.metadata("forward"))
        outputs.append(program.load_method("forward").execute(inputs)[0])
    assert all(torch.equal(outputs[0], other) for other in outputs[1:])


def test_load_what_is_no_program_names_the_code(tmp_path: Path) -> None:
    runtime = Runtime.get()
    assert _raised(runtime.load_program, b"123").code == ErrorCode.InvalidProgram
    assert _raised(runtime.load_program, tmp_path / "no.pte").code == ErrorCode.AccessFailed
    with pytest.raises(TypeError, match="file-like object, but got int"):
        runtime.load_program(12)  # pyright: ignore[reportArgumentType]  the point of the test
    with pytest.raises(KeyError, match="forward"):
        load("corpus/v1.5.1/mm_portable").load_method("backward")


def test_metadata_is_read_without_loading() -> None:
    meta = load("extra/bool_and_int").metadata("forward")
    assert [meta.output_tag(i) for i in range(meta.num_outputs())] == ["Tensor"] * 3 + ["Int"]
    info = meta.input_tensor_meta(0)
    assert (info.sizes(), info.dtype(), info.nbytes()) == ((2, 5), 6, 40)
    assert str(info) == "TensorInfo(sizes=[2, 5], dtype=Float, is_memory_planned=True, nbytes=40)"
    assert "'Int'" in str(meta)
    assert meta.num_instructions() == 4
    assert meta.memory_planned_buffer_size(0) > 0
    with pytest.raises(IndexError, match="Cannot get input tensor meta at 9"):
        meta.input_tensor_meta(9)


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ([], ErrorCode.InvalidArgument, "number of inputs in method (1)"),
        ([torch.ones(3, dtype=torch.int64)], ErrorCode.InvalidArgument, "expected torch.float32"),
        ([torch.ones(4)], ErrorCode.NotSupported, "Attempted to resize a static tensor"),
        ([torch.ones(1, 3)], ErrorCode.NotSupported, "tensor rank which is immutable"),
        ([3], ErrorCode.InvalidArgument, "expected a tensor"),
        (["text"], ErrorCode.InvalidArgument, "'text'"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: Any, code: ErrorCode, words: str) -> None:
    error = _raised(load("extra/counter_state").load_method("forward").execute, inputs)
    assert error.code == code
    assert words in str(error)
    assert error.method == "forward"


def test_bounded_tensor_takes_what_fits_its_capacity() -> None:
    """A 2x3 tensor: 2x2, 1x3, 3x2 and 6x1 are accepted, more than six elements are not."""
    slot = TensorSlot(torch.zeros(2, 3), 0, 6, (0, 1), 1, 6, None, constant=False, planned=True)
    for sizes in ((2, 2), (1, 3), (3, 2), (6, 1), (2, 3)):
        slot.resize(sizes)
        assert slot.tensor.shape == sizes
    error = _raised(slot.resize, (7, 1))
    assert "maximum capacity of 6 elements to 7 elements" in error.reason
    assert _raised(slot.resize, (6,)).code == ErrorCode.NotSupported


def test_dynamic_program_takes_smaller_and_refuses_larger_inputs() -> None:
    method = load("extra/dynamic_rows").load_method("forward")
    for rows in (8, 3, 1, 8):
        assert method.execute([torch.ones(rows, 4)])[0].shape[0] == rows
    error = _raised(method.execute, [torch.ones(9, 4)])
    assert "Error setting input 0: 0x10" in str(error)
    assert "maximum capacity of 32 elements to 36 elements" in str(error)


def test_outputs_are_the_callers_own() -> None:
    program = load("extra/counter_state")
    method = program.load_method("forward")
    first, count = method.execute([torch.ones(3)])
    kept = first.clone()
    method.execute([torch.ones(3) * 5])
    assert torch.equal(first, kept)
    assert float(count) == 1.0
    assert float(method.get_output(1)) == 2.0


def test_fresh_method_has_state_of_its_own() -> None:
    program = load("extra/counter_state")
    program.load_method("forward").execute([torch.ones(3)])
    again = program.load_method("forward").execute([torch.ones(3)])
    fresh = program.fresh_method("forward").execute([torch.ones(3)])
    assert (float(again[1]), float(fresh[1])) == (2.0, 1.0)


def _step_on(method: Method) -> None:
    while True:
        method.step()


def test_stepping_gives_the_same_as_running_and_ends() -> None:
    program = load("corpus/special/control_flow")
    inputs = inputs_of(program.metadata("forward"))
    wanted = program.fresh_method("forward").execute(inputs)
    method = program.fresh_method("forward")
    method.set_inputs(inputs)
    method.step()
    assert method.in_progress
    assert _raised(method.set_input, inputs[0], 0).code == ErrorCode.InvalidState
    assert _raised(method.run).code == ErrorCode.InvalidState
    assert _raised(method.reset_execution).code == ErrorCode.InvalidState
    assert _raised(_step_on, method).code == ErrorCode.EndOfMethod
    method.reset_execution()
    assert all(torch.equal(a, b) for a, b in zip(method.get_outputs(), wanted, strict=True))


def test_external_weights_are_needed_and_checked(tmp_path: Path) -> None:
    path = folder("extra/external_weights") / "model.pte"
    error = _raised(Runtime.get().load_program(path).load_method, "forward")
    assert error.code == ErrorCode.InvalidExternalData
    assert ".ptd" in error.remedy
    data = flat_tensor.decode((folder("extra/external_weights") / "model.ptd").read_bytes())
    turned = [
        replace(
            entry, layout=entry.layout and replace(entry.layout, sizes=entry.layout.sizes[::-1])
        )
        for entry in data.entries
    ]
    (tmp_path / "turned.ptd").write_bytes(flat_tensor.encode(replace(data, entries=tuple(turned))))
    wrong = Runtime.get().load_program(path, data_path=tmp_path / "turned.ptd")
    error = _raised(wrong.load_method, "forward")
    assert error.code == ErrorCode.InvalidExternalData
    assert "the program expects" in error.reason
    (tmp_path / "bad.ptd").write_bytes(b"no data at all")
    bad = _raised(lambda: Runtime.get().load_program(path, data_path=tmp_path / "bad.ptd"))
    assert bad.code == ErrorCode.InvalidExternalData


def test_external_weights_in_two_files_give_outputs() -> None:
    program = load("extra/external_split")
    (output, *_) = program.load_method("forward").execute(inputs_of(program.metadata("forward")))
    assert bool(output.isfinite().all())


def test_constants_are_views_into_the_file() -> None:
    data = (folder("corpus/v1.5.1/convnet_portable") / "model.pte").read_bytes()
    program = Runtime.get().load_program(data)
    method = program.load_method("forward")
    slots = method._table.slots.values()
    held = [slot.tensor for slot in slots if slot.constant and slot.tensor.numel()]
    whole = torch.frombuffer(data, dtype=torch.uint8)
    start, end = whole.data_ptr(), whole.data_ptr() + len(data)
    assert held
    assert all(start <= tensor.data_ptr() < end for tensor in held)


def test_tensors_of_one_place_share_their_bytes() -> None:
    build = Builder()
    x, y = build.input(torch.ones(4)), build.tensor(torch.float32, (2, 2))
    values = list(build.values)
    first, second = values[x].val, values[y].val
    assert isinstance(first, m.Tensor)
    assert isinstance(second, m.Tensor)
    values[y] = m.EValue(replace(second, allocation_info=first.allocation_info))
    plan = replace(build.plan([], [y], []), values=tuple(values))
    method = Runtime.get().load_program(encode(program_of(plan))).load_method("forward")
    (found,) = method.execute([torch.arange(4.0)])
    assert torch.equal(found, torch.tensor([[0.0, 1.0], [2.0, 3.0]]))


def test_methods_run_on_other_threads() -> None:
    program = load("corpus/v1.5.1/tinygpt_portable")
    inputs = inputs_of(program.metadata("forward"))
    wanted = program.load_method("forward").execute(inputs)[0]
    found: list[torch.Tensor] = []
    methods = [program.fresh_method("forward") for _ in range(2)]
    threads = [
        threading.Thread(target=lambda one=one: found.append(one.execute(inputs)[0]))
        for one in methods
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(wanted, other) for other in found)
    assert len(found) == 2


def test_module_loads_lazily_and_keeps_preset_inputs() -> None:
    module = Module(folder("extra/counter_state") / "model.pte")
    assert not module.is_loaded()
    assert _raised(module.forward).code == ErrorCode.InvalidArgument
    assert module.is_method_loaded("forward")
    module.set_input(torch.ones(3), 0)
    assert [float(module.forward()[1]) for _ in range(2)] == [1.0, 2.0]
    assert float(module.forward(torch.zeros(3))[1]) == 3.0
    module.set_inputs([])
    assert _raised(module.forward).code == ErrorCode.InvalidArgument
    assert module.unload_forward()
    assert not module.is_method_loaded("forward")
    assert float(module.execute("forward", torch.ones(3))[1]) == 1.0
    assert _raised(module.load_method, "no").code == ErrorCode.InvalidArgument


def test_selected_operators_are_the_only_ones() -> None:
    runtime = Runtime(operators={"aten::mm.out"})
    assert runtime.operator_registry.operator_names == {"aten::mm.out"}
    path = folder("corpus/v1.5.1/convnet_portable") / "model.pte"
    error = _raised(runtime.load_program(path).load_method, "forward")
    assert error.code == ErrorCode.OperatorMissing
    assert error.reason.count("aten::") > 2


def test_custom_kernel_runs_and_is_checked_at_registration() -> None:
    runtime = Runtime()
    registry = runtime.operator_registry
    schema = "my::scaled.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)"
    registry.register(schema)(lambda tensor, by: tensor * by)
    build = Builder()
    x, by, out = build.input(torch.ones(3)), build.value(2.5), build.tensor(torch.float32, (3,))
    plan = build.plan([m.KernelCall(0, (x, by, out, out))], [out], ["my::scaled.out"])
    method = runtime.load_program(encode(program_of(plan))).load_method("forward")
    assert torch.equal(method.execute([torch.ones(3)])[0], torch.full((3,), 2.5))
    assert _raised(registry.register, schema).code == ErrorCode.RegistrationAlreadyRegistered
    for refused in (
        "my::bad(Tensor self) -> Tensor",
        "my::bad.out(Tensor self, *, Tensor(a!) out) -> int",
        "my::bad.out(Dict(str, int) d, *, Tensor(a!) out) -> Tensor(a!)",
        "bad.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "no schema",
    ):
        assert _raised(registry.register, refused).code == ErrorCode.InvalidArgument, refused
    assert "my::scaled.out" not in Runtime.get().operator_registry.operator_names


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize(
    "name", ["extra/deep_mlp", "extra/identity", "extra/gru_portable", "extra/dynamic_rows"]
)
def test_gradients_are_neither_computed_nor_switched_by_a_run(
    name: str, enabled: bool, traced: bool
) -> None:
    method = load(name, enable_etdump=traced).load_method("forward")
    inputs = [one.requires_grad_() for one in inputs_of(method.metadata)]
    with torch.set_grad_enabled(enabled):
        for _ in range(6):  # checked, fused and scripted
            assert not any(one.requires_grad for one in method.execute(inputs))
            assert torch.is_grad_enabled() is enabled
        method._runner.plan = replace(method._runner.plan, untraced=_fail)
        method.tracer = None
        with pytest.raises(ValueError, match="broken"):
            method.run()
        assert torch.is_grad_enabled() is enabled
    assert all(one.requires_grad for one in inputs)


def _fail() -> None:
    raise ValueError("broken")
