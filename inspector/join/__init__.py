"""What belongs together: events, instructions, graph nodes, delegates, values."""
