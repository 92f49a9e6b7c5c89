"""How the window looks: colours by role, fonts, icons and the style sheet."""
