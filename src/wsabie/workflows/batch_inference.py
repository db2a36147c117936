"""Annotation and evaluation of any number of rows, block by block, here or by workers."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.core.errors import require
from wsabie.core.execution import SILENT, Executor, Progress, SerialExecutor
from wsabie.core.json_conversion import JsonObject
from wsabie.evaluation.score_evaluation import BlockFigures, Evaluation, EvaluationAccumulator
from wsabie.io.alignment import AlignedTable
from wsabie.io.records import FeatureTable, ItemList, ItemSource
from wsabie.models.annotators import Annotator, ThresholdFunction, rank_above
from wsabie.models.base.feature_matrix import iterate_row_ranges
from wsabie.models.base.label_model import LabelModel, LabelScores
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects
from wsabie.training.prefetch import prefetch

ITEMS_PER_BLOCK = 1024
Write = Callable[[Sequence[str], Int64, Float32], None]
"""Writes rows: ids, label numbers (-1: none) and scores, best first."""
FormatRow = Callable[[str, LabelScores], str]
OutputFormat = Callable[[Path, Sequence[str]], AbstractContextManager[Write]]


def evaluate_model(
    model: LabelModel,
    rows: FeatureTable,
    ks: Sequence[int],
    stage: str,
    progress: Progress = SILENT,
    *,
    label_ids: Int64 | None = None,
    workers: tuple[Executor, Path] | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate a model on rows by block, in bounded memory; `options` are those of `evaluate_scores`.

    With `label_ids` the label columns of `rows` are these labels of the model. `workers` is an executor whose workers
    open the model in a folder and evaluate the blocks.
    """
    accumulator = EvaluationAccumulator(rows.Y, rows.Y.shape[1], ks, **options)
    executor, folder = workers or (SerialExecutor(), None)
    evaluation = _BlockEvaluation(model if folder is None else None, folder, accumulator, label_ids)
    blocks = ((lo, rows.X[lo:hi]) for lo, hi in iterate_row_ranges(len(rows), rows.Y.shape[1]))
    with progress.stage(stage, len(rows), "rows") as bar:
        for block in executor.map_with(_BlockEvaluation.evaluate, evaluation, blocks):
            accumulator.add(block)
            bar.advance(block.hi - block.lo)
    return accumulator.result()


@dataclass
class WorkerModel:
    """A model for workers: without `local_model` each opens that of the folder, to work on one thread."""

    local_model: LabelModel | None
    folder: Path | None

    @cached_property
    def model(self) -> Any:
        from wsabie.models.annotators import Annotator
        from wsabie.models.loader import load

        if self.local_model is not None or self.folder is None:
            return self.local_model
        model = load(self.folder)
        model = model.model if isinstance(model, Annotator) else model
        model.threads = 1
        return model


@dataclass
class _BlockEvaluation(WorkerModel):
    """Evaluation of blocks of rows."""

    accumulator: EvaluationAccumulator
    label_ids: Int64 | None

    def evaluate(self, block: tuple[int, Matrix]) -> BlockFigures:
        lo, X = block
        scores = self.model.scores(X)
        return self.accumulator.measure(lo, scores if self.label_ids is None else scores[:, self.label_ids])


class AnnotationSummary(NamedTuple):
    """Counts of written rows, of values with unknown features, and of rows without a fitting label."""

    rows: int
    unknown_features: int
    untagged: int = 0


