"""Roles of item models as integers: asking Qt for an enum costs 4 µs, a thousand times a frame."""

from __future__ import annotations

from PySide6.QtCore import Qt

DISPLAY = int(Qt.ItemDataRole.DisplayRole)
DECORATION = int(Qt.ItemDataRole.DecorationRole)
TOOLTIP = int(Qt.ItemDataRole.ToolTipRole)
ALIGNMENT = int(Qt.ItemDataRole.TextAlignmentRole)
FONT = int(Qt.ItemDataRole.FontRole)
FOREGROUND = int(Qt.ItemDataRole.ForegroundRole)
BACKGROUND = int(Qt.ItemDataRole.BackgroundRole)
ACCESSIBLE = int(Qt.ItemDataRole.AccessibleTextRole)
SHARE = int(Qt.ItemDataRole.UserRole) + 1  # length of a bar, 0 ... 1, None when missing
TONE = int(Qt.ItemDataRole.UserRole) + 2  # name of a colour role
# Roles that tables and trees have data for; Qt asks for thirteen of each cell that it paints.
ANSWERED = frozenset(
    (DISPLAY, DECORATION, TOOLTIP, ALIGNMENT, FONT, FOREGROUND, BACKGROUND, ACCESSIBLE, SHARE, TONE)
)
