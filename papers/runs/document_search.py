"""Search for related documents, learned from pairs such as citations (Bengio et al. 2012, part III)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from papers.datasets import PaperData, build_three_sides, extract_split_rows
from papers.record import Cell, DataOpener, FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.best_space import COSINE, find_best_space
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.io.formats.citation_graph import get_links_path, is_citation_graph, read_citation_links
from wsabie.io.formats.pair_list import read_id_pairs
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable, Source, get_groups
from wsabie.io.space_declaration import ENDING, read_declaration
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.storage.rejects import Rejects
from wsabie.workflows.data_splits import split_rows
from wsabie.workflows.spaces.relation_methods import evaluate_cosine

KS = (1, 10)
COLUMNS = ("recall@10", "MAP", "p@1", "hp@10")
_NAME = "document"
Couples = list[tuple[str, str]]


def open_documents(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> PaperData:
    """Documents in three parts, and the pairs of all of them.

    Parameters
    ----------
    name : str
        NAME.docs.txt beside NAME.links.txt (`wsabie.io.formats.citation_graph`), or a TOML file that declares one
        relation within one kind with data (`wsabie.io.space_declaration`).
    seed, executor, progress, rejects
        As of `papers.datasets.open_data`.

    Raises
    ------
    InputError
        Neither of them, or nothing usable in it.
    """
    from wsabie.io.data_sources import open_source

    path, rejects = Path(name), Rejects() if rejects is None else rejects
    description: Mapping[str, Any] = {}
    if path.suffix == ENDING:
        data, description, couples = _read_declared(path, rejects)
        source: Source = open_source(data, labels_from="none", rejects=rejects)
    elif is_citation_graph(path):
        source, couples = open_source(path, rejects=rejects), read_citation_links(get_links_path(path), rejects=rejects)
    else:
        raise InputError(f"{format_path(path)} is not a file of documents with pairs; give {OPENING.data_hint}")
    options = dict(description)
    rows, sides = extract_split_rows(
        source,
        lambda rows: split_rows(rows, "auto", 0.1, 0.1, seed),
        seed,
        executor,
        progress,
        rejects,
        options.pop("features", None),
        **options,
    )
    by = "row" if rows.groups is None else "group"
    about = f"{path.name}; a tenth each for validation and test, by {by}, seed {seed}"
    return PaperData(
        path.name.partition(".")[0],
        about,
        *build_three_sides(rows, sides),
        couples=_select_known(couples, rows, rejects),
    )


OPENING = DataOpener(
    open_documents, "NAME.docs.txt beside NAME.links.txt, or a TOML file that declares pairs within one kind"
)


def _read_declared(path: Path, rejects: Rejects) -> tuple[Path, Mapping[str, Any], Couples]:
    """Return the data of the single kind, the options of its features, and the pairs."""
    declared = read_declaration(path)
    (relation, *other_relations) = declared.relations
    kind = declared.kinds[relation.query]
    if other_relations or relation.query != relation.target or relation.pairs is None or kind.data is None:
        raise InputError(
            f"{format_path(path)} has to declare one relation, within one kind with data, and pairs = a file"
        )
    return kind.data, kind.feature_options, list(read_id_pairs(relation.pairs, rejects=rejects))


def _select_known(couples: Couples, rows: FeatureTable, rejects: Rejects) -> Couples:
    """Select pairs of two known documents, each once; reject the others."""
    ids, unique_pairs = set(rows.ids), dict[tuple[str, str], None]()
    for first_id, second_id in couples:
        if first_id == second_id or first_id not in ids or second_id not in ids:
            rejects.add(f"{format_path(first_id)} {format_path(second_id)}", "pair that is not two of the documents")
        else:
            unique_pairs[min(first_id, second_id), max(first_id, second_id)] = None
    require(len(unique_pairs) > 0, "no pair names two of the documents; give pairs by their ids")
    return list(unique_pairs)


def run_document_search(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Documents that nothing was learned from look for theirs among the training documents.

    Raises
    ------
    InputError
        Rows without pairs, or too few of them.
    """
    data = setting.required_data
    if data.couples is None:
        raise InputError(f"{data.name} has no pairs of documents; give {OPENING.data_hint}")
    train = EntityKind(_NAME, data.train.X, data.train.ids, "tfidf")
    training = Relation(train, train, _build_pair_matrix(data.couples, data.train, data.train), "pairs")
    validation, test = (_build_test_relation(rows, data) for rows in (data.valid, data.test))
    for side, relation in (("training", training), ("validation", validation), ("test", test)):
        require(relation.n_pairs > 0, f"no pair of {data.name} is left for {side}; give more pairs")
    Y = test.pairs
    query_rows = np.flatnonzero(np.diff(Y.indptr))
    notes = [
        f"{data.train.X.shape[1]:,} features; {training.n_pairs // 2:,} pairs to learn from; to be found: "
        f"{test.n_pairs:,} pairs of {len(query_rows):,} test documents with training documents."
    ]
    hops = None if data.hierarchy is None else data.hierarchy.find_distances(data.train.ids)
    if hops is not None:
        n_known = int(hops.is_known().sum())
        require(n_known > 0, f"the hierarchy names none of the documents of {data.name}; give pairs of their ids")
        notes.append(f"The hierarchy knows {n_known:,} of the {len(data.train):,} training documents.")
    rows = []
    for entry in record.entries:
        if entry.entrant == COSINE:
            evaluation = evaluate_cosine(data.train.X, data.test.X, data.train.X, Y, KS, hops=hops)
        else:
            space, rate = find_best_space([training], [validation], setting, **entry.parameters)
            evaluation = space.evaluate([test], ks=KS, hierarchy=data.hierarchy)[test.name]
            notes.append(f"{entry.row}: {rate:.3g} times the default rate, by the MAP of the validation documents.")
        rows.append(_make_finding(entry.row, entry.entrant, evaluation))
    return RunFindings(rows, notes=notes, groups=get_groups(data.test, query_rows))


def _build_test_relation(rows: FeatureTable, data: PaperData) -> Relation:
    """Return held-out documents and their partners in training."""
    return Relation(
        EntityKind(_NAME, rows.X, rows.ids, "tfidf"),
        _NAME,
        _build_pair_matrix(data.couples or [], rows, data.train),
        "pairs",
    )


def _build_pair_matrix(couples: Couples, queries: FeatureTable, targets: FeatureTable) -> Any:
    """Return pairs of a query and a target in either order, csr_matrix (queries, targets) int8."""
    from scipy.sparse import csr_matrix

    query_rows, target_columns = ({name: i for i, name in enumerate(rows.ids)} for rows in (queries, targets))
    both_directions = [*couples, *((second_id, first_id) for first_id, second_id in couples)]
    ends = [
        (query_rows[first_id], target_columns[second_id])
        for first_id, second_id in both_directions
        if first_id in query_rows and second_id in target_columns
    ]
    rows, columns = np.array(ends, np.int64).reshape(-1, 2).T
    return csr_matrix((np.ones(len(ends), np.int8), (rows, columns)), (len(query_rows), len(target_columns)))


def _make_finding(row: str, title: str, evaluation: Any) -> FindingRow:
    measured = [column for column in COLUMNS if column in evaluation.per_row]
    figures: dict[str, Cell] = {column: evaluation.means[column] for column in measured}
    return FindingRow(row, title, figures, {column: evaluation.per_row[column] for column in measured})
