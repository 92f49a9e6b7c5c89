"""Differences of two sessions."""
