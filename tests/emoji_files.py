"""Pictures of the sample as files, as somebody would bring them."""

import csv
from pathlib import Path

import pyarrow.parquet as pq

from wsabie.samples import get_sample_path


def write_emoji(folder: Path, n: int, most: int) -> None:
    """So many emoji as 000.webp and so on, with metadata.csv, which gives each up to `most` labels and its group."""
    table = pq.read_table(get_sample_path("emoji"), columns=["image", "labels", "group"]).slice(400, n).to_pylist()
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["file_name", "labels", "group"])
        for number, row in enumerate(table):
            (folder / f"{number:03d}.webp").write_bytes(row["image"])
            labels = ";".join(name.replace(";", " ") for name in row["labels"][:most])
            lines.writerow([f"{number:03d}.webp", labels, row["group"]])
