"""A folder of results: a table, a figure, and a page about data and settings."""

import csv
import io
import platform
from collections.abc import Sequence
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.core.machine import count_available_cores
from wsabie.storage.atomic_files import check_writable, write_bytes, write_text
from wsabie.workflows.charts.chart_files import ChartSpec, render_png, render_svg
from wsabie.workflows.compare.comparison import TextTable

FILES = ("table.csv", "figure.svg", "figure.png", "about.md")
"""Files of a results folder."""
_MAX_FIGURE_LENGTH = 24
"""Longest cell of a figure; columns with longer cells align left."""


def write_results(
    folder: Path, table: TextTable, charts: Sequence[ChartSpec], page: str, image_sheet: bytes | None = None
) -> list[Path]:
    """Write table.csv, about.md, and figure.svg and figure.png if there are charts; return the paths.

    `image_sheet` is a figure.png of images.
    """
    files: dict[str, str | bytes] = {"table.csv": _format_csv(table)}
    if image_sheet is not None:
        files["figure.png"] = image_sheet
    if charts:
        files["figure.svg"] = render_svg(charts)
        files["figure.png"] = render_png(str(files["figure.svg"]))
    files["about.md"] = page
    for name, content in files.items():
        if isinstance(content, bytes):
            write_bytes(folder / name, content)
        else:
            write_text(folder / name, content)
    return [folder / name for name in files]


def require_writable_folder(folder: Path, made_by: str) -> None:
    """Refuse a results folder that cannot be written, or that holds other files with these names.

    Parameters
    ----------
    folder : Path
    made_by : str
        Last words of the page of an earlier run.

    Raises
    ------
    InputError
        The message names the file.
    """
    check_writable(folder / FILES[0])
    existing_files = [folder / name for name in FILES if (folder / name).exists()]
    page = folder / "about.md"
    is_earlier_run = page.is_file() and page.read_text(encoding="utf-8", errors="replace").rstrip().endswith(made_by)
    if existing_files and not is_earlier_run:
        raise InputError(
            f"cannot write {existing_files[0]}: what is there was not made by an earlier run and would be "
            "lost; choose another "
            "folder"
        )


def format_markdown_table(table: TextTable) -> str:
    """Format the table as Markdown, with figures aligned right."""
    texts = [
        max((len(cell) for cell in column), default=0) > _MAX_FIGURE_LENGTH for column in zip(*table.rows, strict=True)
    ]
    rule = ["---" if i == 0 or text else "---:" for i, text in enumerate(texts or [False] * len(table.headers))]
    lines = [table.headers, rule, *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def describe_machine() -> str:
    """Return processor, cores and system in a line."""
    cpu_file = Path("/proc/cpuinfo")
    lines = cpu_file.read_text(encoding="utf-8", errors="replace").splitlines() if cpu_file.exists() else []
    model_names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = model_names[0] if model_names else platform.processor() or platform.machine()
    return f"{processor}, {count_available_cores()} cores, {platform.system()}"


def _format_csv(table: TextTable) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table.headers, *table.rows])
    return file.getvalue()
