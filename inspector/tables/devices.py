"""The devices that programs run on, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.devices.device import Device
from inspector.tables.rows import RowField, row_table
from inspector.tables.table import Table


def devices_table(devices: Sequence[Device]) -> Table:
    """Return one row per device: how it is reached, and its runner."""
    rows = [
        (one.name, one.transport, one.address, one.place, one.clock, one.runner) for one in devices
    ]
    titles = ("device", "transport", "address", "folder", "clock", "runner")
    return row_table([RowField(title, mono=True) for title in titles], rows, "devices")
