"""The window: Qt store, view-models, item models, widgets and views."""

import os

# Qt for Python creates the Python type of each Qt class when a name is first used, in whichever
# thread that is. While one thread is in the middle of it, another finds the type without its
# converters: a paint beside the thread that imports views ended the process in 1 of 480 starts.
# 0: all types are created by the import; the window is shown 20 ms later for it.
os.environ.setdefault("PYSIDE6_OPTION_LAZY", "0")
