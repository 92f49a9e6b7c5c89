"""The zip archive of a record, with bounds on the cost of its members."""
