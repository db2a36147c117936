"""`wsabie search`."""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import executor, labels_in, listing, loaded, opened, read_as, refuse_unfit
from wsabie.faces.cli.meanings import known_of, meant_by, vectors_of
from wsabie.faces.cli.spaces import space_in
from wsabie.faces.cli.terminal import TerminalProgress, note, one_line, out, plural, show_json
from wsabie.labels.names import Vocabulary
from wsabie.models.encoded import Encoded, refuse_without_points
from wsabie.search.asked import Queries, SameThings, listed
from wsabie.search.related import KnownRelated, Related
from wsabie.sources.records import Rows, Source
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects
from wsabie.studies.augmented_search import Answer, AugmentedSearch, Found, answerable


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    model: Path
    query: str
    within: tuple[Path, ...]
    k: int
    n_related: int
    knowledge: tuple[Path, ...]
    pairs: tuple[str, ...]
    table: Path | None
    vectors: Path | None
    trained: tuple[Path, ...]
    relation: str | None
    distinct: bool
    points: Path | None
    out: Path | None
    threads: int | None
    strict: bool
    rejects: Path | None
    json: bool


def search_command(asked: Asked) -> None:
    """Understand the query, rank the collection, show it in groups."""
    _refuse_early(asked)
    if space_in(asked.model) is not None:
        raise InputError(
            f"{asked.model} is a space of several kinds; search takes a model of labels, and a space as --trained"
        )
    annotator = loaded(asked.model, asked.threads)
    refuse_without_points(annotator.model)
    vocabulary = annotator.model.vocabulary_
    at = vocabulary.find(asked.query)
    query = asked.query if at < 0 else vocabulary.names([at])[0]  # which a label may have got later
    with listing(asked.rejects, strict=asked.strict) as rejects:
        source, told = _collection(asked, annotator, rejects)
        same = SameThings(told.Y, told.label_names)
        queries, related = _knowing(asked, annotator.model, same, rejects)
        answerable(queries.understand(query), annotator.model)  # refuses an unknown word before the work
        items = _encoded(asked, annotator, source, rejects)
        groups = _groups(told, items) if asked.distinct else None
        search = AugmentedSearch(annotator.model, items, queries=queries, related=related, groups=groups)
        answer = search.find(query, asked.k, asked.n_related)
        labels, files = _labels_of(told, answer, vocabulary), _files_of(source, answer)
        if asked.out is not None and not isinstance(source, Rows):
            _draw(asked, asked.out, answer, source, labels, files)
        skipped = len(rejects)
    _show(asked, answer, labels, files, skipped)


def _refuse_early(asked: Asked) -> None:
    """What can be said before anything is read."""
    from wsabie.storage.folder import refuse_foreign

    suffix = None if asked.out is None else asked.out.suffix.lower()
    if suffix not in (None, ".html", ".png"):
        raise InputError(f"--out {asked.out} is neither a page (.html) nor a sheet (.png); choose one of these endings")
    if asked.points is not None:
        refuse_foreign(asked.points)
    read = (asked.model, *asked.within, *asked.knowledge, *asked.trained, asked.table, asked.vectors)
    kind: Any = "html" if suffix == ".html" else "picture"
    refuse_unwritable((kind, asked.out), ("rejects", asked.rejects), inputs=read, folder=asked.points)


def _collection(asked: Asked, annotator: Any, rejects: Rejects) -> tuple[Source, Rows]:
    """What is searched, and what is told of it: ids, labels, groups."""
    from wsabie.features.collect import outline
    from wsabie.sources.joined import joined

    things = annotator.terms and annotator.terms.things
    wide = annotator.model.n_features_in_
    marked = read_as(annotator.facts)
    source = joined(
        [opened(path, rejects, labels_in(path, wide, things), wide, things, **marked) for path in asked.within]
    )
    if asked.out is not None and (isinstance(source, Rows) or source.things != "pictures"):
        held = "rows of features" if isinstance(source, Rows) else source.things
        raise InputError(f"--out draws pictures and {asked.within[0]} holds {held}; leave --out out")
    return source, source if isinstance(source, Rows) else outline(source)


def _knowing(asked: Asked, model: Any, same: SameThings, rejects: Rejects) -> tuple[Queries, list[Related]]:
    """Who understands the query, and who knows related labels: trained models first."""
    from wsabie.models.registry import load
    from wsabie.models.related import SpaceRelated, related_by

    labels, known, vectors = model.vocabulary_.names(model.vocabulary_.living()), None, None
    related: list[Related] = [related_by(load(path), asked.relation, str(path)) for path in asked.trained]
    if asked.relation is not None and not any(isinstance(one, SpaceRelated) for one in related):
        raise InputError(f"--relation {asked.relation} is one of a space, and --trained has none; leave --relation out")
    if hasattr(model, "related"):
        related.insert(0, related_by(model, None, str(asked.model)))
    if asked.knowledge or asked.pairs:
        known = meant_by(known_of(asked.knowledge, asked.pairs), labels, asked.table)
        called = " and ".join(path.stem for path in asked.knowledge) or "pairs"
        related.append(KnownRelated(known, called=called, same=same))
        if not any(known.concepts):
            note(f"nothing is known of the {plural(len(labels), 'label')} of {asked.model}")
    if asked.vectors is not None:
        vectors = vectors_of(asked.vectors, rejects=rejects)
    return Queries(labels, known, same, vectors), related


