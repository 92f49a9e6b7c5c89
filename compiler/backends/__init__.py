"""Backends: what takes a part of an edge program and makes the payload of a delegate of it."""
