"""The Compile dialog with the configuration of a language model: its groups are its fields."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from devtools_app.appearance.theme import Theme
from devtools_app.dialogs.compile_dialog import CompileDialog
from devtools_app.state.compile_form import CompileForm, form_content, form_from
from inspector.recipes.source import Source
from inspector.toolchain.llm_recipe import llm_recipe, read_llm_config

pytestmark = [pytest.mark.gui, pytest.mark.slow]
PATIENCE = 60_000  # ms; a worker loads torch first
PLAIN = """
model: {use_kv_cache: true}
backend: {xnnpack: {enabled: true}}
quantization: {qmode: 8da4w, group_size: 32, embedding_quantize: "4,32"}
"""


class NoPaths:
    """Is asked for nothing."""


@pytest.fixture
def dialog(qtbot, theme: Theme):
    parent = QLabel()
    qtbot.addWidget(parent)
    found = CompileDialog(theme, CompileForm(), NoPaths(), parent)
    found.show()
    yield found
    found.shut_down()


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "model.yaml"
    path.write_text(PLAIN)
    return str(path)


def enter(dialog: CompileDialog, qtbot, path: str, value: str) -> None:
    dialog.fields._edited(path, value)
    qtbot.waitUntil(lambda: "being read" not in dialog._configuration, timeout=PATIENCE)


def test_fields_are_those_that_llm_export_compiles_with(dialog, config: str, qtbot) -> None:
    enter(dialog, qtbot, "source.path", config)
    for settings in ("", "model.use_kv_cache=false,quantization.qmode=4w"):
        enter(dialog, qtbot, "source.function", settings)
        source = Source(config, settings)
        asked = llm_recipe(source, read_llm_config(source))
        assert asked.partitioners == ("xnnpack",)
        form = dialog.form()
        assert form.request() == asked
        assert form_from(form_content(form)) == form
        assert form.problems() == {}
        assert dialog._ok.isEnabled()


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        ("", "source.path", "model: unknown use_kv_cash"),
        (
            "quantization.qmode=5w",
            "source.function",
            "quantization.qmode: unknown '5w'; available",
        ),
    ],
)
def test_what_is_wrong_is_at_the_field_with_the_path_of_the_key(
    dialog, config: str, qtbot, settings: str, place: str, words: str
) -> None:
    if not settings:
        Path(config).write_text(PLAIN.replace("use_kv_cache", "use_kv_cash"))
    enter(dialog, qtbot, "source.path", config)
    if settings:
        enter(dialog, qtbot, "source.function", settings)
    assert words in dialog.problem_of(place)
    assert not dialog._ok.isEnabled()
    enter(dialog, qtbot, "source.path", "")
    assert words not in dialog.problem_of(place)
