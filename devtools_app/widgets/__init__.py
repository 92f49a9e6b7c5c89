"""Reusable widgets and canvases that know nothing of sessions."""
