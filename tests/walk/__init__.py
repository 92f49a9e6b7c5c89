"""make walk: the real window by mouse and by keys, on a display of its own."""
