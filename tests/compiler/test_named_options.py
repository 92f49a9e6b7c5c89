"""Bad options and values in words: one sentence with the option, the value and what is allowed."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from compiler.backends.vendors import arm, vgf_flags
from compiler.backends.vendors.options import OptionError, VendorOptions
from compiler.backends.xnnpack.partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackQuantizedPartitioner,
)
from compiler.innermost import ToolExitError, innermost, telling_exits
from compiler.named import UnknownNameError
from compiler.named_options import NamedOptionError, options_in_words
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner

_INI = """
[System_Config.Small]
[System_Config.Large]
[Memory_Mode.Shared_Sram]
"""


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("xnnpack:foo=1", "xnnpack has no option 'foo'; available: "),
        ("xnnpack:per_op_mode=maybe", "per_op_mode cannot be 'maybe'; available: true, false"),
        ("xnnpack:enable_bf16=3", "enable_bf16 cannot be 3; available: true, false"),
        (
            "xnnpack:config_precisions=zz",
            "config_precisions cannot be 'zz'; available: FP32, STATIC_QUANT, DYNAMIC_QUANT",
        ),
    ],
)
def test_bad_option_of_a_partitioner_is_refused(asked: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        create_partitioner(parse_partitioner(asked))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("cls", "there"),
    [
        (XnnpackDynamicallyQuantizedPartitioner, "configs, config_precisions"),  # those of its base
        (XnnpackQuantizedPartitioner, "none"),
    ],
)
def test_class_that_takes_any_name_has_the_options_of_its_base(cls: type, there: str) -> None:
    with pytest.raises(NamedOptionError, match=f"mine has no option 'verbos'; available: {there}"):
        options_in_words("mine", cls, {"verbos": True})


def test_options_are_given_as_they_are_meant() -> None:
    made = create_partitioner(parse_partitioner("xnnpack:per_op_mode=true:config_precisions=fp32"))
    assert made.per_op_mode is True
    assert [one.name for one in made.precisions] == ["FP32"]


@pytest.fixture
def vela(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a stand-in of Vela's package, which is a namespace without a file."""
    own = tmp_path / "ethosu" / "config_files" / "Arm"
    own.mkdir(parents=True)
    (own / "vela.ini").write_text(_INI)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ethosu", raising=False)
    return tmp_path


def test_modes_are_those_of_the_configuration(vela: Path) -> None:
    assert arm.config_sections("Arm/vela.ini") == {
        "System_Config": ("Small", "Large"),
        "Memory_Mode": ("Shared_Sram",),
    }
    other = vela / "other.ini"
    other.write_text("[Memory_Mode.Only]\n")
    assert arm.config_sections(str(other))["Memory_Mode"] == ("Only",)
    with pytest.raises(OptionError, match=r"'zz.ini' is not a file; available: Arm/vela.ini"):
        arm.config_sections("zz.ini")
    other.write_text("no section\n")
    with pytest.raises(OptionError, match="cannot be read"):
        arm.config_sections(str(other))


def test_exit_of_a_tool_is_told_by_the_last_line_it_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)

    def tool() -> None:
        sys.stderr.write("usage: tool [--help]\n\ntool: error: unrecognized arguments: --foo\n")
        sys.exit(2)

    with pytest.raises(ToolExitError) as caught, telling_exits():
        tool()
    assert innermost(caught.value) == "tool: error: unrecognized arguments: --foo"
    assert "usage" in written.getvalue()
    with pytest.raises(ToolExitError, match="exit with code 3"), telling_exits():
        sys.exit(3)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b"reading\nError: no such flag\n\n", "converter: Error: no such flag"),
        ("bad\n", "converter: bad"),
        (None, "converter: ended with exit code 4"),
    ],
)
def test_failed_command_is_told_by_what_it_wrote(written: bytes | str | None, told: str) -> None:
    error = subprocess.CalledProcessError(4, ["/somewhere/converter", "-i"], stderr=written)
    wrapped = RuntimeError("a list of passes")
    wrapped.__cause__ = error
    assert innermost(wrapped) == told


_VELA = """
def main(argv):
    if "--foo" in argv:
        raise ValueError("unknown --foo")
    if "--list" not in argv:
        open(argv[-1])
"""


def test_vela_reads_its_options_before_there_is_a_network(
    vela: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vela / "ethosu" / "vela").mkdir()
    (vela / "ethosu" / "vela" / "vela.py").write_text(_VELA)
    monkeypatch.delitem(sys.modules, "ethosu.vela", raising=False)
    monkeypatch.delitem(sys.modules, "ethosu.vela.vela", raising=False)
    arm.check_vela(["--good"])
    with pytest.raises(ValueError, match="unknown --foo"):
        arm.check_vela(["--foo"])
    with pytest.raises(ToolExitError, match="compiles nothing"):
        arm.check_vela(["--list"])


_CONVERTER = """#!{python}
import sys
*flags, _, graph, _, made = sys.argv[1:]
if flags == ["--bad"] or "{broken}":
    sys.exit("Unknown argument")
if flags != ["--help"]:
    open(made, "wb").write(b"VGF1" * len(open(graph).read()))
"""


@pytest.mark.parametrize(
    ("flags", "broken", "refused"),
    [
        ("--bad", "", "vgf: compiler_flags cannot be '--bad': Unknown argument"),
        ("--help", "", "vgf: compiler_flags cannot be '--help': with them it writes no VGF"),
        ("--good", "", ""),
        ("--bad", "it takes no graph of ours at all", ""),
    ],
)
def test_flags_that_the_model_converter_refuses(
    flags: str, broken: str, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converter = tmp_path / "model-converter"
    converter.write_text(_CONVERTER.format(python=sys.executable, broken=broken))
    converter.chmod(0o755)
    home = SimpleNamespace(
        require_model_converter_executable=lambda: converter, model_converter_env=lambda: None
    )
    monkeypatch.setattr(vgf_flags, "backend_part", lambda _: home)
    monkeypatch.setattr(arm, "backend_part", lambda _: SimpleNamespace(VgfCompileSpec=list))
    monkeypatch.setattr(arm, "_specification", lambda *_: "")
    options = VendorOptions("vgf", {"compiler_flags": flags})
    with pytest.raises(OptionError, match=refused) if refused else nullcontext():
        arm.vgf(options)
