"""Runs decoded payloads node by node with torch; a backend adds a table of its operators."""

from runtime.backends.graph.backend import GraphBackend
from runtime.backends.graph.operation import Fixed, Operand, Operation, OperatorTable

__all__ = ["Fixed", "GraphBackend", "Operand", "Operation", "OperatorTable"]
