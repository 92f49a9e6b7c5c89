"""Dialogs and the forms in them."""
