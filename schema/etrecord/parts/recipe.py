"""The member of a record that holds the recipe of its program.

The suffix keeps the stock tool from reading the member as a graph.
"""

from __future__ import annotations

MEMBER = "etscope/recipe_constants"
