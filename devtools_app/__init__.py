"""The window: Qt store, view-models, item models, widgets and views."""
