"""Code written for the stock runtime does the same here when only its import lines change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.forked import run_stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
_STOCK = """
from executorch.extension.pybindings import portable_lib
from executorch.extension.pybindings.portable_lib import (
    _load_bundled_program_from_buffer, _load_for_executorch, _load_for_executorch_from_buffer,
    _load_for_executorch_from_bundled_program, _load_program, _load_program_from_buffer,
    _threadpool_get_thread_count, _unsafe_reset_threadpool)
from executorch.runtime import (
    BackendRegistry, Method, OperatorRegistry, Program, Runtime, Verification)
"""
_OURS = _STOCK.replace("executorch.extension.pybindings", "runtime.compat").replace(
    "executorch.runtime", "runtime"
)
_CODE = """
import io, os, sys, tempfile
from pathlib import Path
import torch
DATA, OUT = Path(sys.argv[1]), Path(sys.argv[2])
LSTM, BUNDLE = DATA / "extra/lstm_portable/model.pte", DATA / "extra/bundled_cases/model.bpte"

def said(values):
    return [v.double().mul(1e4).round().tolist() if isinstance(v, torch.Tensor) else v
            for v in values]

# the runtime
et_runtime = Runtime.get()
print(et_runtime is Runtime.get(), isinstance(et_runtime.operator_registry, OperatorRegistry))
print(isinstance(et_runtime.backend_registry, BackendRegistry))
print("aten::add.out" in et_runtime.operator_registry.operator_names)
print(et_runtime.backend_registry.is_available("XnnpackBackend"))
print("XnnpackBackend" in et_runtime.backend_registry.registered_backend_names)
program = et_runtime.load_program(LSTM, verification=Verification.Minimal)
print("Program methods:", program.method_names)
forward = program.load_method("forward")
meta = program.metadata("forward")
print(meta, forward.metadata, meta.name(), meta.num_attributes())
infos = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]
print([(i.sizes(), i.dtype(), i.is_memory_planned(), i.nbytes()) for i in infos])
torch.manual_seed(0)
inputs = tuple(torch.randn(i.sizes()) for i in infos)
outputs = forward.execute(inputs)
print(len(outputs), said(outputs))
for data in (str(LSTM), LSTM.read_bytes(), bytearray(LSTM.read_bytes()),
             io.BytesIO(LSTM.read_bytes()), LSTM.open("rb")):
    again = et_runtime.load_program(data).load_method("forward").execute(inputs)
    print(said(again) == said(outputs))
for wrong in (3, None):
    try:
        et_runtime.load_program(wrong)
    except TypeError as error:
        print(error)
for wrong in ((), inputs * 2, tuple(t.double() for t in inputs), tuple(t[:0] for t in inputs)):
    try:
        forward.execute(wrong)
        print("ran")
    except RuntimeError as error:
        print("RuntimeError", [code for code in ("0x12", "0x10") if code in str(error)])
traced = et_runtime.load_program(LSTM, enable_etdump=True, debug_buffer_size=int(1e7))
traced.load_method("forward").execute(inputs)
traced.write_etdump_result_to_file(str(OUT / "a.etdp"), str(OUT / "a.bin"))
print((OUT / "a.etdp").stat().st_size > 1000, (OUT / "a.bin").stat().st_size > 1000)

# the older functions
module = _load_for_executorch(str(LSTM))
print(module.method_names(), module.method_meta("forward"), module.has_etdump())
print(said(module.forward(list(inputs))) == said(module.run_method("forward", inputs)))
print(said(module(inputs)) == said(outputs), said(module(inputs[0])) == said(outputs))
print(said(module.forward(inputs, clone_outputs=False)) == said(outputs))
print(len(module.plan_execute("forward")))
buffer = LSTM.read_bytes()  # kept: the stock function does not
module = _load_for_executorch_from_buffer(buffer, enable_etdump=True)
module.run_method("forward", inputs)
module.write_etdump_result_to_file(str(OUT / "b.etdp"))
print(module.has_etdump(), (OUT / "b.etdp").exists())
loaded = _load_program(str(LSTM))
print(loaded.num_methods(), loaded.get_method_name(0), loaded.method_meta("forward"))
method = loaded.load_method("forward")
method.set_inputs(inputs)
method.execute()
print(said(method.get_outputs()) == said(outputs), len(method.get_outputs(clone_outputs=False)))
print(said(method.call(inputs)) == said(outputs), said(method(inputs[0])) == said(outputs))
print(method.method_meta().name(), _load_program_from_buffer(buffer).num_methods())

# bundled programs
cases = BUNDLE.read_bytes()
bundled = _load_bundled_program_from_buffer(cases)
for case in range(2):
    print(said(bundled.verify_result_with_bundled_expected_output("forward", case)))
for place in (("nowhere", 0), ("forward", 99)):
    try:
        bundled.verify_result_with_bundled_expected_output(*place)
    except RuntimeError as error:
        print("RuntimeError", "0x12" in str(error))
print(_load_for_executorch_from_bundled_program(bundled).method_names())

# external weights, state
folder = DATA / "extra/external_weights"
weights = next(folder.glob("*.ptd"))
program = et_runtime.load_program(folder / "model.pte", data_path=weights)
meta = program.metadata("forward")
inputs = [torch.ones(meta.input_tensor_meta(i).sizes()) for i in range(meta.num_inputs())]
print(said(program.load_method("forward").execute(inputs)))
print(said(_load_for_executorch(str(folder / "model.pte"), str(weights)).forward(inputs)))
before = _threadpool_get_thread_count()
_unsafe_reset_threadpool(1)
print(before >= 1, _threadpool_get_thread_count())
print(sorted(n for n in ("_is_available", "_get_operator_names", "_get_registered_backend_names")
             if hasattr(portable_lib, n)))
"""


def _run(imports: str, folder: Path) -> list[str]:
    folder.mkdir()
    return run_stock(["-c", imports + _CODE, DATA, folder]).stdout.splitlines()


def test_tutorial_code_prints_the_same_when_only_its_imports_change(tmp_path: Path) -> None:
    ours, theirs = _run(_OURS, tmp_path / "ours"), _run(_STOCK, tmp_path / "stock")
    assert len(theirs) >= 40
    assert ours == theirs
