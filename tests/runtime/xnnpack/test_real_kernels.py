"""The real kernels: refused when they are not known, ended with their process, run in workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.backends.xnnpack import engine_choice
from runtime.backends.xnnpack.native import child, detect
from runtime.backends.xnnpack.native.detect import Availability, availability, examine
from runtime.backends.xnnpack.native.process import KernelProcess, library_folder
from runtime.backends.xnnpack.native.self_test import probe, probe_plan
from runtime.backends.xnnpack.torch_engine import TorchEngine
from runtime.delegates.errors import DelegateError
from schema.payloads.xnnpack import model as x
from tests.runtime.samples import inputs_of
from tests.runtime.xnnpack.payloads import Q8, Case, Payload
from tests.runtime.xnnpack.quantized_cases import IN
from tests.runtime.xnnpack.sessions import DATA

pytestmark = pytest.mark.slow
NET = DATA / "corpus/payloads/xnnpack.pte"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with the engines as a process finds them."""
    monkeypatch.setattr(engine_choice.KernelPool, "kernels", {})


def test_missing_library_is_refused_with_a_sentence() -> None:
    found = examine(None)
    assert (found.folder, found.reason) == (
        None,
        "No installed executorch wheel has the XNNPACK library.",
    )


def test_library_that_is_none_is_refused_with_a_sentence(tmp_path: Path) -> None:
    for name in ("libexecutorch_backend_xnnpack.so", "libexecutorch_threadpool.so"):
        (tmp_path / name).write_bytes(b"nothing")
    found = examine(tmp_path)
    assert found.folder is None
    assert found.reason.startswith("The XNNPACK library cannot be opened: ")
    assert found.reason.count(".\n") == 0


def test_engine_without_library_is_refused_and_auto_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_choice, "availability", lambda: Availability(None, "There is none."))
    with pytest.raises(ExecutionError, match="There is none"):
        Runtime().load_program(NET).load_method("forward", engine="native")
    found = Runtime().load_program(NET).load_method("forward").measurements
    assert [(m.engine, m.source, m.note) for m in found] == [
        ("torch", "host emulation", "There is none.")
    ]


def test_method_that_is_loaded_keeps_its_engine() -> None:
    program = Runtime().load_program(NET)
    method = program.load_method("forward", engine="torch")
    assert program.load_method("forward") is method
    with pytest.raises(ExecutionError) as raised:
        program.load_method("forward", engine="native")
    assert raised.value.code == ErrorCode.InvalidState


@pytest.mark.interop
def test_installed_library_passes_its_self_test() -> None:
    found = availability()
    assert (found.folder, found.reason) == (library_folder(), "")
    assert found.release == "executorch 1.5.1"
    kinds = {node.kind for node in probe_plan().nodes}
    assert len(kinds) >= 12


@pytest.mark.interop
def test_build_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "KNOWN_BUILDS", {"0" * 64: "another release"})
    found = examine(library_folder())
    assert found.folder is None
    assert "an unknown build (78e8776e742a…)" in found.reason


@pytest.mark.interop
def test_self_test_names_the_kernel_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = library_folder()
    assert folder is not None
    run = TorchEngine.run

    def wrong(self: TorchEngine, *args: object) -> list[torch.Tensor]:
        found = run(self, *args)  # type: ignore[arg-type]
        return [*found[:1], found[1] + 0.01, *found[2:]]

    monkeypatch.setattr(TorchEngine, "run", wrong)
    process = KernelProcess(folder, 1)
    try:
        assert probe(process).startswith("Sigmoid differs by ")
    finally:
        process.close()


@pytest.mark.interop
def test_kernels_that_end_are_one_error_and_new_ones_come_up() -> None:
    method = Runtime().load_program(NET).load_method("forward", engine="native", isolate=True)
    given = inputs_of(method.metadata)
    wanted = method.execute(given)
    process = engine_choice.kernels(isolate=True)
    assert isinstance(process, KernelProcess)
    os.kill(process._process.pid, signal.SIGKILL)
    with pytest.raises(ExecutionError) as raised:
        method.execute(given)
    assert "ended with signal 9" in str(raised.value)
    assert "engine='torch'" in str(raised.value)
    again = Runtime().load_program(NET).load_method("forward", engine="native")
    assert torch.equal(again.execute(given)[0], wanted[0])


