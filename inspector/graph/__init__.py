"""Graphs of a session: instructions, recorded nodes, their source and their delegation."""
