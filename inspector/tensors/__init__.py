"""Any tensor of a session by its place: elements without a copy, statistics, images, tables."""