def _encoded(asked: Asked, annotator: Any, source: Source, rejects: Rejects) -> Encoded:
    """The collection as points: those that are kept where they are of this model and data, else new ones."""
    from wsabie.sources.fingerprint import fingerprint_or_none
    from wsabie.storage.folder import folder_kind

    points, content = asked.points, None if asked.points is None else fingerprint_or_none(source)
    if points is not None and content is None:
        note(f"{points} is left as it is: something in the collection cannot be read, so it would not be known again")
        points = None
    origin = ""
    if points is not None:
        origin = f"{hashlib.sha256((asked.model / 'config.json').read_bytes()).hexdigest()[:16]}-{content}"
        if folder_kind(points) is not None:
            kept = Encoded.load(points)
            if kept.origin == origin:
                return kept
            note(f"{points} holds points of another model or collection; they are made anew")
    refuse_unfit(annotator, asked.model, source)
    run, progress = executor(asked.threads), TerminalProgress()
    made = Encoded.of(annotator, source, origin=origin, executor=run, progress=progress, rejects=rejects)
    if not len(made):
        raise InputError(f"nothing in {asked.within[0]} can be read; look at the list that --rejects FILE writes")
    if points is not None:
        made.save(points)
    return made


def _groups(told: Rows, items: Encoded) -> list[str]:
    """The group of each item; itself where there is none."""
    if told.groups is None:
        raise InputError("--distinct shows one thing of each group, and the collection has no groups; leave it out")
    known = dict(zip(told.ids, told.groups, strict=True))
    return [known[name] or name for name in items.ids]


def _labels_of(told: Rows, answer: Answer, known: Vocabulary) -> dict[str, set[str]]:
    """The labels that the things found carry, by the names that the model has for them now; empty where nothing in the
    collection has a label.
    """
    Y, names = told.Y.tocsr(), list(known)
    now = [names[at] if (at := known.find(name)) >= 0 else name for name in told.label_names]
    wanted = {one.id for group in answer.groups for one in group.found}
    return {
        name: {now[y] for y in Y.indices[at][Y.data[at] > 0]}
        for row, name in enumerate(told.ids)
        if Y.nnz and name in wanted
        for at in [slice(Y.indptr[row], Y.indptr[row + 1])]
    }


def _files_of(source: Source, answer: Answer) -> dict[str, str]:
    """Where the things found lie, by id, of those that are files of their own."""
    if isinstance(source, Rows):
        return {}
    wanted = {one.id for group in answer.groups for one in group.found}
    return {item.id: str(item.content) for item in source if item.id in wanted and isinstance(item.content, Path)}


def _draw(
    asked: Asked, target: Path, answer: Answer, source: Any, labels: dict[str, set[str]], files: dict[str, str]
) -> None:
    from wsabie.storage.atomic import write_bytes, write_text
    from wsabie.studies.found_pictures import html_page, pictures_of, png_sheet

    pictures = pictures_of(answer, source)
    if target.suffix.lower() == ".html":
        where = " and ".join(path.name for path in asked.within)
        write_text(target, html_page(answer, pictures, where, files=files, labels=labels))
    else:
        write_bytes(target, png_sheet(answer, pictures))


def _show(asked: Asked, answer: Answer, labels: dict[str, set[str]], files: dict[str, str], skipped: int) -> None:
    understood = answer.understood
    if asked.json:
        groups = [
            {"labels": group.labels, "why": group.why, "score": _round(group.score),
             "found": [_as_dict(one, labels, files) for one in group.found]}
            for group in answer.groups
        ]  # fmt: skip
        written = {} if asked.out is None else {"out": str(asked.out)}
        told = {**understood._asdict(), "query": asked.query}
        show_json({"schema": 1, "model": str(asked.model), **told, "groups": groups, **written, "skipped": skipped})
        return
    for number, group in enumerate(answer.groups):
        if number:
            out.print()
            out.print(one_line(f"{listed(group.labels)}: {group.why}"))
        else:
            out.print(one_line(understood.sentence))
        for one in group.found:
            sign = "*" if one.label in labels.get(one.id, ()) else ""
            sys.stdout.write(f"{one_line(files.get(one.id, one.id))}\t{sign}{one_line(one.label)} {one.score:.2f}\n")
    if labels:
        note("* a label that it carries in the collection")
    if asked.out is not None:
        note(f"pictures: {asked.out}")


def _as_dict(one: Found, labels: dict[str, set[str]], files: dict[str, str]) -> dict[str, Any]:
    known = {"labelled": one.label in labels[one.id]} if one.id in labels else {}
    place = {"file": files[one.id]} if one.id in files else {}
    return {"id": one.id, **place, "label": one.label, "score": round(one.score, 6), **known}


def _round(score: float | None) -> float | None:
    return None if score is None else round(score, 6)
