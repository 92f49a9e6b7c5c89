"""Joins events, instructions, graph nodes, delegates and values."""
