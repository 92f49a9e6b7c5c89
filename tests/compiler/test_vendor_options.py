"""Options of vendors in words: values of enumerations, errors, and what is missing."""

from __future__ import annotations

import enum
import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from compiler import export
from compiler.backends.vendors import openvino
from compiler.backends.vendors.create import (
    VendorError,
    create_partitioner_of,
    create_quantizer_of,
    load_creators,
    operators_of,
    options_of,
)
from compiler.backends.vendors.options import Creator, OptionError, VendorOptions
from compiler.named import parse_named
from compiler.partition.logged_reasons import harvesting
from compiler.partition.named_partitioners import (
    PartitionerNameError,
    create_partitioner,
    is_called,
    parse_partitioner,
)
from compiler.partition.quantized_regions import whole_regions
from compiler.quantize.program import named_quantizer
from inspector.toolchain.listing import own_partitioners
from schema import backends
from schema.vendors.needs import VendorNeed
from schema.vendors.table import VENDORS, Vendor, vendor_called

pytestmark = pytest.mark.slow


class Colour(enum.Enum):
    """An enumeration as vendors have them."""

    RED = 1
    GREEN = 2


def toy(options: VendorOptions) -> Creator:
    found = {
        "colour": options.member("colour", Colour, Colour.RED),
        "deep": options.flag("deep"),
        "count": options.number("count", 3),
        "names": options.words("names"),
    }
    return lambda: SimpleNamespace(partition=lambda program: program, **found)


def broken(options: VendorOptions) -> Creator:
    del options

    def create() -> Any:
        raise ValueError("a list of forty passes") from KeyError("the first cause")

    return create


TOY = Vendor(
    "toy-vendor", "ToyBackend", "Toy", "none", "toy.home:ToyPartitioner", f"{__name__}:toy"
)


@pytest.fixture(autouse=True)
def _found_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends._MODULES, __name__, sys.modules[__name__])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (Colour.RED, False, 3, [])),
        ({"colour": "green", "deep": "true", "count": 5}, (Colour.GREEN, True, 5, [])),
        ({"names": "a, b", "deep": True}, (Colour.RED, True, 3, ["a", "b"])),
    ],
)
def test_words_become_values(given: dict[str, Any], expected: tuple[object, ...]) -> None:
    made = create_partitioner_of(TOY, given)
    assert (made.colour, made.deep, made.count, made.names) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"color": "red"}, "toy-vendor has no option 'color'; available: colour, deep, count"),
        ({"colour": "blue"}, "toy-vendor: colour cannot be 'blue'; available: RED, GREEN"),
        ({"deep": "maybe"}, "toy-vendor: deep cannot be 'maybe'; available: true, false"),
        ({"count": "many"}, "toy-vendor: count cannot be 'many'; expected a whole number"),
        ({"count": True}, "expected a whole number"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_available(given: dict[str, Any], words: str) -> None:
    with pytest.raises(VendorError, match="toy-vendor") as caught:
        create_partitioner_of(TOY, given)
    assert words in str(caught.value)


def test_options_are_listed_with_the_values_of_their_enumerations() -> None:
    assert options_of(TOY) == {
        "colour": ("RED", "GREEN"),
        "deep": ("true", "false"),
        "count": (),
        "names": (),
    }
    assert operators_of(TOY) == []


def test_innermost_cause_of_a_vendor_is_told() -> None:
    one = Vendor("bad", "", "", "", "a:B", f"{__name__}:broken")
    with pytest.raises(VendorError, match="the first cause") as caught:
        create_partitioner_of(one, {})
    assert "forty passes" not in str(caught.value)


def test_what_is_missing_is_one_sentence_with_how_to_get_it() -> None:
    one = Vendor(
        *("gone", "", "", "", "a:B", f"{__name__}:toy"),
        needs=(VendorNeed("no_such_module"),),
        packages=("no-such>=1",),
    )
    with pytest.raises(VendorError) as caught:
        create_partitioner_of(one, {})
    assert str(caught.value) == (
        "gone is not available here: the module no_such_module is not installed;"
        " pip install 'no-such>=1' or `etscope backends install gone`"
    )
    with pytest.raises(VendorError, match="gone has no quantizer"):
        create_quantizer_of(one, {})


def test_every_line_of_the_table_names_functions_that_exist() -> None:
    load_creators()
    for one in VENDORS:
        for place in filter(None, (one.make, one.quantizer, one.operators)):
            assert callable(backends.resolve(place))


def test_first_word_of_a_quantizer_is_its_mode() -> None:
    assert parse_named("openvino:INT8_SYM", "mode").options == {"mode": "INT8_SYM"}
    found = parse_named("ethos-u:a16w8:target=ethos-u85-256", "mode")
    assert found.options == {"mode": "a16w8", "target": "ethos-u85-256"}


def test_names_that_nothing_has_are_refused() -> None:
    with pytest.raises(PartitionerNameError, match="did you mean openvino"):
        create_partitioner(parse_partitioner("openvin"))
    with pytest.raises(PartitionerNameError, match="cortex-m has no partitioner"):
        create_partitioner(parse_partitioner("cortex-m"))
    with pytest.raises(ValueError, match=r"available: file.py:NAME, openvino, coreml"):
        named_quantizer("openvin")
    with pytest.raises(OptionError, match="expected a whole number"):
        VendorOptions("x", {"n": "1.5"}).number("n")


def test_vendor_that_is_not_here_is_refused_before_anything_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(VendorNeed, "is_met", lambda *_: False)
    with pytest.raises(PartitionerNameError, match="openvino is not available here"):
        create_partitioner(parse_partitioner("openvino:device=CPU"))


def test_every_spelling_means_the_same_partitioner() -> None:
    assert is_called("ethosu", "EthosUPartitioner")
    assert is_called("ethos-u:target=ethos-u55-128", "EthosUPartitioner")
    assert is_called("EthosUPartitioner", "EthosUPartitioner")
    assert not is_called("vgf", "EthosUPartitioner")


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    """Put a stand-in of a vendor's module where the real one would be."""
    module = ModuleType(f"executorch.backends.{name}")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, module.__name__, module)


