"""The command line: one module per verb, one table of verbs, one envelope for all answers."""

from inspector.cli.main import VERBS, main

__all__ = ["VERBS", "main"]
