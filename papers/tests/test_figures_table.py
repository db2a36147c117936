"""The paper's figures beside ours."""

from dataclasses import replace

from papers.figures_table import build_figures_table
from papers.record import FindingRow, PublishedFigures, RunFindings
from papers.records.record_index import find_record

TWO = (
    PublishedFigures("ImageNet", ("p@1", "time"), {"A": (4.03, "5 h"), "B": (None, "6 h")}, percent=True),
    PublishedFigures("Web", ("p@1",), {"A": (1.0,)}, percent=True),
)
FINDINGS = RunFindings(
    [FindingRow("A", "", {"p@1": 0.25, "MB": 12.5}), FindingRow("C", "", {"p@1": float("nan"), "MB": 2_000_000.0})]
)


def test_each_figure_names_its_data_and_keeps_the_papers_unit() -> None:
    record = replace(find_record("wsabie-table-2"), published=TWO, columns=("p@1", "time", "MB"))
    table = build_figures_table(record, FINDINGS, "photos")
    assert table.headers == ["row", "p@1 %, ImageNet", "p@1 %, Web", "p@1 %, photos", "time, ImageNet", "MB, photos"]
    assert table.rows == [
        ["A", "4.03", "1", "25", "5 h", "12.5"],
        ["B", "", "", "", "6 h", ""],
        ["C", "", "", "", "", "2,000,000"],
    ]


def test_computed_table_belongs_to_no_data() -> None:
    record = replace(find_record("wsabie-remark-1"), published=(), columns=("L(k)",))
    table = build_figures_table(record, RunFindings([FindingRow("rank 1", "", {"L(k)": 1.0})]), "computed")
    assert (table.headers, table.rows) == (["row", "L(k)"], [["rank 1", "1"]])


def test_skipped_entry_keeps_its_row() -> None:
    record = replace(find_record("wsabie-table-2"), published=TWO, columns=("p@1",))
    table = build_figures_table(record, RunFindings([], {"A": "too large"}), "photos")
    assert table.rows == [["A", "4.03", "1"], ["B", "", ""]]


def test_a_wide_table_has_the_data_in_its_rows() -> None:
    record = find_record("vse-ens-table-2")
    table = build_figures_table(record, RunFindings([FindingRow("WARP", "", {"p@5": 0.25, "AUC": 0.5})]), "photos")
    assert table.headers == ["row", "p@5", "recall@5", "p@10", "recall@10", "MAP", "AUC"]
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["WARP, NUS-WIDE"] == ["0.0107", "0.0533", "0.0083", "0.083", "0.0336", "0.5415"]
    assert cells["WARP, photos"] == ["0.25", "", "", "", "", "0.5"]
    assert len(table.rows) == 4 * 3 + 1  # three models and what the paper gains