class Recorded:
    """Keeps the arguments it was created with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def partition(self, program: Any) -> Any:
        return program


def vendor(name: str) -> Vendor:
    found = vendor_called(name)
    assert found is not None
    return found


@pytest.fixture
def _all_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stand-ins of SDKs count as installed."""
    monkeypatch.setattr(VendorNeed, "is_met", lambda *_: True)


@pytest.mark.usefixtures("_all_here")
def test_stand_in_sdk_of_a_device_only_vendor_gets_its_specs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compiler.backends.vendors.devices.spec", lambda key, value: (key, value))
    stand_in(monkeypatch, "mediatek.partitioner", NeuropilotPartitioner=Recorded)
    made = create_partitioner_of(vendor("mediatek"), {"platform": "mt6991", "opt": 3})
    assert made.args == ([("platform-config", b"mt6991"), ("opt", b"3")],)

    def generate(
        config: str,
        extra_flags: str | None = None,
        use_neutron_for_format_conversion: bool = True,
        fetch_constants_to_sram: bool = False,
        use_profiling: bool = False,
        operators_not_to_delegate: list[str] | None = None,
    ) -> list[object]:
        return [config, use_profiling, operators_not_to_delegate]

    stand_in(monkeypatch, "nxp.neutron_partitioner", NeutronPartitioner=Recorded)
    stand_in(monkeypatch, "nxp.backend.neutron_target_spec", NeutronTargetSpec=str)
    stand_in(monkeypatch, "nxp.nxp_backend", generate_neutron_compile_spec=generate)
    words = {"use_profiling": "true", "operators_not_to_delegate": "aten::relu"}
    made = create_partitioner_of(vendor("nxp"), words)
    assert made.args == (["imxrt700", True, ["aten::relu"]], "imxrt700")


class Specification:
    """The parser of TOSA's specifications in the little that options ask of it."""

    def __init__(self, text: str) -> None:
        self.text, self.profiles = text, text.split("+")[1:2]
        self.valid_extensions = {"INT": ["int16", "cf"], "FP": ["bf16", "cf"]}

    def __str__(self) -> str:
        return self.text

    @staticmethod
    def create_from_string(text: str) -> Specification:
        if text.split("+")[:2] not in (["TOSA-1.0", "INT"], ["TOSA-1.0", "FP"]):
            raise ValueError(f"Failed to parse {text}")
        return Specification(text)

    @classmethod
    def all_versions_and_profiles(cls) -> list[Specification]:
        return [cls("TOSA-1.0+INT"), cls("TOSA-1.0+FP")]


