"""Settings of the documentation: Sphinx, furo, Markdown by MyST, docstrings by napoleon."""

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

import wsabie

ROOT = Path(__file__).resolve().parents[1]
SHARED = {
    "project/architecture": "ARCHITECTURE.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/security": "SECURITY.md",
    "project/changelog": "CHANGELOG.md",
}
"""Pages whose text lies at the root of the repository."""
MEASURED = ("benchmarks", "papers")
"""Folders of the repository whose `pages` are a part of the documentation."""
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
myst_enable_extensions = ["attrs_block"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False


def insert_shared(app: object, docname: str, source: list[str]) -> None:
    """Give the shared pages their text, and all pages links that hold inside the documentation."""
    folder = posixpath.dirname(docname)
    up = posixpath.relpath(".", folder or ".") + "/"
    text = source[0]
    if docname in SHARED:
        text = (ROOT / SHARED[docname]).read_text(encoding="utf-8").replace("](docs/", f"]({up}")
        text = re.sub(r"\]\((benchmarks|papers)/", rf"]({up}../\1/", text)
        for page, file in SHARED.items():
            text = text.replace(f"]({file}", f"]({up}{page}.md")
        text = re.sub(r"\]\((LICENSE|README\.md)[^)]*\)", f"]({up}index.md)", text)
    text = re.sub(r"\]\((?:\.\./)+docs/", f"]({up}", text)
    text = text.replace("{include} ../results/", f"{{include}} {up}../benchmarks/results/")
    source[0] = re.sub(rf"\]\((?:\.\./)+({'|'.join(MEASURED)})/pages/", rf"]({up}results/\1/", text)


def copy_measured_pages() -> None:
    """Copy the measured pages of the repository to `results`: Sphinx reads no pages outside its folder."""
    shutil.rmtree(ROOT / "docs" / "results", ignore_errors=True)
    for name in MEASURED:
        shutil.copytree(ROOT / name / "pages", ROOT / "docs" / "results" / name)


def keep_underscores(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """A name like `idf_` in a docstring is a fitted attribute, not a link."""
    lines[:] = [line if line.startswith("..") else _FITTED.sub(r"\1\_", line) for line in lines]


def setup(app: Any) -> None:
    copy_measured_pages()
    app.connect("source-read", insert_shared)
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)  # after napoleon
