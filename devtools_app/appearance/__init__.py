"""The appearance of the window: colours by role, fonts, icons and the style sheet."""
