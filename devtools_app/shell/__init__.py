"""The window around the views: docks, menus, toolbar, status bar, theme."""
