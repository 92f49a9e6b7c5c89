"""Where a record keeps how its program was made.

The suffix keeps the stock tool from reading the member as a graph.
"""

from __future__ import annotations

MEMBER = "etscope/recipe_constants"
