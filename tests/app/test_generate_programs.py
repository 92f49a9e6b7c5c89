"""The Generate view with a program of two methods, and with one whose tokenizer is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pytestqt.qtbot import QtBot

from devtools_app.views.generate import GenerateView
from runtime.llm.generation import GenerationConfig
from runtime.llm.text_runner import TextRunner
from tests.app.test_generate_view import WORKER, press, shown_in
from tests.app.window_views import open_sample
from tests.inspector.cli_runs import run
from tests.inspector.jobs_here import Here
from tests.llm.configs import CACHE, LENGTHS, NANO
from tests.llm.tokenizer_files import json_files

pytestmark = [pytest.mark.gui, pytest.mark.slow]


def _exported(folder: Path, vocabulary: int, **more: Any) -> Path:
    base = {"params": {**NANO, "vocab_size": vocabulary}, **more.pop("base", {})}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump({"base": base, "model": CACHE, "export": LENGTHS, **more}))
    found = run("llm", "export", str(path), "-o", str(folder / "out"))
    assert found.code == 0, found.err
    return folder / "out/model.pte"


def _view(
    program: Path, make_window: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> GenerateView:
    monkeypatch.setattr(WORKER, Here)
    window = make_window()
    open_sample(window, qtbot, (str(program),))
    view = shown_in(window, qtbot)
    qtbot.waitUntil(lambda: view.fields.tokenizer.placeholderText() == "that of tiny.yaml")
    qtbot.keyClicks(view.fields.prompt, "Hello")
    view.fields.tokens.setValue(9)
    return view


def _generate(view: GenerateView, qtbot: QtBot) -> None:
    press(view, qtbot, "Generate")
    qtbot.waitUntil(lambda: not view.runner.running)


def test_prefill_and_decode_over_one_cache_generate_in_the_window(
    tmp_path: Path, make_window: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = [
        {"method_name": "prefill"},
        {"method_name": "decode", "export_seq_len": 1},
    ]
    program = _exported(tmp_path, 256, multimethod={"methods": methods})
    view = _view(program, make_window, qtbot, monkeypatch)
    stats = TextRunner(program, "bytes").generate("Hello", GenerationConfig(max_new_tokens=9))
    for _ in range(2):  # the cache of the first text is not seen by the second
        _generate(view, qtbot)
        assert view.error == ""
        current = view.runner.current
        assert current is not None
        assert current.outcome is not None
        assert current.outcome.result["tokens"] == stats.tokens
    kinds = [view.calls.rows.text(row, 1) for row in range(view.calls.rows.length)]
    assert kinds == ["prefill", *["decode"] * 8]


@pytest.mark.parametrize("named", [False, True], ids=["none", "gone"])
def test_a_missing_tokenizer_is_said_and_generation_goes_on_with_one_that_is_chosen(
    tmp_path: Path, named: bool, make_window: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = json_files(tmp_path) / "tokenizer.json"
    base = {"base": {"tokenizer_path": str(tokenizer)}} if named else {}
    program = _exported(tmp_path, 300, **base)
    chosen = tokenizer.rename(tmp_path / "chosen.json")
    view = _view(program, make_window, qtbot, monkeypatch)
    _generate(view, qtbot)
    assert f"{program}" in view.error
    assert "name its tokenizer" in view.error
    assert (str(tokenizer) in view.error) is named
    assert "--" not in view.error, "options of the command line are not here"
    assert view.output.toPlainText() == ""
    qtbot.keyClicks(view.fields.tokenizer, str(chosen))
    assert view.fields.problem(view.fields.tokenizer) == ""
    _generate(view, qtbot)
    assert view.error == ""
    assert view.output.toPlainText() == view._text
    stats = TextRunner(program, chosen).generate("Hello", GenerationConfig(max_new_tokens=9))
    current = view.runner.current
    assert current is not None
    assert current.outcome is not None
    assert current.outcome.result["tokens"] == stats.tokens