def refused() -> Case:
    """A concatenation of two scales, which the kernels do not join."""
    made = Payload()
    other = x.PerTensorQuant(0.5, 0)
    a = made.given(torch.zeros(2, 3, dtype=torch.int8), Q8, IN)
    b = made.given(torch.zeros(2, 3, dtype=torch.int8), Q8, other)
    out = made.result((2, 6), Q8, IN)
    made.node("Concatenate2", axis=1, input1_id=a, input2_id=b, output_id=out)
    return made.case("refused")


@pytest.mark.interop
def test_payload_that_the_kernels_refuse_names_the_node_and_auto_takes_torch() -> None:
    case = refused()
    with pytest.raises(DelegateError) as raised:
        Runtime().load_program(case.program).load_method("forward", engine="native")
    assert (raised.value.node, raised.value.kind) == (0, "Concatenate2")
    assert ": invalid parameter" in raised.value.reason
    method = Runtime().load_program(case.program).load_method("forward")
    (found,) = method.measurements
    assert (found.engine, found.source) == ("torch", "host emulation")
    assert found.note.startswith("The real kernels refuse it: partition 0, node 0 (Concatenate2)")
    assert method.execute(case.inputs)[0].shape == (2, 6)


WORKER = """
import sys, torch
from runtime import Runtime
from runtime.backends.xnnpack.native import engine
mapped = lambda: any("xnnpack" in line for line in open("/proc/self/maps"))
Runtime().load_program(sys.argv[1]).load_method("forward", engine="native", isolate=True)
assert not mapped(), "in this process"
method = Runtime().load_program(sys.argv[1]).load_method("forward", engine="native")
print(method.measurements[0].source)
given = torch.load(sys.argv[2])
engine.fill = None  # inputs are read where they are
doubled = [2 * each for each in given]
torch.save([method.execute(given), method.execute(doubled), method.execute(given)], sys.argv[3])
assert mapped(), "not in this process"
"""


@pytest.mark.interop
def test_kernels_run_in_the_process_of_the_method_unless_isolated(tmp_path: Path) -> None:
    method = Runtime().load_program(NET).load_method("forward", engine="native", isolate=True)
    given = inputs_of(method.metadata)
    wanted = method.execute(given)
    torch.save(given, tmp_path / "in.pt")
    command = [sys.executable, "-W", "ignore", "-c", WORKER, str(NET)]
    command += [str(tmp_path / "in.pt"), str(tmp_path / "out.pt")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    assert (done.returncode, done.stdout.strip()) == (0, "measured on real kernels"), done.stderr
    doubled = method.execute([2 * each for each in given])
    found = torch.load(tmp_path / "out.pt")
    for one, other in zip(found, (wanted, doubled, wanted), strict=True):
        assert torch.equal(one[0], other[0])


def test_a_method_in_this_process_is_not_handed_out_as_isolated() -> None:
    program = Runtime().load_program(NET)
    method = program.load_method("forward", engine="torch")
    with pytest.raises(ExecutionError, match="loaded with its kernels in this process"):
        program.load_method("forward", isolate=True)
    assert program.load_method("forward") is method
    program.unload_method("forward")
    isolated = program.load_method("forward", engine="torch", isolate=True)
    assert program.load_method("forward", isolate=True) is isolated


ORPHAN = """
import os, subprocess, sys
code = '''
import ctypes, importlib.util, os, sys
spec = importlib.util.spec_from_file_location("child", sys.argv[1])
child = importlib.util.module_from_spec(spec)
spec.loader.exec_module(child)
child.leave_with_parent(0.05)
print(os.getpid(), flush=True)
ctypes.CDLL(None).pause()  # a call of a library that does not end
'''
made = subprocess.Popen([sys.executable, "-c", code, sys.argv[1]], stdout=subprocess.PIPE)
sys.stdout.write(made.stdout.readline().decode())
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the real kernels run on Linux only")
def test_kernels_in_a_call_end_when_their_parent_is_gone() -> None:
    command = [sys.executable, "-c", ORPHAN, str(Path(child.__file__))]
    # The pipe of errors is that of the orphan, too: it is closed when nobody is left.
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert int(found.stdout) > 0, found.stderr
