"""Members of a record besides its graphs: maps, delegates, verdicts, refusals, origins."""
