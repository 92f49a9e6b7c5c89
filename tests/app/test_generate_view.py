"""The Generate view: a prompt, text as it appears, a stop, times and calls, errors in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import JobAction
from devtools_app.state.tab_groups import TabGroup
from devtools_app.viewmodels.call_series import GENERATED
from devtools_app.views.calls import CallsPane
from devtools_app.views.generate import GenerateView
from inspector.jobs.generating import GenerateJob
from inspector.jobs.messages import STOP, Ended, Generated, Outcome, StageProgress
from runtime.llm.generation import GenerationConfig
from runtime.llm.text_runner import TextRunner
from tests.app.test_access import nameless
from tests.app.window_views import host_of, open_sample
from tests.inspector.cli_runs import run
from tests.inspector.jobs_here import Here, Scripted
from tests.inspector.sessions import DATA
from tests.llm.configs import CACHE, LENGTHS, NANO

pytestmark = [pytest.mark.gui, pytest.mark.slow]
WORKER = "inspector.jobs.run.Worker"
CALLS = [
    {"kind": "prefill", "position": 0, "tokens": 5, "ms": 3.0},
    {"kind": "decode", "position": 5, "tokens": 1, "ms": 1.0},
    {"kind": "decode", "position": 6, "tokens": 1, "ms": 1.5},
]
REPORT: dict[str, Any] = {
    "text": "abc",
    "ended": "stopped",
    "prompt_tokens": 5,
    "tokens": [97, 98, 99],
    "load_ms": 2.0,
    "prefill_ms": 3.0,
    "first_token_ms": 3.1,
    "tokens_per_second": 800.0,
    "calls": CALLS,
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small GPT with a token for each byte, exported by the command line."""
    folder = tmp_path_factory.mktemp("llm")
    config = {"base": {"params": {**NANO, "vocab_size": 256}}, "model": CACHE, "export": LENGTHS}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(config))
    found = run("llm", "export", str(path), "-o", str(folder / "out"))
    assert found.code == 0, found.err
    return folder / "out"


@pytest.fixture
def view(make_window: Any, qtbot: QtBot, exported: Path) -> GenerateView:
    window = make_window()
    open_sample(window, qtbot, (str(exported / "model.pte"),))
    return shown_in(window, qtbot)


def shown_in(window: MainWindow, qtbot: QtBot) -> GenerateView:
    window.show_view("generate")
    qtbot.waitUntil(lambda: isinstance(host_of(window, "generate").view, GenerateView))
    found = host_of(window, "generate").view
    assert isinstance(found, GenerateView)
    return found


def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    worker = Scripted()
    monkeypatch.setattr(WORKER, lambda *_args, **_more: worker)
    return worker


