"""Documents that look for those they belong with."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.datasets import PaperData, open_data
from papers.record_run import run_record
from papers.records.record_index import find_record
from papers.runs.document_search import open_documents
from wsabie.core.errors import InputError
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_hierarchy import Hierarchy

QUICK = {"epochs": 15, "dim": 16}


def papers(folder: Path, n: int = 600, topics: int = 8) -> Path:
    """Papers of some topics, which cite papers of theirs; half of the words of a topic are written in two ways."""
    rng = np.random.default_rng(0)
    topic = np.arange(n) % topics
    words = [10 * t + rng.integers(0, 10, 6) for t in topic]
    file = folder / "papers.docs.txt"
    file.write_text("".join(f"p{i}\t{t}\t{' '.join(map(str, words[i]))}\n" for i, t in enumerate(topic)))
    links = [(i, int(rng.choice(np.flatnonzero(topic == topic[i])))) for i in range(n) for _ in range(4)]
    (folder / "papers.links.txt").write_text("".join(f"p{a} p{b}\n" for a, b in links))
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PaperData:
    return open_documents(str(papers(tmp_path_factory.mktemp("papers"))))


def test_papers_are_dealt_out_with_their_pairs(data: PaperData) -> None:
    assert (data.name, len(data.train), len(data.valid), len(data.test)) == ("papers", 480, 60, 60)
    assert data.couples is not None
    assert all(a < b for a, b in data.couples)
    assert len(set(data.couples)) == len(data.couples)


def test_every_row_of_the_table_is_judged_on_the_same_papers(data: PaperData) -> None:
    run = run_record(find_record("documents"), data, threads=1, parameters=QUICK)
    assert [finding.row for finding in run.findings.rows] == [entry.row for entry in run.record.entries]
    for finding in run.findings.rows:
        assert {len(values) for values in finding.per_row.values()} == {60}
        assert float(finding.figures["recall@10"]) > 0.08  # chance: 10 of 480  # type: ignore[arg-type]
    assert all(verdict.difference is not None for verdict in run.verdicts)
    assert "/" not in run.about().partition("Run on")[0].partition("Data: ")[2]


def test_search_counts_pairs_across_the_sides(data: PaperData) -> None:
    """Precision of the cosine, counted by hand."""
    search_run = run_record(
        replace(find_record("documents"), entries=find_record("documents").entries[:1], claims=()), data, threads=1
    )
    idf = np.log(len(data.train) / np.maximum(data.train.X.getnnz(axis=0), 1))
    assert idf.min() >= 0
    citations = {frozenset(pair) for pair in data.couples or []}
    citing = [i for i, a in enumerate(data.test.ids) if any(frozenset((a, b)) in citations for b in data.train.ids)]
    assert len(search_run.findings["tf-idf cosine"].per_row["p@1"]) == len(citing)
    n_found = [sum(frozenset((data.test.ids[i], b)) in citations for b in data.train.ids) for i in citing]
    assert f"{sum(n_found)} pairs of {len(citing)} test documents" in search_run.findings.notes[0]


def test_hierarchy_metrics_measure_the_topic_of_pairs(data: PaperData) -> None:
    """The papers of a topic are one kind: ten right ones are ten of it."""
    kinds = Hierarchy((name, f"topic {int(name[1:]) % 8}") for name in data.train.ids)
    cosine = replace(find_record("documents"), entries=find_record("documents").entries[:1], claims=())
    run = run_record(cosine, replace(data, hierarchy=kinds), threads=1)
    (row,) = run.findings.rows
    assert "hp@10, papers" in run.table().headers
    assert row.figures["recall@10"] < row.figures["hp@10"] < 1  # type: ignore[operator]
    assert row.per_row["hp@10"].shape == (60,)
    assert "hp@10, papers" not in run_record(cosine, data, threads=1).table().headers
    with pytest.raises(InputError, match="names none of the documents of papers"):
        run_record(cosine, replace(data, hierarchy=Hierarchy([("toad", "animal")])), threads=1)


def test_declaration_names_the_file_of_pairs(tmp_path: Path) -> None:
    papers(tmp_path)
    (tmp_path / "cited.tsv").write_text((tmp_path / "papers.links.txt").read_text().replace(" ", "\t") + "p1\tnobody\n")
    file = tmp_path / "cited.toml"
    declaration = '[kinds.paper]\ndata = "papers.docs.txt"\n[relations.cites]\nquery = "paper"\ntarget = "paper"\n'
    file.write_text(declaration + 'pairs = "cited.tsv"\n')
    rejects = Rejects()
    data = open_documents(str(file), rejects=rejects)
    assert data.couples == open_documents(str(tmp_path / "papers.docs.txt")).couples
    assert ("p1 nobody", "pair that is not two of the documents", "") in rejects.listed
    file.write_text(declaration.replace('target = "paper"', 'target = "venue"') + 'pairs = "cited.tsv"\n')
    with pytest.raises(InputError, match="one relation, within one kind with data"):
        open_documents(str(file))


def test_wrong_data_is_refused(tmp_path: Path, data: PaperData) -> None:
    with pytest.raises(InputError, match=r"is not a file of documents with pairs; give NAME.docs.txt"):
        open_documents("sample")
    file = tmp_path / "rows.txt"
    file.write_text("50 4 2\n" + "".join(f"{i % 2} {i % 4}:{1 + i}\n" for i in range(50)))
    with pytest.raises(InputError, match=r"rows.txt has no pairs of documents"):
        run_record(find_record("documents"), open_data(str(file)), threads=1)
    with pytest.raises(InputError, match="no pair of papers is left for training"):
        run_record(find_record("documents"), replace(data, couples=[]), threads=1)
    with pytest.raises(InputError, match=r"documents needs data; name some with --data: NAME.docs.txt"):
        run_record(find_record("documents"))
    papers(tmp_path)
    (tmp_path / "papers.links.txt").write_text("p1 nobody\n")
    with pytest.raises(InputError, match="no pair names two of the documents"):
        open_documents(str(tmp_path / "papers.docs.txt"))
