"""Actions of the window: their table, menus' commands, and the requests of views."""
