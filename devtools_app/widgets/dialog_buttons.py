"""The buttons of a dialog, without the icons of Fusion."""

from __future__ import annotations

from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox


def dialog_buttons(dialog: QDialog, kinds: QDialogButtonBox.StandardButton) -> QDialogButtonBox:
    """Return a row of buttons; rejecting and closing buttons end the dialog."""
    box = QDialogButtonBox(kinds)
    for button in box.buttons():
        button.setIcon(QIcon())
        button.setAccessibleName(button.text().replace("&", ""))
    box.rejected.connect(dialog.reject)
    return box