def press(view: GenerateView, qtbot: QtBot, text: str) -> None:
    button = next(one for one in view.findChildren(QPushButton) if one.text() == text)
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_text_appears_as_tokens_arrive_and_stop_keeps_it(
    view: GenerateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scripted(monkeypatch)
    qtbot.keyClicks(view.fields.prompt, "Hello")
    view.fields.tokens.setValue(7)
    view.fields.temperature.setValue(0.8)
    view.fields.seed.setValue(3)
    view.fields.stop.setPlainText("</s>\n then ")
    press(view, qtbot, "Generate")
    job = worker.request["job"]
    assert worker.request["kind"] == "generate"
    assert [job[name] for name in ("prompt", "max_new_tokens", "temperature", "seed")] == [
        "Hello",
        7,
        0.8,
        3,
    ]
    assert job["stop"] == ["</s>", " then "]
    worker.said = [StageProgress("run"), Generated("ab", 1)]
    qtbot.waitUntil(lambda: view.output.toPlainText() == "ab")
    worker.said = [Generated("c", 2)]
    qtbot.waitUntil(lambda: view.output.toPlainText() == "abc")
    assert "2 calls" in view.title
    press(view, qtbot, "Stop")
    assert worker.request == STOP
    assert view.title.startswith("Stopping")
    worker.outcome = Outcome(Ended.FINISHED, result=REPORT)
    qtbot.waitUntil(lambda: "3 tokens · 800 tokens/s" in view.title)
    assert "ended by stopped" in view.title
    assert view.output.toPlainText() == "abc"
    shown = [view.calls.rows.text(row, 2) for row in range(view.calls.rows.length)]
    assert shown == ["0", "5", "6"]
    words = [view.times.rows.text(row, 0) for row in range(view.times.rows.length)]
    assert words[:4] == ["load", "prompt", "first token", "later tokens"]
    assert view.plot.hover_text(1) == "position 6: 1,500,000 ns"


def test_a_second_press_cancels_and_the_text_so_far_stays(
    view: GenerateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scripted(monkeypatch)
    qtbot.keyClicks(view.fields.prompt, "Hello")
    qtbot.keyClick(view.fields.prompt, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    worker.said = [StageProgress("run"), Generated("ab", 1)]
    qtbot.waitUntil(lambda: view.output.toPlainText() == "ab")
    press(view, qtbot, "Stop")
    press(view, qtbot, "Cancel")
    qtbot.waitUntil(lambda: not view.runner.running)
    assert "cancelled" in view.title
    assert view.output.toPlainText() == "ab"
    assert not view.calls.isVisible()


def test_stop_before_the_first_token_cancels(
    view: GenerateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch)
    qtbot.keyClicks(view.fields.prompt, "Hello")
    press(view, qtbot, "Generate")
    press(view, qtbot, "Stop")
    qtbot.waitUntil(lambda: not view.runner.running)


def test_the_program_generates_the_same_as_the_runner(
    view: GenerateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, exported: Path
) -> None:
    monkeypatch.setattr(WORKER, Here)
    qtbot.waitUntil(lambda: view.fields.tokenizer.placeholderText() == "that of tiny.yaml")
    qtbot.keyClicks(view.fields.prompt, "Hello")
    view.fields.tokens.setValue(9)
    press(view, qtbot, "Generate")
    qtbot.waitUntil(lambda: not view.runner.running)
    assert view.error == ""
    pieces: list[str] = []
    runner = TextRunner(exported / "model.pte", "bytes")
    stats = runner.generate("Hello", GenerationConfig(max_new_tokens=9), pieces.append)
    current = view.runner.current
    assert current is not None
    assert current.outcome is not None
    assert current.outcome.result["tokens"] == stats.tokens
    assert view._text == "".join(pieces)
    assert view.calls.rows.length == len(stats.calls) == 9


def test_calls_of_a_text_are_in_the_view_of_calls(
    view: GenerateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(WORKER, Here)
    window = view.window()
    assert isinstance(window, MainWindow)
    window.show_view("calls")
    qtbot.waitUntil(lambda: isinstance(host_of(window, "calls").view, CallsPane))
    pane = host_of(window, "calls").view
    assert isinstance(pane, CallsPane)
    qtbot.waitUntil(lambda: not pane.working)
    assert pane.empty.isVisible()

    window.show_view("generate")
    for count in (7, 4):
        view.fields.prompt.setPlainText("Hello")
        view.fields.tokens.setValue(count)
        press(view, qtbot, "Generate")
        qtbot.waitUntil(lambda: not view.runner.running)
        window.show_view("calls")
        qtbot.waitUntil(lambda count=count: pane.calls.rows.length == count)
        assert pane.note.text() == f"{count} calls · {count} new tokens · without a trace"
        assert not pane.sources.isVisible()
        assert "later tokens" in pane.plot.title.text()
        window.show_view("generate")

    report = tmp_path / "generation.json"
    report.write_text(json.dumps(REPORT))
    monkeypatch.setattr(pane.context.paths, "open_file", lambda *_words: str(report))
    window.show_view("calls")
    pane._choose()
    qtbot.waitUntil(lambda: pane.calls.rows.length == 3)
    assert pane.sources.itemText(0) == "text generated here"
    pane._open(GENERATED)
    qtbot.waitUntil(lambda: pane.calls.rows.length == 4)


def test_what_is_wrong_stands_beside_its_field(
    view: GenerateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker = scripted(monkeypatch)
    press(view, qtbot, "Generate")
    assert view.fields.problem(view.fields.prompt) == "Type a prompt."
    qtbot.keyClicks(view.fields.prompt, "Hello")
    assert view.fields.problem(view.fields.prompt) == ""
    gone = tmp_path / "gone.json"
    view.fields.tokenizer.setText(str(gone))
    assert view.fields.problem(view.fields.tokenizer) == f"{gone} not found."
    press(view, qtbot, "Generate")
    assert worker.request == {}
    view.fields.tokenizer.setText("bytes")
    press(view, qtbot, "Generate")
    worker.outcome = Outcome(Ended.FAILED, "model.pte has 96 tokens: name its tokenizer")
    qtbot.waitUntil(lambda: "name its tokenizer" in view.error)
    assert view.fields.prompt.toPlainText() == "Hello"


def test_controls_have_names_and_tab_leaves_the_texts(view: GenerateView, qtbot: QtBot) -> None:
    assert nameless(view) == []
    assert not view.fields.seed.isEnabled()
    view.take_focus()
    for _ in range(20):
        focus = QApplication.focusWidget()
        assert focus is not None
        if not view.isAncestorOf(focus):
            return
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    pytest.fail("the keyboard stays in the view")


def test_the_tab_is_there_for_language_models_only(
    make_window: Any, qtbot: QtBot, exported: Path
) -> None:
    window = make_window()
    open_sample(window, qtbot, (str(DATA / "corpus/v1.5.1/convnet_xnnpack"),))
    window.show_view("run")
    assert window.store.state.group is TabGroup.PROVE
    assert "generate" not in window.centre.names
    reason = "not a language model: the program has no get_max_seq_len"
    assert window.menus._views["generate"].text() == f"Generate ({reason})"
    window.show_view("generate")
    empty = host_of(window, "generate")._empty
    qtbot.waitUntil(lambda: "Not a language model" in empty.accessibleName())
    open_sample(window, qtbot, (str(exported / "model.pte"),))
    window.show_view("run")
    assert "generate" in window.centre.names


def test_a_generation_is_started_again_from_the_jobs(
    view: GenerateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scripted(monkeypatch)
    qtbot.keyClicks(view.fields.prompt, "Hello")
    press(view, qtbot, "Generate")
    worker.outcome = Outcome(Ended.FINISHED, result=REPORT)
    qtbot.waitUntil(lambda: not view.runner.running)
    window = view.window()
    assert isinstance(window, MainWindow)
    entry = window.jobs.history.entries[0]
    assert entry.kind == "generate"
    worker.request, worker.outcome = {}, None
    window.commands.jobs.do(entry.id, JobAction.AGAIN)
    assert worker.request["job"]["prompt"] == "Hello"
    found = view.runner.current
    assert found is not None
    assert isinstance(found.job, GenerateJob)
