"""The table that the benchmark of quality prints."""

from benchmarks.quality import format_text_table
from wsabie.workflows.compare.comparison_table import TextTable


def test_text_tables_are_aligned() -> None:
    lines = format_text_table(TextTable(["model", "p@1"], [["a long name", "0.5"], ["b", "0.25"]])).splitlines()
    assert lines == ["model         p@1", "a long name   0.5", "b            0.25"]
