"""Interfaces of backends and partitioners: their base classes, compile specs, named data."""