def annotate_to_file(
    file: Path,
    annotator: Annotator,
    blocks: Iterable[FeatureTable | ItemSource],
    k: int = 10,
    *,
    candidates: Sequence[str] | None = None,
    exact: bool = False,
    least: ThresholdFunction | None = None,
    executor: Executor | None = None,
    folder: Path | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> AnnotationSummary:
    """Write the best labels of rows to a file, which appears when all are done.

    Blocks are read while earlier ones are ranked. If the model ranks exactly, the file does not depend on the blocks.

    Parameters
    ----------
    file : Path
        Its suffix sets the format: .jsonl (an object of "id" and "labels" a line), .tsv (a line of id, label and score
        for each label) or .parquet (columns id, labels and scores).
    annotator : Annotator
    blocks : iterable of FeatureTable or ItemSource
        Rows, whose labels are ignored, or images, audio or documents.
    k : int
    candidates : list of str or None
        Only these labels.
    exact : bool
        Bypass the index of the labels.
    least : callable or None
        Minimum probabilities of labels, by their columns: see `wsabie.models.annotators`.
    executor : Executor or None
        Extracts features; ranks rows too if its workers are standing and `folder` is given.
    folder : Path or None
        Model folder that workers open.
    rejects : Rejects or None
        Lists items that cannot be used.

    Raises
    ------
    InputError
        Another suffix, rows that do not fit the model, no rows, or a file that cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from wsabie import Wsabie
    >>> model = Wsabie(dim=4, threads=1, epochs=20).fit(np.eye(2), ["red", "green"])
    >>> rows = FeatureTable(np.eye(2, dtype=np.float32), csr_matrix((2, 0), dtype="int8"), [], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     annotate_to_file(Path(folder) / "out.tsv", Annotator(model), [rows], k=1)
    ...     [line.split()[:2] for line in (Path(folder) / "out.tsv").read_text().splitlines()]
    AnnotationSummary(rows=2, unknown_features=0, untagged=0)
    [['id', 'label'], ['a', 'red'], ['b', 'green']]
    """
    open_writer, names = detect_output_format(file), list(annotator.model.vocabulary_)
    n_rows = n_unknown = untagged = 0
    use_workers = executor is not None and executor.has_persistent_workers and folder is not None
    ranking_executor = executor if executor is not None and use_workers else SerialExecutor()
    local_model = None if use_workers else annotator.model
    ranking = LabelRanking(local_model, folder, min(k, len(names)), candidates, least, exact)
    pending: deque[tuple[int, AlignedTable]] = deque()

    def align_blocks() -> Iterator[Matrix]:
        for block in prefetch(blocks):
            if isinstance(block, FeatureTable):
                table = annotator.rows(block, rejects=rejects, keep_labels=True)  # its own labels are ignored
            else:
                table = annotator.rows(block, executor=executor, rejects=rejects)
            pending.append((len(block), table))
            yield table.rows.X

    with (
        replace_file(file) as draft,
        open_writer(draft, names) as write,
        progress.stage("annotating", None, "rows") as stage,
    ):
        for ranked in ranking_executor.map_with(LabelRanking.rank, ranking, align_blocks()):
            n_items, aligned_table = pending.popleft()
            if ranked is not None:
                write(aligned_table.rows.ids, *ranked)
                untagged += int((ranked[0][:, 0] < 0).sum()) if least is not None else 0
            n_rows, n_unknown = n_rows + len(aligned_table.rows), n_unknown + aligned_table.unknown_features
            stage.advance(n_items)
        require(n_rows > 0, "nothing could be annotated; give rows, pictures, sounds or documents that can be used")
    return AnnotationSummary(n_rows, n_unknown, untagged)


@dataclass
class LabelRanking(WorkerModel):
    """Ranking of the labels of rows: the k best, or those whose probability reaches the threshold `least`."""

    k: int
    candidates: Sequence[str] | None
    least: ThresholdFunction | None
    exact: bool

    def rank(self, X: Matrix) -> tuple[Int64, Float32] | None:
        """Return (labels, scores), or None for no rows."""
        options: JsonObject = {} if self.candidates is None else {"candidates": list(self.candidates)}
        if self.exact and "index" in self.model.facts():  # kinds of model without an index always rank exactly
            options["exact"] = True
        if not X.shape[0]:
            return None
        if self.least is None:
            return self.model.rank(X, self.k, **options)  # type: ignore[no-any-return]
        return rank_above(self.model, X, self.k, self.least, **options)[:2]


def iterate_item_blocks(source: ItemSource) -> Iterator[ItemList]:
    """Yield a source of items in blocks."""
    items = iter(source)
    while block := list(islice(items, ITEMS_PER_BLOCK)):
        yield ItemList(source.path, block, source.modality)


def detect_output_format(file: Path) -> "OutputFormat":
    """Return the writer for this file name; raise InputError for an unknown suffix."""
    fact = "the labels of rows are written as .jsonl, .tsv or .parquet"
    require(file.suffix.lower() in _FORMS, f"{fact}; give {file} one of these endings")
    return _FORMS[file.suffix.lower()]


@contextmanager
def _open_text(draft: Path, names: Sequence[str], *, header: str, format_row: FormatRow) -> Iterator[Write]:
    with draft.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(header)

        def write(ids: Sequence[str], labels: Int64, scores: Float32) -> None:
            for row_id, label_ids, row_scores in zip(ids, labels.tolist(), scores.tolist(), strict=True):
                pairs = zip(label_ids, row_scores, strict=True)
                stream.write(format_row(row_id, [(names[label], score) for label, score in pairs if label >= 0]))

        yield write


def _format_json(row_id: str, ranking: LabelScores) -> str:
    labels = [[name, round(score, 6)] for name, score in ranking]
    return json.dumps({"id": row_id, "labels": labels}, ensure_ascii=False) + "\n"


def _format_tsv(row_id: str, ranking: LabelScores) -> str:
    cell = _strip_separators(row_id)
    return "".join(f"{cell}\t{_strip_separators(name)}\t{score:.6f}\n" for name, score in ranking)


def _strip_separators(text: str) -> str:
    return " ".join(text.split()) if any(character in text for character in "\t\r\n") else text


@contextmanager
def _open_parquet(draft: Path, names: Sequence[str]) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name_array = pa.array(names, pa.string())
    schema = pa.schema({"id": pa.string(), "labels": pa.list_(pa.string()), "scores": pa.list_(pa.float32())})
    with pq.ParquetWriter(draft, schema) as writer:

        def write(ids: Sequence[str], labels: Int64, scores: Float32) -> None:
            has_label = labels >= 0
            starts = pa.array([0, *has_label.sum(axis=1).cumsum().tolist()], pa.int32())
            texts = name_array.take(pa.array(labels[has_label]))
            values = (texts, pa.array(scores[has_label], pa.float32()))
            lists = [pa.ListArray.from_arrays(starts, column) for column in values]
            writer.write_table(pa.table([pa.array(ids, pa.string()), *lists], schema=schema))

        yield write


_FORMS: dict[str, OutputFormat] = {
    ".jsonl": partial(_open_text, header="", format_row=_format_json),
    ".tsv": partial(_open_text, header="id\tlabel\tscore\n", format_row=_format_tsv),
    ".parquet": _open_parquet,
}
