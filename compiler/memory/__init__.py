"""Memory planning: how long each value lives, and where it is put meanwhile."""
