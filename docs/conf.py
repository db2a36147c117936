"""How the documentation is built: Sphinx, furo, Markdown by MyST, docstrings by napoleon."""

import re
from pathlib import Path
from typing import Any

import wsabie

ROOT = Path(__file__).resolve().parents[1]
SHARED = {
    "architecture": "ARCHITECTURE.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "changelog": "CHANGELOG.md",
}
"""Pages whose text lies at the root of the repository."""
_FITTED = re.compile(r"(?<![\w`.\\])(\w*[A-Za-z0-9])_(?![\w`])")

project = "wsabie"
author = "The wsabie authors"
project_copyright = author
release = version = wsabie.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "text"
smartquotes = False  # or --option becomes a dash and a word
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = f"wsabie {release}"

myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False


def insert_shared(app: object, docname: str, source: list[str]) -> None:
    """Give the shared pages their text, with links that hold inside the documentation."""
    if docname not in SHARED:
        return
    text = (ROOT / SHARED[docname]).read_text(encoding="utf-8").replace("](docs/", "](")
    for page, file in SHARED.items():
        text = text.replace(f"]({file}", f"]({page}.md")
    source[0] = re.sub(r"\]\((LICENSE|README\.md)[^)]*\)", "](index.md)", text)


def keep_underscores(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """A name like `idf_` in a docstring is a fitted attribute, not a link."""
    lines[:] = [line if line.startswith("..") else _FITTED.sub(r"\1\_", line) for line in lines]


def setup(app: Any) -> None:
    app.connect("source-read", insert_shared)
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)  # after napoleon
