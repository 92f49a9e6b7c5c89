"""The zip archive of a record, with bounds on what its members cost."""