@pytest.mark.usefixtures("_all_here")
@pytest.mark.parametrize("given", ["TOSA-9+FP", "TOSA-1.0", "int8", "", True])
@pytest.mark.parametrize("name", ["tosa", "vgf"])
def test_specification_that_a_vendor_cannot_read_is_refused_with_those_it_has(
    name: str, given: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "arm.tosa.specification", TosaSpecification=Specification)
    stand_in(monkeypatch, "arm.tosa.compile_spec", TosaCompileSpec=Recorded)
    stand_in(monkeypatch, "arm.tosa.partitioner", TOSAPartitioner=Recorded)
    stand_in(monkeypatch, "arm.vgf", VgfCompileSpec=Recorded, VgfPartitioner=Recorded)
    stand_in(monkeypatch, "arm.quantizer", TOSAQuantizer=Recorded, VgfQuantizer=Recorded)
    for making in (create_partitioner_of, create_quantizer_of):
        with pytest.raises(VendorError) as refused:
            making(vendor(name), {"spec": given})
        assert str(refused.value).endswith(
            f"{name}: spec cannot be {str(given)!r}; available: TOSA-1.0+INT, TOSA-1.0+FP;"
            " extensions, by version and profile: +int16, +cf, +bf16"
        )
        assert refused.value.__cause__ is not None
        assert refused.value.__cause__.__cause__ is None  # whose place is in the vendor's package
    made = create_partitioner_of(vendor(name), {"spec": "TOSA-1.0+INT+int16"})
    assert made.args[0].args[0] == "TOSA-1.0+INT+int16"


@pytest.mark.usefixtures("_all_here")
def test_stand_in_sdks_of_other_device_only_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    chips = enum.IntEnum("chips", {"UNDEFINED_CHIP_V": 0, "E9955": 9955, "E9965": 9965})
    modes = enum.IntEnum("modes", {"DEFAULT": 0, "HIGH_PERFORMANCE": 1})
    stand_in(monkeypatch, "samsung.partition.enn_partitioner", EnnPartitioner=Recorded)
    stand_in(
        *(monkeypatch, "samsung.serialization.compile_options"),
        SamsungChipset=chips,
        PerformanceMode=modes,
        gen_samsung_backend_compile_spec=lambda chip, mode: (chip, mode),
    )
    made = create_partitioner_of(vendor("samsung"), {"chipset": "e9965"})
    assert made.args == ([("E9965", None)],)
    with pytest.raises(VendorError, match="available: E9955, E9965"):
        create_partitioner_of(vendor("exynos"), {"chipset": "E1"})
    soc = enum.IntEnum("soc", {"SM8650": 57, "SM8750": 69})
    stand_in(monkeypatch, "qualcomm.partition.qnn_partitioner", QnnPartitioner=Recorded)
    stand_in(monkeypatch, "qualcomm.serialization.qc_schema", QcomChipset=soc)
    stand_in(
        *(monkeypatch, "qualcomm.utils.utils"),
        generate_qnn_executorch_compiler_spec=lambda **given: given,
        generate_htp_compiler_spec=lambda use_fp16: ("htp", use_fp16),
        generate_gpu_compiler_spec=lambda: ("gpu",),
        generate_lpai_compiler_spec=lambda: ("lpai",),
    )
    made = create_partitioner_of(vendor("qnn"), {"soc": "SM8750", "profile_level": 2})
    assert made.args[0]["backend_options"] == ("htp", True)
    assert (made.args[0]["soc_model"], made.args[0]["profile_level"]) == (soc.SM8750, 2)
    with pytest.raises(VendorError, match="backend cannot be 'cpu'; available: htp, gpu, lpai"):
        create_partitioner_of(vendor("qualcomm"), {"backend": "cpu"})


