"""What several commands do: open data, list skipped input, describe pictures, choose where work runs."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeGuard

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Processes, Serial
from wsabie.base.machine import available_cores
from wsabie.base.progress import Progress
from wsabie.faces.cli.terminal import TerminalProgress, note, plural
from wsabie.sources.align import MAPPED
from wsabie.sources.media import medium_of
from wsabie.sources.records import ItemSource, Rows, Source, Things
from wsabie.sources.region_parts import with_pictures
from wsabie.sources.regions import Cutout
from wsabie.sources.sharded import ShardedRows
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.models.annotator import Annotator
    from wsabie.models.sure import Least
    from wsabie.sources.align import Aligned


def opened(
    path: Path,
    rejects: Rejects,
    labels_from: str = "auto",
    n_features: int | None = None,
    things: Things | None = None,
    items: str | None = None,
    usual: str | None = None,
    whole: str | None = None,
) -> Source:
    """The source at a path, refusing an empty one; `n_features` is the width where the rows do not tell theirs, and
    `things` what is wanted, where that is known. Of marked pictures `items` says what an item is, or else `usual`, and
    `whole` under which label the pictures that regions are in are items too.
    """
    from wsabie.sources.declaration import ENDING
    from wsabie.sources.open import open_source

    if path.suffix.lower() == ENDING:
        raise InputError(
            f"{path} says which kinds of things there are and what relates them, for train, evaluate, compare, split "
            "and tune; give data here"
        )
    source = open_source(
        path,
        labels_from=labels_from,
        label_column=_kind_of_items(path, items, usual),
        n_features=n_features,
        things=things,
        rejects=rejects,
        progress=TerminalProgress(),
    )
    if not len(source):
        raise InputError(f"{path} holds nothing to use{_because(rejects)}; look at the list that --rejects FILE writes")
    return source if whole is None or not has_regions(source) else with_pictures(source, whole)


def labels_in(path: Path, n_features: int | None, things: Things | None) -> str:
    """Whether labels are read: nothing in a folder, and no single picture or sound, need have one where they are not
    learnt from.
    """
    if path.is_dir() or medium_of(path.name):
        try:
            opened(path, Rejects(), "auto", n_features, things)
        except InputError:
            return "none"
    return "auto"


def has_regions(source: Source) -> TypeGuard[ItemSource]:
    """Whether items are regions of pictures."""
    return not isinstance(source, Rows) and any(isinstance(item.content, Cutout) for item in source)


def read_as(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What `opened` is told of marked pictures, so that they are read as those that a model was trained on."""
    return {"usual": facts.get("items"), "whole": facts.get("whole")}


def _kind_of_items(path: Path, items: str | None, usual: str | None) -> str | None:
    from wsabie.sources.published import OF_REGIONS, published_kind

    if (items or usual) and published_kind(path) in OF_REGIONS:
        return items or usual
    if items:
        raise InputError(f"--items says what of marked pictures (COCO, Pascal VOC) is an item, and {path} is no "
                         "collection of these; leave --items out")  # fmt: skip
    return None


def width_of(source: Source) -> int | None:
    """How many features the rows of other data should have."""
    return source.X.shape[1] if isinstance(source, Rows) else None


def _because(rejects: Rejects) -> str:
    return f": {rejects.summary()}" if len(rejects) else ""


def executor(threads: int | None, ray: str | None = None, *paths: Path | None) -> Executor:
    """Processes for picture work; this process when one core is wanted; a Ray cluster, where one is named, of which all
    nodes have to see the paths.
    """
    if ray is not None:
        from wsabie.distributed.cluster import refuse_unseen
        from wsabie.distributed.executor import Ray

        run = Ray(ray)
        refuse_unseen(path for path in paths if path is not None)
        return run
    n = threads or available_cores()
    startable = os.access(sys.executable, os.X_OK)  # whoever gave up rights since may not start Python again
    return Processes(n) if n > 1 and startable else Serial()


@contextmanager
def listing(file: Path | None, *, strict: bool) -> Iterator[Rejects]:
    """Collects what the work inside skips; however it ends, this is told, and listed in the file where asked."""
    rejects = Rejects(strict=strict)
    try:
        yield rejects
    except BaseException:
        if len(rejects):  # an empty list says nothing, and may replace one that does
            try:
                _settle(rejects, file)
            except InputError as error:
                note(str(error))
        raise
    _settle(rejects, file)


def _settle(rejects: Rejects, file: Path | None) -> None:
    """Tell how many inputs were skipped, and write the list where asked."""
    if file is not None:
        rejects.write(file)
    if len(rejects):
        note(rejects.summary() + (f" (listed in {file})" if file else "; --rejects FILE lists them"))


KINDS: dict[Things, str] = {"pictures": "images", "sounds": "audio", "documents": "text"}
"""What `wsabie features` calls the description of things."""


def describe_first(source: ItemSource, path: Path) -> str:
    """The end of a sentence where rows are wanted."""
    return f"describe them first: wsabie features {KINDS[source.things]} {quote(str(path))} --out FILE.parquet"


def refuse_without_effect(source: Source | ShardedRows, path: Path, pictures: dict[str, Any]) -> None:
    """Refuse options that say how pictures are described where there are none."""
    if isinstance(source, Rows | ShardedRows) and pictures:
        flag = next(iter(pictures)).removeprefix("n_")
        raise InputError(
            f"--{flag} says how pictures, sounds or documents are described, and {path} holds rows of features; leave "
            f"--{flag} out"
        )


