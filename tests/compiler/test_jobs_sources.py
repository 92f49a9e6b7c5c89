"""What a user's function may return, and what is said of those that fail; without a worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.partition.named_partitioners import (
    NamedObject,
    PartitionerNameError,
    create_partitioner,
    parse_partitioner,
)
from inspector.compat.devtools.etrecord import parse_etrecord
from inspector.worker import exporter
from inspector.worker.exporter import AnswerError
from inspector.worker.recorded import adopt_dim_order, recorded_programs
from schema.backends import partitioners
from schema.errors import FormatError
from tests.compiler.test_jobs import SOURCES, line_of

pytestmark = pytest.mark.slow
DATA = Path(__file__).parents[1] / "data"
RECORDS = (
    DATA / "corpus/v1.0.1/convnet_xnnpack/model.etrecord",
    DATA / "corpus/v1.5.1/convnet_portable/model.etrecord",
    DATA / "extra/two_methods/model.etrecord",
)


class Told:
    """Keeps messages."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, kind: str, **content: Any) -> None:
        self.messages.append((kind, content))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [content for found, content in self.messages if found == kind]


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what running a user's file does to the process."""
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    yield
    for name in set(sys.modules) - modules:
        if name.endswith("job_sources"):
            del sys.modules[name]


def failure_of(function: str, *methods: str) -> dict[str, Any]:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever the user's code raises
        exporter.exported(str(SOURCES), function, methods, Told())
    stack = caught.value.__traceback__
    assert stack is not None
    return exporter.failure(caught.value.with_traceback(stack.tb_next))  # this file is no user's


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("untraceable", "depends on values of a tensor, known only at run time; torch.cond"),
        ("wrong_input", "RuntimeError"),
        ("too_many_inputs", "too many positional arguments"),
        ("raises", "ValueError: deliberate: no weights"),
        ("raises_at_length", "ValueError: long long"),
        ("asks_to_exit", "sys.exit('bye')"),
        ("eats_memory", "MemoryError"),
        ("unshowable", "UnshowableError"),
        ("returns_nothing", "nothing was returned; expected (module, inputs)"),
    ],
)
def test_failure_has_one_short_line_and_the_place(function: str, words: str) -> None:
    found = failure_of(function)
    assert words in found["sentence"]
    assert "\n" not in found["sentence"]
    assert len(found["sentence"]) < 1000
    assert (found["file"], found["line"]) == (str(SOURCES), line_of(function))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("not_dynamic", "Constraints violated (rows)!"),
        ("needs_arguments", "missing 1 required positional argument: 'width'"),
        ("returns_a_module", "a Net was returned"),
        ("returns_a_class", "is the class Net; expected an object of it"),
        ("returns_no_inputs", "has no example inputs"),
        ("scripted", "method 'forward' is in TorchScript, which cannot be exported"),
        ("NUMBER", "job_sources.py: an int was returned; expected (module, inputs)"),
        ("not_there", "has no function 'not_there'; available: good, products"),
    ],
)
def test_failure_says_what_was_expected(function: str, words: str) -> None:
    found = failure_of(function)
    assert words in found["sentence"]
    assert "\n" not in found["sentence"]


def test_graph_that_torch_gives_up_is_a_part_of_the_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = Told()
    with pytest.raises(Exception, match="data-dependent"):
        exporter.exported(str(SOURCES), "untraceable", (), told)
    assert any("def forward(" in one["text"] for one in told.of("log"))
    assert "def forward(" not in "".join(capfd.readouterr())


