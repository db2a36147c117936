"""The bundled documents: what they are, and that the script makes such ones."""

import gzip
import json
import runpy
from pathlib import Path

from wsabie.io.data_sources import open_source
from wsabie.samples import get_documents_path

LARGEST = 250_000  # bytes; they go into the wheel
SCRIPT = Path(__file__).parents[2] / "scripts" / "build_documents.py"


def test_what_is_bundled() -> None:
    assert get_documents_path().stat().st_size <= LARGEST
    with gzip.open(get_documents_path(), "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert len({row["id"] for row in rows}) == len(rows) > 1500
    assert all(len(row["text"].split()) >= 12 and row["labels"] == [row["id"].partition("#")[0]] for row in rows)
    assert {"sound", "wsabie/models/space"} <= {row["labels"][0] for row in rows}
    source = open_source(get_documents_path())
    assert (source.modality, len(source)) == ("documents", len(rows))  # type: ignore[union-attr]


def test_the_script_takes_prose_and_docstrings(tmp_path: Path) -> None:
    built = runpy.run_path(str(SCRIPT))
    page, file = tmp_path / "page.md", tmp_path / "code.py"
    page.write_text("# Head\n\nSome [prose](link.md) here.\n\n```\ncode\n\nmore\n```\n\n| a | table |\n")
    assert list(built["paragraphs"](page)) == ["# Head", "Some [prose] here.", ""]
    file.write_text('"""Module."""\ndef f():\n    """What it does.\n\n    >>> f()\n    """\n')
    assert list(built["docstrings"](file)) == ["Module.", "What it does.\n"]
    names = {row["labels"][0] for row in built["documents"]()}
    assert {"architecture", "documents", "wsabie/models/entity_space/space"} <= names
