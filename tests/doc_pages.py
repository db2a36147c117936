"""Pages of the documentation, and the blocks in them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MEASURED = [ROOT / "benchmarks" / "pages", ROOT / "papers" / "pages"]
COMMAND_PAGES = sorted((DOCS / "reference" / "command-line").glob("*.md"))
SITE_PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("[!_]*/*.md"), *COMMAND_PAGES])
MEASURED_PAGES = [page for folder in MEASURED for page in sorted(folder.glob("*.md"))]
PAGES = sorted([*ROOT.glob("*.md"), *SITE_PAGES, *(ROOT / "benchmarks").glob("*.md"), *MEASURED_PAGES])
FENCE = re.compile(r"^( *)(`{3,})(\S*)[^\n]*\n(.*?)^\1\2$", re.DOTALL | re.MULTILINE)


def get_page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, kind: str) -> list[str]:
    """The contents of a page's code blocks of one kind."""
    return [match[4] for match in FENCE.finditer(page.read_text(encoding="utf-8")) if match[3] == kind]


def write_captioned(page: Path, folder: Path) -> None:
    """Write the files that a page shows, under the names in their captions."""
    for block in blocks(page, "{code-block}"):
        caption, _, content = block.partition("\n")
        (folder / caption.removeprefix(":caption: ")).write_text(content, encoding="utf-8")
