"""Reusable widgets and canvases independent of sessions."""
