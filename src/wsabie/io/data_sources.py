"""Opening of data in any format, whole or as a stream of rows.

Parquet, sparse text, fastText's text and Mulan's ARFF are streamed, so that no more than a part is ever in memory. Rows
of any other format are read whole first: those of published collections, which are small, and lists of pairs, whose
model is larger than they are (each id has its own vector). Labels of a part have the numbers in which their names came
up; the final numbers need the whole source.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.io.format_detection import FORMATS_BY_KIND, REGION_FORMATS, choose_format
from wsabie.io.formats.fasttext import FastTextStream
from wsabie.io.formats.media_folder import LABELS_FROM
from wsabie.io.formats.mulan import MulanStream
from wsabie.io.formats.parquet_rows import DENSE, SPARSE, ParquetStream
from wsabie.io.formats.parquet_tables import open_parquet_table
from wsabie.io.records import FeatureTable, ItemList, ModalityName, ReadOptions, Source, count_labels
from wsabie.io.regions import RegionCrop
from wsabie.io.row_streams import InMemoryStream, RowStream, build_unlabelled_table
from wsabie.io.shards.sharded_table import open_shards
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.encoding_repair import report_wrong_encoding, restart_repair_log


def open_source(
    path: str | Path,
    *,
    data_format: str | None = None,
    labels_from: str = "auto",
    image_column: str | None = None,
    label_column: str | None = None,
    split: str | None = None,
    counts: bool = False,
    min_count: int = 1,
    n_features: int | None = None,
    modality: ModalityName | None = None,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> Source:
    """Open data in any supported format.

    Parameters
    ----------
    path : str or Path
        A folder of pictures, sounds or documents (see `media_folder`), shards (`sharded_table`; all are read), Parquet
        or a folder of its parts (`parquet`, `parquet_rows`, `documents`), XC or svmlight text (`svmlight`),
        Mulan ARFF (`mulan`), fastText text (`fasttext`), JSON lines or a table with a column `text` (`documents`), a
        pair list (`pair_list`), files of a published collection (`wordnet`, `debian_packages`, `open_images`,
        `mirflickr`, `nus_wide`, `iapr`, `lear`, `citation_graph`, `magnatagatune`, `spoken_digits`, `coco`,
        `pascal_voc`), or one picture or sound. Text may be gzip. A folder that holds both pictures and Parquet is
        refused, unless the table has labels and names files by their paths.
    data_format : str or None
        The format, as `detect_format` calls it; None: the one that fits best.
    labels_from : {"auto", "folders", "metadata", "xmp", "tags", "none"}
        Where labels of pictures and sounds come from; "none" when there are none (what is to be
        annotated). Unless it is "auto", published collections of sounds are folders like any other, and so are those
        of regions unless it is "none".
    image_column, label_column : str or None
        Columns with other names than usual, in Parquet or in the metadata of an image folder; or the kind of
        label of MagnaTagATune ("tag", "artist", "album") and spoken digits ("digit", "speaker" ...), or of item of
        COCO and VOC ("regions", "boxes", "pictures").
    split : str or None
        Keep only rows whose column `split` says so, or which a published split puts there.
    counts : bool
        The features are declared counts: rows with negative values are skipped.
    min_count : int
        Words of a fastText file that are rarer get no column.
    n_features : int or None
        Width of features where the file does not promise one.
    modality : {"pictures", "sounds", "documents"} or None
        The expected modality, if known: with "documents" a file of text that is not a collection of documents is one
        document, and no rows, and a folder is one of text, whatever else it holds.
    rejects : Rejects or None
        Collects what is skipped; a strict one refuses instead.
    progress : Progress
        Reports how far reading is.

    Returns
    -------
    FeatureTable or ItemSource

    Raises
    ------
    InputError
        Nothing there, nothing recognised, or nothing usable; one sentence says what to do.
    AmbiguousFormatError
        Two formats fit a file equally well.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "tags.tsv"
    ...     _ = file.write_text("a\\tsky\\na\\tsea\\nb\\tsea\\n")
    ...     rows = open_source(file)
    >>> rows.label_names, rows.Y.toarray().tolist()
    (['sea', 'sky'], [[1, 1], [1, 0]])
    """
    path = Path(path)
    rejects = Rejects() if rejects is None else rejects
    require(labels_from in LABELS_FROM, f"labels_from is {labels_from!r} but has to be one of {', '.join(LABELS_FROM)}")
    form = FORMATS_BY_KIND[choose_format(path, data_format, plain_text=labels_from == "none", modality=modality)]
    is_unlabelled = labels_from == "none" and form.kind in REGION_FORMATS
    if "kind" in form.takes and labels_from != "auto" and not is_unlabelled:
        form = FORMATS_BY_KIND["folder"]
    if split is not None and "split" not in form.takes:
        raise InputError(f"{path} has no column of splits to choose {split!r} from; leave split out")
    options = {
        "labels_from": labels_from, "image_column": image_column, "label_column": label_column, "kind": label_column,
        "split": split, "counts": counts, "min_count": min_count, "n_features": n_features, "modality": modality,
        "progress": progress,
    }  # fmt: skip
    restart_repair_log()
    source = form.read(path, rejects=rejects, **{name: options[name] for name in form.takes})
    names = source.label_names if isinstance(source, FeatureTable) else _count_label_names(source)
    report_wrong_encoding(path, names)
    if is_unlabelled and isinstance(source, ItemList):
        return replace(source, items=[item._replace(labels=()) for item in source])
    return source


def open_row_stream(
    path: Path, rejects: Rejects, progress: Progress = SILENT, data_format: str | None = None
) -> RowStream:
    """Open a source of rows in any format.

    Parameters
    ----------
    path : Path
        Whatever `open_source` takes for rows.
    rejects : Rejects
        Where rows that cannot be used are listed.
    progress : Progress
        Reports how far the reading before the rows is.
    data_format : str or None
        As for `open_source`.

    Raises
    ------
    InputError
        As `open_source`, or pictures, sounds or documents, whose features have to be extracted first.
    """
    stream = _open_stream(choose_format(path, data_format), path, rejects, progress)
    if stream is not None:
        return stream
    rows = open_source(path, data_format=data_format, rejects=rejects, progress=progress)
    if not isinstance(rows, FeatureTable):
        problem = f"{path} holds {rows.modality}, and shards hold rows"
        raise InputError(f"{problem}; extract features first with `features()`, and give the file that it writes")
    return InMemoryStream(path, rows)


def _open_stream(
    data_format: str, path: Path, rejects: Rejects, progress: Progress = SILENT, *, labelled: bool = True
) -> RowStream | None:
    if data_format == "svmlight":
        from wsabie.io.formats.svmlight import SvmlightStream

        return SvmlightStream(path, rejects, labelled=labelled)
    if data_format == "fasttext":
        return FastTextStream(path, rejects, progress)
    if data_format == "arff":
        return MulanStream(path, rejects)
    if data_format == "parquet":
        table = open_parquet_table(path)
        if table.has_columns(*SPARSE) or table.has_columns(DENSE):
            return ParquetStream(table, ReadOptions(rejects, "auto" if labelled else "none"))
    return None


def open_unlabelled_rows(
    path: Path,
    rejects: Rejects,
    n_features: int | None = None,
    modality: ModalityName | None = None,
    data_format: str | None = None,
) -> Iterator[FeatureTable] | None:
    """Yield the rows of a source without their labels, a part at a time; None for other data than rows.

    No more than a part is in memory, of shards and of sources that `open_row_stream` streams, so that an id
    of Parquet or ARFF may come twice.

    Parameters
    ----------
    path : Path
    rejects : Rejects
        Where rows that cannot be used are listed.
    n_features : int or None
        The width of rows that do not state theirs.
    modality : {"pictures", "sounds", "documents"} or None
        The expected modality; see `open_source`, as which this takes lines of text without labels.
    data_format : str or None
        As for `open_source`.

    Raises
    ------
    InputError
        As `open_source`; of rows that are read, when they are.
    """
    data_format = choose_format(path, data_format, plain_text=True, modality=modality)
    if data_format == "shards":
        return (replace(rows, Y=rows.Y[:, :0], label_names=[]) for rows in open_shards(path).iterate_blocks())
    stream = _open_stream(data_format, path, rejects, labelled=False)
    if stream is None:
        return None
    return (build_unlabelled_table([part.columns], stream.info, n_features or 0) for part in stream.iterate_parts())


def summarise_source(source: Source, data_format: str) -> str:
    """Return format, size and labels of a source.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wsabie import Item
    >>> items = [Item("a", b"", ("sea", "sky")), Item("b", b"", ("sea",))]
    >>> summarise_source(ItemList(Path("a"), items, "documents"), "table")
    'table of documents: 2 documents, 3 labels in 2 names, e.g. sea, sky'
    """
    counts = _count_label_names(source)
    size = f"{FORMATS_BY_KIND[data_format].title}: {len(source):,} {_name_unit(source)}"
    if not counts:
        return f"{size} without labels"
    names = sorted(counts, key=lambda name: (-counts[name], name))[:3]
    return f"{size}, {counts.total():,} labels in {len(counts):,} names, e.g. {', '.join(name[:40] for name in names)}"


def _name_unit(source: Source) -> str:
    is_of_regions = isinstance(source, ItemList) and any(isinstance(item.content, RegionCrop) for item in source.items)
    units = "rows" if isinstance(source, FeatureTable) else "regions" if is_of_regions else source.modality
    return units[:-1] if len(source) == 1 else units


def _count_label_names(source: Source) -> Counter[str]:
    if isinstance(source, FeatureTable):
        counts = zip(source.label_names, count_labels(source).tolist(), strict=True)
        return Counter({name: n for name, n in counts if n})
    label_counts: Counter[str] | None = getattr(source, "label_counts", None)
    return Counter(name for item in source for name in item.labels) if label_counts is None else label_counts
