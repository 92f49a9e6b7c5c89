"""The state of the window as frozen values, and its transitions."""
