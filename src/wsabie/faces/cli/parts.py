"""`wsabie parts`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.faces.cli.common import couples_in, executor, loaded
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json, show_table
from wsabie.storage.atomic import replacing
from wsabie.storage.outputs import refuse_unwritable
from wsabie.studies.picture_parts import Part, drawn, find_parts, label_parts, model_of


def found_command(
    model: Path, picture: Path, given: str | None, k: int, target: Path | None, threads: int | None, json: bool
) -> None:
    """What the picture shows, and the parts that are seen in it."""
    annotator = _opened(model, picture, given, target, threads)
    found = find_parts(annotator, picture, given, k, executor=executor(threads), progress=TerminalProgress())
    _draw(picture, found, target)
    if json:
        _show_json(model, picture, [found])
        return
    out.print(f"{picture}: {found[0].object_label}")
    show_table("", ["part", "score", "where"], [[one.label, f"{one.score:.2f}", f"{one.where}"] for one in found])


def labelled_command(
    model: Path,
    picture: Path,
    places: Sequence[str | Path],
    given: str | None,
    among: Path | None,
    k: int,
    target: Path | None,
    threads: int | None,
    json: bool,
) -> None:
    """The best labels of the picture and of every place together."""
    annotator = _opened(model, picture, given, target, threads)
    couples = None if among is None else couples_in(among)
    _refuse_unknown(annotator, among, couples or ())
    found = label_parts(
        annotator, picture, places, given, k, couples=couples, executor=executor(threads), progress=TerminalProgress()
    )
    if not any(found):
        raise InputError(f"no pair of {among} is left for {given}; give other pairs, or another --object")
    _draw(picture, [pairs[0] for pairs in found if pairs], target)
    if json:
        _show_json(model, picture, found)
        return
    for pairs in found:
        rows = [[one.object_label, one.label, f"{one.score:.2f}"] for one in pairs]
        show_table(f"{pairs[0].where}" if pairs else "", ["object", "part", "score"], rows)


def _opened(model: Path, picture: Path, given: str | None, target: Path | None, threads: int | None) -> Any:
    refuse_unwritable(("picture", target), inputs=(picture, model))
    annotator = loaded(model, threads)
    model_of(annotator, str(model))
    annotator.model.vocabulary_.ids([given] if given else [])  # refuses an unknown label before the work
    if not picture.is_file():
        raise InputError(f"there is no file {picture}; give that of a picture")
    return annotator


def _refuse_unknown(annotator: Any, among: Path | None, couples: Sequence[tuple[str, str]]) -> None:
    try:
        annotator.model.vocabulary_.ids([label for couple in couples for label in couple])
    except UnknownLabelError as error:
        raise UnknownLabelError(f"{among}: {error}") from error


def _draw(picture: Path, parts: Sequence[Part], target: Path | None) -> None:
    if target is None:
        return
    with replacing(target) as draft:
        draft.write_bytes(drawn(picture, parts))
    note(f"{target}: the picture with {plural(sum(isinstance(one.where, str) for one in parts), 'part')} marked")


def _show_json(model: Path, picture: Path, found: Sequence[Sequence[Part]]) -> None:
    told = [
        {"object": one.object_label, "part": one.label, "score": round(one.score, 6), "where": str(one.where)}
        for pairs in found
        for one in pairs
    ]
    show_json({"schema": 1, "model": str(model), "picture": str(picture), "results": told})