def trained_on(source: Source, facts: dict[str, Any]) -> bool:
    """Whether a collection is the one that a model with these facts learnt from."""
    from wsabie.sources.fingerprint import fingerprint_or_none

    known = {facts.get("fingerprint"), facts.get("source_fingerprint")} - {None}
    return bool(known) and fingerprint_or_none(source) in known


def aligned_rows(
    annotator: "Annotator", model: Path, source: Source, run: Executor, progress: Progress, rejects: Rejects
) -> "Aligned":
    """The source in the model's terms."""
    refuse_unfit(annotator, model, source)
    return annotator.rows(source, executor=run, progress=progress, rejects=rejects)


def refuse_unfit(annotator: "Annotator", model: Path, source: Source) -> None:
    """Refuse a source that does not fit a model; the sentence names the command that makes it fit."""
    if isinstance(source, Rows):
        described = bool(annotator.dictionary) and source.dictionary
        if annotator.terms is not None and described and described != annotator.dictionary:
            raise InputError(
                "the data was described by another dictionary than the training data; give the "
                f"{annotator.terms.things}, or describe them again: wsabie features {KINDS[annotator.terms.things]} "
                f"FOLDER --dictionary {model} --out FILE"
            )
    elif annotator.terms is None:
        remedy = "give rows"
        if annotator.dictionary:
            remedy = (
                f"{describe_first(source, source.path)} --dictionary FOLDER, "
                "with the folder of the dictionary that described the training data"
            )
            if annotator.dictionary.startswith(MAPPED):
                remedy += ", and map them: wsabie features kpca FILE.parquet --map FOLDER --out MAPPED.parquet"
        raise InputError(f"{model} was trained on rows of features and {source.path} holds {source.things}; {remedy}")
    elif source.things != (things := annotator.terms.things):
        raise InputError(f"{model} is a model of {things} and {source.path} holds {source.things}; give {things}")


def loaded(path: Path, threads: int | None = None) -> Any:
    """The annotator in a model folder; a bare estimator is wrapped."""
    from wsabie.models.annotator import Annotator
    from wsabie.models.registry import load

    model = load(path)
    annotator = model if isinstance(model, Annotator) else Annotator(model)
    annotator.model.threads = threads
    return annotator


def least_of(path: Path, annotator: "Annotator", min_precision: float | None) -> "Least | None":
    """From which probabilities on labels of a model are right that often; None: all labels are wanted."""
    from wsabie.catalogue import probability

    return None if min_precision is None else probability.least_of(path, annotator, min_precision)


def refuse_uncollected(folder: Path) -> None:
    """Refuse a collection where a model is wanted, and a folder of items that was not made a collection yet."""
    from wsabie.sources.folders import find_files

    if (folder / ".wsabie" / "collection.json").is_file():
        raise InputError(f"{folder} is a collection and no model; run: wsabie collection status {quote(str(folder))}")
    if not folder.is_dir() or (folder / "config.json").exists():
        return
    medium, files = find_files(folder, Rejects(most=0))
    if files:
        raise InputError(
            f"{folder} is a folder of {medium.things} and not yet a collection; "
            f"run: wsabie collection init {quote(str(folder))}"
        )


def tell_unknown(aligned: "Aligned", where: object) -> None:
    """Say which labels of a collection had no place among those of the training data."""
    names = aligned.unknown_labels
    if names:
        which = f"{plural(len(names), 'label')} of {where} ({plural(aligned.unknown_pairs, 'pair')})"
        note(f"{which} {'is' if len(names) == 1 else 'are'} unknown to the model, such as {quoted(names)}")
    tell_unknown_features(aligned, where)


def tell_unknown_features(aligned: "Aligned", where: object) -> None:
    """Say how many values of new rows belong to features that the training data did not have; refuse where all do."""
    X = aligned.rows.X
    if aligned.unknown_features and not (X.nnz if hasattr(X, "nnz") else X.any()):
        raise InputError(
            f"{where} has none of the model's {X.shape[1]:,} features; give data made in the same way as the training "
            "data"
        )
    if aligned.unknown_features:
        values = plural(aligned.unknown_features, "value")
        note(f"{values} of {where} left out: the model does not know their features (words, ids or columns)")


def label_names(labels: Path) -> list[str]:
    """The labels of a model folder, or the lines of a file up to a tab, each once."""
    from wsabie.sources.text import telling_lines

    if labels.is_dir():
        vocabulary = loaded(labels).model.vocabulary_
        return list(vocabulary.names(vocabulary.living()))
    lines = (line.decode("utf-8", "replace").partition("\t")[0] for _, line in telling_lines(labels, 1 << 20))
    names = list(dict.fromkeys(line for line in lines if line.strip()))
    if not names:
        raise InputError(f"{labels} names no label; write one a line")
    return names


def couples_in(file: Path) -> list[tuple[str, str]]:
    """Pairs of labels of a list; how many lines are none is told."""
    from wsabie.sources.pairs import read_couples

    rejects = Rejects()
    couples = list(read_couples(file, rejects=rejects))
    if rejects.listed:
        where, reason, detail = rejects.listed[0]
        note(f"{plural(len(rejects), 'line')} of {file} left out: {where} for {reason} ({detail})")
    return couples


def quoted(names: Sequence[str]) -> str:
    """The first few names, as they are written."""
    return ", ".join(f"'{name}'" for name in names[:3])
