"""Documents like a document, learnt from pairs ([S] part III): papers and what they cite."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require
from wsabie.models.relations import Kind, Relation
from wsabie.sources.citations import is_citations, links_of, read_links
from wsabie.sources.declaration import ENDING, read_declaration
from wsabie.sources.pairs import read_couples
from wsabie.sources.records import Rows, Source, groups_of
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects
from wsabie.studies.relation_methods import cosines
from wsabie.studies.reproduce.data import Data, described_rows, three_sides
from wsabie.studies.reproduce.in_space import COSINE, best_space
from wsabie.studies.reproduce.record import Cell, Findings, Found, Opening, Record, Setting
from wsabie.studies.splitting import split_rows

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
) -> Data:
    """Documents in three parts, and the pairs of all of them.

    Parameters
    ----------
    name : str
        NAME.docs.txt beside NAME.links.txt (`wsabie.sources.citations`), or a TOML file that declares one relation
        within one kind with data (`wsabie.sources.declaration`).
    seed, executor, progress, rejects
        As of `wsabie.studies.reproduce.data.open_data`.

    Raises
    ------
    InputError
        Neither of them, or nothing usable in it.
    """
    from wsabie.sources.open import open_source

    path, rejects = Path(name), Rejects() if rejects is None else rejects
    description: Mapping[str, Any] = {}
    if path.suffix == ENDING:
        data, description, couples = _declared(path, rejects)
        source: Source = open_source(data, labels_from="none", rejects=rejects)
    elif is_citations(path):
        source, couples = open_source(path, rejects=rejects), read_links(links_of(path), rejects=rejects)
    else:
        raise InputError(f"{shown(path)} is no file of documents with pairs; give {OPENING.wants}")
    options = dict(description)
    rows, sides = described_rows(
        source,
        lambda rows: split_rows(rows, "auto", 0.1, 0.1, seed),
        seed,
        executor,
        progress,
        rejects,
        options.pop("describe", None),
        **options,
    )
    by = "row" if rows.groups is None else "group"
    about = f"{path.name}; a tenth each for validation and test, by {by}, seed {seed}"
    return Data(path.name.partition(".")[0], about, *three_sides(rows, sides), couples=_known(couples, rows, rejects))


OPENING = Opening(
    open_documents, "NAME.docs.txt beside NAME.links.txt, or a TOML file that declares pairs within one kind"
)


def _declared(path: Path, rejects: Rejects) -> tuple[Path, Mapping[str, Any], Couples]:
    """The data of the one kind, how it is described, and the pairs."""
    declared = read_declaration(path)
    (one, *more) = declared.relations
    kind = declared.kinds[one.query]
    if more or one.query != one.target or one.pairs is None or kind.data is None:
        raise InputError(f"{shown(path)} has to declare one relation, within one kind with data, and pairs = a file")
    return kind.data, kind.description, list(read_couples(one.pairs, rejects=rejects))


def _known(couples: Couples, rows: Rows, rejects: Rejects) -> Couples:
    """Pairs of two documents that are there, each once; others are listed."""
    known, found = set(rows.ids), dict[tuple[str, str], None]()
    for a, b in couples:
        if a == b or a not in known or b not in known:
            rejects.add(f"{shown(a)} {shown(b)}", "pair that is not two of the documents")
        else:
            found[min(a, b), max(a, b)] = None
    require(len(found) > 0, "no pair names two of the documents; give pairs by their ids")
    return list(found)


def documents(record: Record, setting: Setting) -> Findings:
    """Documents that nothing was learnt from look for theirs among the training documents.

    Raises
    ------
    InputError
        Rows without pairs, or too few of them.
    """
    data = setting.given
    if data.couples is None:
        raise InputError(f"{data.name} has no pairs of documents; give {OPENING.wants}")
    train = Kind(_NAME, data.train.X, data.train.ids, "tfidf")
    learnt = Relation(train, train, _between(data.couples, data.train, data.train), "pairs")
    held, test = (_asking(rows, data) for rows in (data.valid, data.test))
    for what, relation in (("training", learnt), ("validation", held), ("test", test)):
        require(relation.n_pairs > 0, f"no pair of {data.name} is left for {what}; give more pairs")
    Y = test.pairs
    asking = np.flatnonzero(np.diff(Y.indptr))
    notes = [
        f"{data.train.X.shape[1]:,} features; {learnt.n_pairs // 2:,} pairs to learn from; to be found: "
        f"{test.n_pairs:,} pairs of {len(asking):,} test documents with training documents."
    ]
    hops = None if data.hierarchy is None else data.hierarchy.hops(data.train.ids)
    if hops is not None:
        known = int(hops.known().sum())
        require(known > 0, f"the hierarchy names none of the documents of {data.name}; give pairs of their ids")
        notes.append(f"The hierarchy knows {known:,} of the {len(data.train):,} training documents.")
    rows = []
    for entry in record.entries:
        if entry.entrant == COSINE:
            found = cosines(data.train.X, data.test.X, data.train.X, Y, KS, hops=hops)
        else:
            space, rate = best_space([learnt], [held], setting, **entry.parameters)
            found = space.evaluate([test], ks=KS, hierarchy=data.hierarchy)[test.name]
            notes.append(f"{entry.row}: {rate:.3g} times the default rate, by the MAP of the validation documents.")
        rows.append(_found(entry.row, entry.entrant, found))
    return Findings(rows, notes=notes, groups=groups_of(data.test, asking))


def _asking(rows: Rows, data: Data) -> Relation:
    """Held-out documents and those of training that they belong with."""
    return Relation(
        Kind(_NAME, rows.X, rows.ids, "tfidf"), _NAME, _between(data.couples or [], rows, data.train), "pairs"
    )


def _between(couples: Couples, queries: Rows, targets: Rows) -> Any:
    """Pairs of a query and a target in either order, csr_matrix (queries, targets) int8."""
    from scipy.sparse import csr_matrix

    asked, found = ({name: i for i, name in enumerate(rows.ids)} for rows in (queries, targets))
    turned = [*couples, *((b, a) for a, b in couples)]
    ends = [(asked[a], found[b]) for a, b in turned if a in asked and b in found]
    rows, columns = np.array(ends, np.int64).reshape(-1, 2).T
    return csr_matrix((np.ones(len(ends), np.int8), (rows, columns)), (len(asked), len(found)))


def _found(row: str, title: str, evaluation: Any) -> Found:
    measured = [column for column in COLUMNS if column in evaluation.per_row]
    figures: dict[str, Cell] = {column: evaluation.means[column] for column in measured}
    return Found(row, title, figures, {column: evaluation.per_row[column] for column in measured})
