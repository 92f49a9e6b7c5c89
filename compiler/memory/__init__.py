"""Memory planning: lifetimes of values, and their offsets in planned buffers."""
