"""Build the bundled documents: paragraphs of this project's documentation, and docstrings of its source.

    python scripts/build_documents.py --out src/wsabie/samples/documentation.jsonl.gz

Paragraphs of a page belong together, and so do docstrings of a file. The same sources give the same bytes.
"""

import argparse
import ast
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "docs/tutorials",
    "docs/how-to",
    "docs/explanation",
    "docs/reference",
    "docs/reference/command-line",
    "benchmarks/pages",
    "papers/pages",
)
"""Folders of pages."""
LEAST = 12
"""Words of a document, at least."""
_CODE = re.compile(r"^\s*(```|\.\. |\||>>>|<!--|\$ )")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "src/wsabie/samples/documentation.jsonl.gz")
    out = parser.parse_args().out
    rows = [json.dumps(row, ensure_ascii=False) + "\n" for row in documents()]
    with out.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write("".join(rows).encode())
    print(f"{out}: {len(rows):,} documents, {out.stat().st_size:,} bytes")


def documents() -> Iterator[dict[str, object]]:
    """Yield paragraphs of at least `LEAST` words, from pages and files that have two or more."""
    pages = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
    pages += [page for folder in FOLDERS for page in sorted(ROOT.glob(f"{folder}/*.md"))]
    sources = sorted((ROOT / "src" / "wsabie").rglob("*.py"))
    entries: dict[str, list[str]] = {}
    for page in pages:
        entries.setdefault(page.stem.lower(), []).extend(paragraphs(page))  # pages of one name make one document
    entries |= {f.relative_to(ROOT / "src").with_suffix("").as_posix(): list(docstrings(f)) for f in sources}
    for name, texts in entries.items():
        paragraphs_ = [" ".join(text.split()) for text in texts if len(text.split()) >= LEAST]
        for number, text in enumerate(paragraphs_ if len(paragraphs_) > 1 else []):
            yield {"id": f"{name}#{number}", "text": text, "labels": [name]}


def paragraphs(page: Path) -> Iterator[str]:
    """Prose of a page; code and tables are left out."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for text in prose.split("\n\n"):
        if not _CODE.match(text):
            yield re.sub(r"\]\([^)]*\)", "]", text)


def docstrings(file: Path) -> Iterator[str]:
    """Yield the docstrings of the file and of its definitions, without their examples."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield re.sub(r"\n *>>>.*", "", ast.get_docstring(node) or "", flags=re.DOTALL)


if __name__ == "__main__":
    main()
