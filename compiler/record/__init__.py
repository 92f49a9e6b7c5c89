"""Writing of ETRecords."""