NET = torch.nn.Linear(4, 4).eval()
X = torch.ones(2, 4)
EXPORTED = torch.export.export(NET, (X,), strict=False)
FORMS: dict[str, tuple[Any, set[str]]] = {
    "pair": ((NET, (X,)), {"forward"}),
    "lone tensor": ((NET, X), {"forward"}),
    "list of inputs": ([NET, [X]], {"forward"}),
    "no kwargs": ((NET, (X,), None, None), {"forward"}),
    "keywords": ((NET, (), {"input": X}), {"forward"}),
    "tuple with methods": ((NET, X, None, None, {"other": (NET, X)}), {"forward", "other"}),
    "dict": ({"module": NET, "inputs": (X,)}, {"forward"}),
    "only methods": ({"methods": {"a": (NET, X), "b": EXPORTED}}, {"a", "b"}),
    "by name": ({"encode": (NET, X), "decode": {"module": NET, "inputs": X}}, {"encode", "decode"}),
    "exported": (EXPORTED, {"forward"}),
    "exported in a dict": ({"module": EXPORTED}, {"forward"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_exported(form: str) -> None:
    answer, methods = FORMS[form]
    found = exporter.export_answer(answer, (), Told())
    assert set(found.programs) == methods
    for program in found.programs.values():
        given = program.example_inputs or ((X,), {})
        assert torch.equal(program.module()(*given[0], **given[1]), NET(X))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "an int was returned"),
        ((), "nothing|a dict was returned"),
        ({}, "a dict was returned"),
        ((NET, X, None, None, {}, {}, {}), "a tuple of 7 was returned"),
        ((NET, 3), "the inputs of method 'forward' are an int"),
        ((NET, X, X), "the kwargs are a Tensor, expected a dict"),
        ({"module": NET, "input": X}, "a dict with 'input' was returned"),
        ((NET, X, None, None, {"forward": (NET, X)}), "'forward' is there twice"),
        ((lambda x: x, X), "is a function, expected a torch.nn.Module"),
        ({"modul": NET, "inputs": X}, "a dict without 'module' was returned"),
        ({"constant_methods": {"n": 3}}, "a dict without 'module' was returned"),
        ({"encode": 3}, "method 'encode' is an int"),
    ],
)
def test_other_forms_are_refused(answer: Any, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        exporter.export_answer(answer, (), Told())


def test_bound_method_shares_its_weights_and_leaves_the_module_alone() -> None:
    told = Told()
    found = exporter.exported(str(SOURCES), "every_form", (), told)
    forward, scaled = found.programs["forward"], found.programs["scaled"]
    assert forward.state_dict["fc.weight"] is scaled.state_dict["fc.weight"]
    assert found.constants == {"vocabulary": 32000}
    assert set(exporter.exported(str(SOURCES), "every_form", ("scaled",), told).programs) == {
        "scaled"
    }


def test_training_mode_is_warned_of_once_a_method() -> None:
    told = Told()
    exporter.exported(str(SOURCES), "training", (), told)
    (warning,) = told.of("warning")
    assert "training mode: dropout or batch norm trains in drop;" in warning["text"]
    assert warning["file"] == str(SOURCES)
    partly = Told()
    exporter.exported(str(SOURCES), "partly_training", (), partly)
    (warning,) = partly.of("warning")
    assert (
        "method forward is in training mode: dropout or batch norm trains in second;"
        in (warning["text"])
    )


@pytest.mark.parametrize("function", ["good", "training_alike"])
def test_a_module_that_computes_the_same_after_eval_is_not_warned_of(function: str) -> None:
    quiet = Told()
    exporter.exported(str(SOURCES), function, (), quiet)
    assert quiet.of("warning") == []


def test_modules_beside_the_file_that_ours_hide_are_warned_of(tmp_path: Path) -> None:
    model = tmp_path / "job_sources.py"
    model.write_text(SOURCES.read_text("utf-8"), "utf-8")
    (tmp_path / "compiler.py").write_text("", "utf-8")
    told = Told()
    exporter.exported(str(model), "good", (), told)
    (warning,) = told.of("warning")
    assert "module compiler next to the file is shadowed" in warning["text"]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_recorded_edge_programs_have_the_compilers_operators(path: Path) -> None:
    record = parse_etrecord(path)
    found = record.edge_dialect_program
    assert found is not None
    programs = [found] if isinstance(found, torch.export.ExportedProgram) else found.values()
    for program in programs:
        adopt_dim_order(program)
        for node in program.graph.nodes:
            assert "etscope_recorded" not in str(node.target)
    assert set(recorded_programs(str(path), ())) == set(record.artifact.roles.edge)
    with pytest.raises(KeyError, match="unknown method 'other'; available"):
        recorded_programs(str(path), ("other",))


def test_record_that_lost_a_method_is_warned_of(tmp_path: Path) -> None:
    whole, said = RECORDS[2].read_bytes(), list[str]()
    cut = tmp_path / "cut.etrecord"
    cut.write_bytes(whole[: len(whole) // 2])
    assert set(recorded_programs(str(cut), (), said.append)) == {"encode"}
    (warning,) = said
    assert warning.startswith("the record is damaged, only its readable part is compiled: zip")
    said.clear()
    assert set(recorded_programs(str(RECORDS[2]), (), said.append)) == {"encode", "decode"}
    assert said == []


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_record_that_was_cut_off_is_refused_with_what_is_wrong_with_it(
    share: float, tmp_path: Path
) -> None:
    whole = RECORDS[0].read_bytes()
    cut = tmp_path / "cut.etrecord"
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(FormatError, match="zip") as found:
        recorded_programs(str(cut), ())
    assert found.value.file == str(cut)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("demo-all", NamedObject("demo-all")),
        (
            "X:a=1:b=text:c=True:d=none",
            NamedObject("X", {"a": 1, "b": "text", "c": True, "d": None}),
        ),
        ("dir/mine.py:Mine", NamedObject("dir/mine.py:Mine")),
        ("mine.py:Mine:depth=2", NamedObject("mine.py:Mine", {"depth": 2})),
    ],
)
def test_partitioner_with_options_is_parsed(text: str, asked: NamedObject) -> None:
    assert parse_partitioner(text) == asked


def test_partitioners_of_the_table_can_be_made_by_both_names() -> None:
    for entry in partitioners():
        for name in (entry.alias, entry.class_name):
            assert type(create_partitioner(NamedObject(name))).__name__ == entry.class_name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("demo-al", "did you mean demo-all"),
        ("demo-all:colour=red", "has no option 'colour'; available: none"),
        ("xnnpack:configs=3", "does not accept these options"),
        ("demo-all:colour", "expected option=value"),
        ("none.py:Mine", "none.py: file not found"),
        (f"{SOURCES}:Mine", "does not define 'Mine'"),
        (f"{SOURCES}:Net", "is not a partitioner"),
    ],
)
def test_partitioner_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(PartitionerNameError, match=words):
        create_partitioner(parse_partitioner(text))
