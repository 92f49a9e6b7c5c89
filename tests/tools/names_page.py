"""Write the table of documented names into docs/python-api.md: python -m tests.tools.names_page."""

from __future__ import annotations

from inspector.compat.names import as_markdown
from tests.architecture.tree import ROOT

PAGE = ROOT / "docs" / "python-api.md"
MARK = "<!-- names -->\n"


def page() -> str:
    """Return the page with the table as it is now."""
    return PAGE.read_text("utf-8").partition(MARK)[0] + MARK + as_markdown()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
