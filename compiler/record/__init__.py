"""Writing of ETRecords: what the compiler knew about each instruction."""
