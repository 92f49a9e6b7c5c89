"""One module a view; each draws a view-model and can only ask."""
