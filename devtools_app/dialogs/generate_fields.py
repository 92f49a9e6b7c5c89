"""The fields of the Generate view: prompt, tokenizer, how tokens are chosen."""

from __future__ import annotations

import os

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QFormLayout,
    QLabel,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.form_parts import beside, line
from devtools_app.state.run_form import MOST_SEED, RunForm, Runnable
from devtools_app.widgets.fields import DoubleSpinBox, SpinBox
from devtools_app.widgets.lines_field import lines_field
from devtools_app.widgets.problem_label import problem_label
from inspector.jobs.generating import GenerateJob

_MOST_TOKENS, _USUAL_TOKENS = 1_000_000, 64
_BYTES = "bytes"
_LINES, _STOPS = 5, 2  # of the prompt, and of what ends a text
_UNKNOWN = "one token for each byte"
_TOKENIZER = (
    "A tokenizer of Hugging Face, SentencePiece, tiktoken or llama2.c: its file or folder, or"
    " bytes. Empty for that of the recipe, else a token for each byte."
)


class GenerateFields(QWidget):
    """Edits how text is generated.

    Signals:
        edited(): a field has changed
        file_requested(): the user wants to choose a tokenizer
    """

    edited = Signal()
    file_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.prompt = lines_field("Prompt", "Once upon a time")
        self.chat = QCheckBox("In the chat template of the tokenizer")
        self.chat.setAccessibleName("Prompt in the chat template of the tokenizer")
        self.tokenizer = line("Tokenizer", _UNKNOWN)
        self.tokenizer.setToolTip(_TOKENIZER)
        self.tokens = _spin(SpinBox(), "Most new tokens", _MOST_TOKENS)
        self.tokens.setSpecialValueText("until the context is full")
        self.tokens.setValue(_USUAL_TOKENS)
        self.temperature = _decimal("Temperature", 0.0, 10.0, 0.1)
        self.temperature.setSpecialValueText("0: the likeliest token")
        self.top_p = _decimal("Top-p", 0.01, 1.0, 0.05)
        self.top_p.setValue(1.0)
        self.top_p.setToolTip("Only the likeliest tokens that have this probability together")
        self.seed = _spin(SpinBox(), "Seed of the draws", MOST_SEED)
        self.seed.setGroupSeparatorShown(False)
        self.stop = lines_field(
            "Strings or tokens that end the text, one a line", "one string or token a line"
        )
        self._problems: dict[QWidget, QLabel] = {
            field: problem_label() for field in (self.prompt, self.tokenizer)
        }
        self._lay_out()
        self.prompt.textChanged.connect(self._report)
        self.tokenizer.textChanged.connect(self._report)
        self.temperature.valueChanged.connect(self._show_draws)
        theme.follow(self._restyle)
        self._restyle()
        self._show_draws()

    def job(self, what: Runnable, form: RunForm) -> GenerateJob:
        """Return the request for a program.

        Args:
            what: the program
            form: of the Run view: threads, engine and libraries
        """
        return GenerateJob(
            program=what.program,
            tokenizer=self._tokenizer(),
            prompt=self.prompt.toPlainText(),
            chat=self.chat.isChecked(),
            max_new_tokens=self.tokens.value() or -1,
            temperature=round(self.temperature.value(), 2),
            top_p=round(self.top_p.value(), 2),
            seed=self.seed.value(),
            stop=tuple(filter(None, self.stop.toPlainText().split("\n"))),
            data_files=what.data_files,
            threads=form.fixed_threads,
            engine=form.job(what).engine,
            libraries=form.loaded(what),
        )

    def show_source(self, name: str) -> None:
        """Show which configuration names the tokenizer, empty if unknown."""
        self.tokenizer.setPlaceholderText(f"that of {name}" if name else _UNKNOWN)

    def check(self) -> bool:
        """Show errors beside the fields; return whether there are none."""
        wrong = "" if self.prompt.toPlainText() else "Type a prompt."
        self._show_problem(self.prompt, wrong)
        wrong = wrong or self._check_tokenizer()
        return not wrong

    def problem(self, field: QWidget) -> str:
        """Return the error shown at the prompt or the tokenizer."""
        label = self._problems[field]
        return "" if label.isHidden() else label.text()

    def _tokenizer(self) -> str:
        text = self.tokenizer.text().strip()
        return os.path.abspath(text) if text and text != _BYTES else text

    def _check_tokenizer(self) -> str:
        path = self._tokenizer()
        gone = path and path != _BYTES and not os.path.exists(path)
        wrong = f"{path} not found." if gone else ""
        self._show_problem(self.tokenizer, wrong)
        return wrong

    def _show_problem(self, field: QWidget, sentence: str) -> None:
        self._problems[field].setText(sentence)
        self._problems[field].setVisible(bool(sentence))

    def _report(self) -> None:
        if self.prompt.toPlainText():
            self._show_problem(self.prompt, "")
        self._check_tokenizer()
        self.edited.emit()

    def _show_draws(self) -> None:
        """Offer the effective options: without a temperature nothing is drawn."""
        for field in (self.top_p, self.seed):
            field.setEnabled(self.temperature.value() > 0)

    def _restyle(self) -> None:
        for field, count in ((self.prompt, _LINES), (self.stop, _STOPS)):
            field.setFont(self._theme.mono())
            field.setFixedHeight(count * field.fontMetrics().lineSpacing() + 16)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 4, 12, 6)
        column.setSpacing(4)
        column.addWidget(_label("Prompt", self.prompt))
        column.addWidget(self.prompt)
        column.addWidget(self._problems[self.prompt])
        column.addWidget(self.chat)
        chooser = beside(self.tokenizer, "Choose a tokenizer", self.file_requested.emit)
        tokenizer = QWidget()
        rows = QVBoxLayout(tokenizer)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(1)
        rows.addWidget(chooser)
        rows.addWidget(self._problems[self.tokenizer])
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(4)
        form.addRow(_label("Tokenizer", self.tokenizer), tokenizer)
        for text, field in (
            ("New tokens", self.tokens),
            ("Temperature", self.temperature),
            ("Top-p", self.top_p),
            ("Seed", self.seed),
            ("Ends at", self.stop),
        ):
            form.addRow(_label(text, field), field)
        column.addLayout(form)
        for label in self._problems.values():
            label.hide()


def _spin(box: QSpinBox, name: str, most: int) -> QSpinBox:
    box.setAccessibleName(name)
    box.setRange(0, most)
    box.setGroupSeparatorShown(True)
    return box


def _decimal(name: str, least: float, most: float, step: float) -> QDoubleSpinBox:
    box = DoubleSpinBox()
    box.setAccessibleName(name)
    box.setRange(least, most)
    box.setSingleStep(step)
    return box


def _label(text: str, field: QWidget) -> QLabel:
    label = QLabel(text)
    label.setBuddy(field)
    set_role(label, "role", "muted")
    return label
