"""Pure functions from a session and a selection to the content of a view; Qt-free."""
