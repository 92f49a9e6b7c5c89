"""Pure functions from a session and a selection to what a view draws; free of Qt."""
