"""Members of a record beside its graphs: maps, delegates, verdicts, refusals, origins."""
