"""Every fact of a session as a table: columns with units, keys of rows, filter, sort, group."""
