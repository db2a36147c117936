"""Labels for any number of rows or items, from file to file: no more than some of them are in memory."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.arrays import Float32, Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.models.annotator import Annotator
from wsabie.models.sure import Least, rank_sure
from wsabie.sources.align import Aligned
from wsabie.sources.records import ItemList, ItemSource, Rows
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects
from wsabie.studies.fitting import opened_by_worker
from wsabie.training.ahead import ahead

ITEMS_AT_ONCE = 1024
Write = Callable[[Sequence[str], Int64, Float32], None]
"""Writes down rows: ids, label numbers (-1: none) and scores, best first."""


class Written(NamedTuple):
    """Rows that were written down, values of theirs whose feature the model does not know, and rows without a label:
    no tag fits them."""

    rows: int
    unknown_features: int
    untagged: int = 0


def annotate_to(
    file: Path,
    annotator: Annotator,
    blocks: Iterable[Rows | ItemSource],
    k: int = 10,
    *,
    candidates: Sequence[str] | None = None,
    exact: bool = False,
    least: Least | None = None,
    total: int | None = None,
    executor: Executor | None = None,
    folder: Path | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> Written:
    """Write the best labels of rows to a file, which appears when all are done.

    Blocks are read while those before are ranked. Where the model ranks exactly, the file does not depend on how its
    rows were cut into blocks.

    Parameters
    ----------
    file : Path
        Its ending says how: .jsonl (an object of "id" and "labels" a line), .tsv (a line of id, label and score for
        each label) or .parquet (columns id, labels and scores).
    annotator : Annotator
    blocks : iterable of Rows or ItemSource
        Rows by features, whose labels do not count, or pictures, sounds or documents.
    k : int
    candidates : list of str or None
        Only these labels.
    exact : bool
        Pass by an index that was made of the labels.
    least : callable or None
        Only labels from these probabilities on, by their columns: see `wsabie.models.sure`.
    total : int or None
        How many there are, for the progress.
    executor : Executor or None
        Where items are described, and rows are ranked if its workers are standing and `folder` is given.
    folder : Path or None
        Of the model, which workers open.
    rejects : Rejects or None
        Where items that cannot be used are listed.

    Raises
    ------
    InputError
        Another ending, rows that do not fit the model, none at all, or a file that cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from wsabie.models.wsabie import Wsabie
    >>> model = Wsabie(dim=4, threads=1, epochs=20).fit(np.eye(2), ["red", "green"])
    >>> rows = Rows(np.eye(2, dtype=np.float32), csr_matrix((2, 0), dtype="int8"), [], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     annotate_to(Path(folder) / "out.tsv", Annotator(model), [rows], k=1)
    ...     [line.split()[:2] for line in (Path(folder) / "out.tsv").read_text().splitlines()]
    Written(rows=2, unknown_features=0, untagged=0)
    [['id', 'label'], ['a', 'red'], ['b', 'green']]
    """
    form, names = form_of(file), list(annotator.model.vocabulary_)
    done = unknown = untagged = 0
    there = executor is not None and executor.standing and folder is not None
    run = executor if executor is not None and there else Serial()
    ranking = _Ranking(folder, None if there else annotator.model, min(k, len(names)), candidates, least, exact)
    under_way: deque[tuple[int, Aligned]] = deque()

    def aligned() -> Iterator[Any]:
        for block in ahead(blocks):
            found = _aligned(annotator, block, executor, rejects)
            under_way.append((len(block), found))
            yield found.rows.X

    with (
        replacing(file) as draft,
        form(draft, names) as write,
        progress.stage("annotating", total, "rows") as stage,
    ):
        for ranked in run.map_with(_Ranking.of, ranking, aligned()):
            taken, found = under_way.popleft()
            if ranked is not None:
                write(found.rows.ids, *ranked)
                untagged += int((ranked[0][:, 0] < 0).sum()) if least is not None else 0
            done, unknown = done + len(found.rows), unknown + found.unknown_features
            stage.advance(taken)
        if not done:
            raise InputError("nothing could be annotated; give rows, pictures, sounds or documents that can be used")
    return Written(done, unknown, untagged)


@dataclass
class _Ranking:
    """The best labels of rows; travels to workers, which open the model themselves."""

    folder: Path | None
    given: Any
    k: int
    candidates: Sequence[str] | None
    least: Least | None
    exact: bool

    @cached_property
    def model(self) -> Any:
        if self.folder is None or self.given is not None:
            return self.given
        return opened_by_worker(self.folder)

    def of(self, X: Any) -> tuple[Int64, Float32] | None:
        """(labels, scores); None of no rows."""
        among: dict[str, Any] = {} if self.candidates is None else {"candidates": list(self.candidates)}
        if self.exact and "index" in self.model.facts():  # other kinds of model know no other search
            among["exact"] = True
        if not X.shape[0]:
            return None
        if self.least is None:
            return self.model.rank(X, self.k, **among)  # type: ignore[no-any-return]
        return rank_sure(self.model, X, self.k, self.least, **among)[:2]


def _aligned(
    annotator: Annotator, block: Rows | ItemSource, executor: Executor | None, rejects: Rejects | None
) -> Aligned:
    """A block in the model's terms; labels that it has are not looked at."""
    if isinstance(block, Rows):
        return annotator.rows_to_learn(block, rejects=rejects)
    return annotator.rows(block, executor=executor, rejects=rejects)


def in_blocks(source: ItemSource) -> Iterator[ItemList]:
    """A source of items, some at a time."""
    items = iter(source)
    while some := list(islice(items, ITEMS_AT_ONCE)):
        yield ItemList(source.path, some, source.things)


def form_of(file: Path) -> "Form":
    """How a file of this name is written; InputError for an unknown ending."""
    if file.suffix.lower() not in _FORMS:
        raise InputError(
            f"the labels of rows are written as .jsonl, .tsv or .parquet; give {file} one of these endings"
        )
    return _FORMS[file.suffix.lower()]


@contextmanager
def _lines(draft: Path, names: Sequence[str]) -> Iterator[Write]:
    with draft.open("w", encoding="utf-8", newline="\n") as stream:

        def write(ids: Sequence[str], labels: Int64, scores: Float32) -> None:
            for one, numbers, theirs in zip(ids, labels.tolist(), scores.tolist(), strict=True):
                found = [[names[y], round(s, 6)] for y, s in zip(numbers, theirs, strict=True) if y >= 0]
                stream.write(json.dumps({"id": one, "labels": found}, ensure_ascii=False) + "\n")

        yield write


@contextmanager
def _table(draft: Path, names: Sequence[str]) -> Iterator[Write]:
    plain = [_in_a_cell(name) for name in names]
    with draft.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write("id\tlabel\tscore\n")

        def write(ids: Sequence[str], labels: Int64, scores: Float32) -> None:
            for one, numbers, theirs in zip(map(_in_a_cell, ids), labels.tolist(), scores.tolist(), strict=True):
                found = zip(numbers, theirs, strict=True)
                stream.writelines(f"{one}\t{plain[y]}\t{s:.6f}\n" for y, s in found if y >= 0)

        yield write


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()) if any(c in text for c in "\t\r\n") else text


@contextmanager
def _parquet(draft: Path, names: Sequence[str]) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = pa.array(names, pa.string())
    schema = pa.schema({"id": pa.string(), "labels": pa.list_(pa.string()), "scores": pa.list_(pa.float32())})
    with pq.ParquetWriter(draft, schema) as writer:

        def write(ids: Sequence[str], labels: Int64, scores: Float32) -> None:
            there = labels >= 0
            starts = pa.array([0, *there.sum(axis=1).cumsum().tolist()], pa.int32())
            texts = known.take(pa.array(labels[there]))
            lists = [pa.ListArray.from_arrays(starts, flat) for flat in (texts, pa.array(scores[there], pa.float32()))]
            writer.write_table(pa.table([pa.array(ids, pa.string()), *lists], schema=schema))

        yield write


Form = Callable[[Path, Sequence[str]], AbstractContextManager[Write]]
_FORMS: dict[str, Form] = {".jsonl": _lines, ".tsv": _table, ".parquet": _parquet}
