"""The records: the papers' figures bear their own claims out, and every record can be told apart."""

import pytest

from papers.claims import HOLDS, OrderingClaim, is_borne_out_in_paper
from papers.records.record_index import RECORDS, find_record
from wsabie.core.errors import InputError


def claims() -> list[tuple[str, OrderingClaim]]:
    return [(name, claim) for name, r in RECORDS.items() for claim in r.claims if isinstance(claim, OrderingClaim)]


@pytest.mark.parametrize(("name", "claim"), claims(), ids=str)
def test_the_figures_of_the_paper_bear_its_claims_out(name: str, claim: OrderingClaim) -> None:
    """A figure that was copied wrongly, or a claim that nobody made, is likely to be seen here."""
    assert is_borne_out_in_paper(claim, RECORDS[name].published) in (HOLDS, "")


def test_most_claims_are_about_printed_figures() -> None:
    printed = [claim for name, claim in claims() if is_borne_out_in_paper(claim, RECORDS[name].published) == HOLDS]
    assert len(printed) >= 40


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_whole(name: str) -> None:
    record = RECORDS[name]
    assert record.name == name
    assert record.title
    assert record.place
    assert record.procedure.endswith(".")
    assert record.table_columns
    assert all(sentence.endswith(".") for sentence in record.wrong)
    for published in record.published:
        assert all(len(cells) == len(published.columns) for cells in published.rows.values())
    rows = [entry.row for entry in record.entries]
    assert len(set(rows)) == len(rows)


def test_claims_name_rows_that_exist() -> None:
    for name, claim in claims():
        better, worse, metric = claim.parts
        record = RECORDS[name]
        known_rows = {entry.row for entry in record.entries} | {row for p in record.published for row in p.rows}
        assert {better, worse} <= known_rows, (name, claim.text)
        assert metric in record.table_columns, (name, claim.text)


def test_speed_ups_and_sums_that_follow_from_the_figures() -> None:
    """Derived figures of the papers, worked out again: guards against slips in copying."""
    table_4 = find_record("vse-ens-table-4").published
    ratios = [p.rows["WARP"][0] / p.rows["VSE-ens"][0] for p in table_4[:3]]  # type: ignore[operator]
    assert ratios == pytest.approx([5.02, 2.07, 2.51], abs=0.005)
    for published in find_record("vse-ens-table-2").published:
        ours, warp = (published.rows[row] for row in ("VSE-ens", "WARP"))
        gains = [float(str(cell).rstrip("%")) for cell in published.rows["Improve"]]
        assert gains == pytest.approx([100 * (a / b - 1) for a, b in zip(ours, warp, strict=True)], abs=1.5)  # type: ignore[operator]
        for p5, r5, p10, r10, *_ in (cells for row, cells in published.rows.items() if row != "Improve"):
            assert r5 == pytest.approx(5 * p5, abs=0.0006)  # type: ignore[operator]
            assert r10 == pytest.approx(10 * p10, abs=0.0006)  # type: ignore[operator]
    imagenet = find_record("wsabie-table-8").published[0]
    seconds = 5.6 * 3600 / 839_310
    assert imagenet.figure("WSABIE low", "s/image") == pytest.approx(seconds, abs=0.0005)


def test_unknown_record_error_suggests_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"no table called 'wsabie-tabel-2'; did you mean 'wsabie-table-2'\?"):
        find_record("wsabie-tabel-2")
    with pytest.raises(InputError, match="`python -m papers list` shows all"):
        find_record("zzz")


@pytest.mark.parametrize("name", [name for name, r in RECORDS.items() if r.needs_data])
def test_claims_that_may_fail_on_other_data_have_a_reason(name: str) -> None:
    without = [claim.text for claim in RECORDS[name].claims if not claim.why]
    assert without == []