def test_list_of_a_toolchain_has_every_vendor_with_what_is_missing(tmp_path: Path) -> None:
    rows = {one["alias"]: one for one in own_partitioners()}
    assert {one.alias for one in VENDORS if one.place} < set(rows)
    assert rows["metal"]["why_not"] == "it needs macOS" or sys.platform == "darwin"
    assert all(bool(one["why_not"]) == bool(one["install"]) for one in rows.values())
    assert not list(tmp_path.iterdir())


class Quantized:
    """A node of a graph in the little that regions ask of it."""

    def __init__(self, name: str, *read: Quantized) -> None:
        self.name, self.all_input_nodes, self.users = name, list(read), list[Quantized]()
        self.meta = {"val": SimpleNamespace(dtype=SimpleNamespace(is_floating_point=True))}
        for one in read:
            one.users.append(self)


def test_what_is_quantized_together_stays_together() -> None:
    a = Quantized("dequantize_per_tensor")
    conv = Quantized("conv", a)
    relu = Quantized("relu", conv)
    b = Quantized("dequantize_per_tensor", Quantized("quantize_per_tensor", relu))
    sin = Quantized("sin", b)
    c = Quantized("quantize_per_tensor", sin)
    nodes = [a, conv, relu, b, sin, c]
    found = whole_regions({relu: ("deny_ops", "")}, nodes, lambda node: node.name)
    assert {node.name for node in found} == {"conv"}
    assert "cannot be taken out alone" in found[conv][1]
    assert whole_regions({sin: ("deny_ops", "")}, nodes, lambda node: node.name) == {}
    assert whole_regions({relu: ("deny_ops", "")}, [conv, relu], lambda node: node.name) == {}
    real = Quantized("real")  # a part that is not quantized: nothing is converted for it
    behind = Quantized("behind", real)
    every = [*nodes, real, behind]
    assert whole_regions({real: ("deny_ops", "")}, every, lambda node: node.name) == {}


def test_printed_and_logged_lines_are_read_and_passed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("aten.erf.default", "aten_erf_default")
    with harvesting(names, lambda *_, **__: None, prints=True) as harvest:
        sys.stdout.write("Op not supported:  torch.ops.aten.erf.default\n")
        sys.stdout.write("Op is fine: aten.erf.default\n")
    assert [one.text for one in harvest.found["aten.erf.default"]] == [
        "Op not supported:  torch.ops.aten.erf.default"
    ]
    assert "Op is fine" in capsys.readouterr().out


@pytest.mark.parametrize("logger", ["executorch.backends.vulkan.partitioner", "root"])
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Skipping aten_erf_default: no operator implementation", "aten_erf_default"),
        ("aten.erf.default is not supported", "aten.erf.default"),
        ("| aten_erf_default | 3 | dtype |", "aten_erf_default"),
    ],
)
def test_lines_of_vendors_loggers_are_reasons_at_any_level(
    line: str, name: str, logger: str
) -> None:
    names = ("aten.erf.default", "aten_erf_default")
    own = logging.getLogger(None if logger == "root" else logger)
    level = own.level
    notes: list[str] = []
    with harvesting(names, lambda *_, text="", **__: notes.append(text)) as harvest:
        own.warning(line)
        if logger != "root":  # its level is the user's
            own.debug("%s is not supported (debug)", "aten.erf.default")
    assert own.level == level
    assert harvest.found[name][0].logger == own.name
    assert notes == [f"{own.name}: {line}"]
    debug = [one.text for one in harvest.found.get("aten.erf.default", ())]
    assert any("(debug)" in text for text in debug) is (logger != "root")


@pytest.mark.filterwarnings("ignore")  # of torch, about its own layers
@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
def test_recurrent_layers_are_decomposed_for_nncf_and_other_operators_stay(
    layer: type[nn.Module],
) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.head = layer(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.silu(self.head(self.cells(x)[0]))

    given = (torch.randn(1, 2, 3),)
    program = export(Net().eval(), given)
    plain = openvino._Nncf("INT8_SYM").prepared(program)
    names = {str(node.target) for node in plain.graph.nodes if node.op == "call_function"}
    assert not names & {"aten.gru.input", "aten.lstm.input", "aten.rnn_tanh.input"}
    assert {"aten.linear.default", "aten.silu.default"} <= names
    assert torch.allclose(plain.module()(*given), program.module()(*given), atol=1e-6)
