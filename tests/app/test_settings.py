"""Preferences: kept, and harmless when damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devtools_app.appearance.look import LARGEST, ThemeMode
from devtools_app.dialogs.preferences import Preferences
from devtools_app.state.panel_layout import PanelLayout, Showing
from devtools_app.state.settings import (
    MAX_RECENTS,
    Settings,
    SettingsFile,
    default_path,
    settings_content,
    settings_from,
)
from devtools_app.state.tab_groups import TabGroup
from inspector.tables.selection import Units

FULL = Settings(
    theme=ThemeMode.DARK,
    font_size=15,
    units=Units("ms", "KiB"),
    tick="us",
    source_roots=("/src", "/with space"),
    path_mapping=(("/build", "/home/me"),),
    editor="code --goto {file}:{line}",
    watch=True,
    recents=(("/a/model.pte", "/a/run.etdp"), ("/b.pte",)),
    geometry="AAAA",
    layouts={"look": PanelLayout("BBBB"), "prove": PanelLayout("CCCC", Showing.ALWAYS, below=True)},
    arrangements={"wide": PanelLayout("DDDD")},
    view="memory",
    group=TabGroup.CHANGE,
    fronts={"look": "memory", "change": "stages"},
    overlay="bytes",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def test_settings_survive_the_file(settings_file):
    settings_file.save(FULL)
    assert settings_file.load() == FULL


def test_settings_without_file_are_defaults(settings_file):
    assert settings_file.load() == Settings()


def test_settings_of_an_earlier_version_open_without_its_layout(caplog):
    found = settings_from({"view": "compare", "layout": "QUJD", "font_size": 15})
    assert found == Settings(view="compare", font_size=15)
    assert not caplog.messages


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"a":' * 5000, b" " * (5 << 20), b'"x"']
)
def test_settings_damaged_file_costs_the_preferences_only(settings_file, damage, caplog):
    settings_file.path.parent.mkdir(parents=True)
    settings_file.path.write_bytes(damage)
    assert settings_file.load() == Settings()
    assert "preferences are not used" in caplog.text
    kept = settings_file.path.with_name("settings.json.damaged")
    assert kept.name in settings_file.trouble
    settings_file.save(FULL)
    assert kept.read_bytes() == damage
    assert SettingsFile(settings_file.path).load() == FULL


def test_settings_damaged_twice_are_both_kept(settings_file):
    settings_file.path.parent.mkdir(parents=True)
    for damage in (b"{", b"["):
        settings_file.path.write_bytes(damage)
        settings_file.load()
    folder = settings_file.path.parent
    assert sorted(one.read_bytes() for one in folder.glob("*.damaged*")) == [b"[", b"{"]
    settings_file.path.write_text("{}", encoding="utf-8")
    assert SettingsFile(settings_file.path).load() == Settings()


def test_settings_that_cannot_be_read_are_left_alone(tmp_path):
    folder = tmp_path / "settings.json"
    folder.mkdir()
    file = SettingsFile(folder)
    assert file.load() == Settings()
    file.save(FULL)
    assert folder.is_dir()
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]
    assert "no preferences are saved" in file.trouble


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(settings_content(Settings()))), JSON))
def test_settings_from_anything_are_settings(content):
    found = settings_from(content)
    assert settings_from(json.loads(json.dumps(settings_content(found)))) == found


def test_settings_log_the_path_of_each_bad_field(caplog):
    found = settings_from(
        {
            "font_size": 1000,
            "units": {"time": "years", "size": "KiB"},
            "recents": [["/a.pte", 3]],
            "last_run": {"runs": "many", "warmup": 2},
        }
    )
    assert (found.font_size, found.units) == (LARGEST, Units("auto", "KiB"))
    assert found.recents == (("/a.pte",),)
    assert (found.last_run.runs, found.last_run.warmup) == (0, 2)
    assert caplog.messages == [
        "settings: recents[0][1]: expected a string, found 3",
        "settings: units: time: expected auto, ns, µs, ms, s, found 'years'",
        "last_run: runs: expected an integer, found 'many'",
    ]


def test_settings_that_cannot_be_written_are_logged(tmp_path, caplog):
    (tmp_path / "file").write_text("x")
    SettingsFile(tmp_path / "file" / "settings.json").save(FULL)
    assert "preferences are not saved" in caplog.text


def test_settings_path_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("ETSCOPE_SETTINGS", str(tmp_path / "x.json"))
    assert default_path() == tmp_path / "x.json"
    monkeypatch.delenv("ETSCOPE_SETTINGS")
    assert default_path().name == "settings.json"


def test_recents_are_newest_first_without_repeats():
    found = Settings()
    for number in range(MAX_RECENTS + 5):
        found = found.with_recent((f"/{number}.pte",))
    assert len(found.recents) == MAX_RECENTS
    assert found.recents[0] == ("/16.pte",)
    again = found.with_recent(("/10.pte",))
    assert again.recents[0] == ("/10.pte",)
    assert again.recents.count(("/10.pte",)) == 1
    assert ("/10.pte",) not in again.without_recent(("/10.pte",)).recents


def test_session_options_say_whether_the_unit_is_assumed():
    assert Settings().session_options().time_scale_assumed
    options = FULL.session_options()
    assert (options.source_time_scale, options.time_scale_assumed) == ("us", False)
    assert options.path_mapping == {"/build": "/home/me"}


@pytest.mark.gui
@pytest.mark.parametrize("given_settings", [Settings(), FULL], ids=["defaults", "full"])
def test_preferences_hand_back_what_they_show(qtbot, theme, qapp, given_settings):
    from PySide6.QtWidgets import QWidget

    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = Preferences(theme, given_settings, parent)
    assert dialog.chosen() == given_settings


@pytest.mark.gui
def test_preferences_apply_tells(qtbot, theme):
    from PySide6.QtWidgets import QSpinBox, QWidget

    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = Preferences(theme, Settings(), parent)
    dialog.findChild(QSpinBox).setValue(18)
    with qtbot.waitSignal(dialog.applied) as told:
        dialog._accept()
    assert told.args == [replace(Settings(), font_size=18)]


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=25,
)
@given(
    lines=st.lists(
        st.text(
            st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Zs"]), min_size=1, max_size=9
        ),
        max_size=3,
    )
)
@pytest.mark.gui
def test_preferences_keep_any_folder(qtbot, theme, lines):
    from PySide6.QtWidgets import QWidget

    parent = QWidget()
    dialog = Preferences(theme, replace(Settings(), source_roots=tuple(lines)), parent)
    assert dialog.chosen().source_roots == tuple(lines)
    parent.deleteLater()


FILES = ("/a/net/model.pte", "/a/net/model.etrecord", "/a/net/run/run.etdp")


@pytest.mark.parametrize(
    ("former", "latest", "kept"),
    [
        (("/a/net",), FILES, 1),
        (FILES, ("/a/net",), 1),
        (FILES, FILES[::-1], 1),
        (FILES, (*FILES[:2], "/a/net/run_2/run.etdp"), 2),  # another run
        (("/a",), ("/a/x.pte",), 2),  # a folder of several programs
        (("/a",), ("/a/run/model.pte", "/a/run/model.etrecord"), 2),
        (("/a/net",), ("/a/net/model.pte", "/a/net/runs/run/run.etdp"), 1),
        (("/a/other",), FILES, 2),
        (("/a/net",), ("/a/net/run",), 2),
        (("/a/net/model.pte",), ("/a/net/run/run.etdp",), 2),
    ],
)
def test_a_folder_and_its_files_are_one_recent_session(former, latest, kept: int) -> None:
    found = Settings().with_recent(former).with_recent(latest)
    assert found.recents[0] == latest
    assert len(found.recents) == kept
