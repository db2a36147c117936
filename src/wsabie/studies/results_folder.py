"""A folder of results: a table, a figure, and a page that says what was measured on what."""

import csv
import io
import platform
from collections.abc import Sequence
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores
from wsabie.storage.atomic import try_writing, write_bytes, write_text
from wsabie.studies.comparison import Table
from wsabie.studies.reproduce.drawing import Chart, png_of, svg_of

FILES = ("table.csv", "figure.svg", "figure.png", "about.md")
"""What is written."""
_FIGURE = 24
"""Longer cells are no figures, and stand at the left."""


def write_results(
    folder: Path, table: Table, charts: Sequence[Chart], page: str, drawn: bytes | None = None
) -> list[Path]:
    """Write table.csv, about.md, and figure.svg and figure.png where there are charts; the files written.

    `drawn` is a figure.png of pictures.
    """
    files: dict[str, str | bytes] = {"table.csv": _csv(table)}
    if drawn is not None:
        files["figure.png"] = drawn
    if charts:
        files["figure.svg"] = svg_of(charts)
        files["figure.png"] = png_of(str(files["figure.svg"]))
    files["about.md"] = page
    for name, content in files.items():
        if isinstance(content, bytes):
            write_bytes(folder / name, content)
        else:
            write_text(folder / name, content)
    return [folder / name for name in files]


def refuse_folder(folder: Path, made_by: str) -> None:
    """Refuse a folder for results that cannot be written, or that holds files of their names from elsewhere.

    Parameters
    ----------
    folder : Path
    made_by : str
        How the page of an earlier run ends.

    Raises
    ------
    InputError
        The sentence names the file.
    """
    try_writing(folder / FILES[0])
    there = [folder / name for name in FILES if (folder / name).exists()]
    page = folder / "about.md"
    ours = page.is_file() and page.read_text(encoding="utf-8", errors="replace").rstrip().endswith(made_by)
    if there and not ours:
        raise InputError(
            f"cannot write {there[0]}: what is there was not made by an earlier run and would be lost; choose another "
            "folder"
        )


def markdown_table(table: Table) -> str:
    """The table in Markdown, figures at the right."""
    texts = [max((len(cell) for cell in column), default=0) > _FIGURE for column in zip(*table.rows, strict=True)]
    rule = ["---" if i == 0 or text else "---:" for i, text in enumerate(texts or [False] * len(table.headers))]
    lines = [table.headers, rule, *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def machine() -> str:
    """Processor, cores and system in a line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = named[0] if named else platform.processor() or platform.machine()
    return f"{processor}, {available_cores()} cores, {platform.system()}"


def _csv(table: Table) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table.headers, *table.rows])
    return file.getvalue()
