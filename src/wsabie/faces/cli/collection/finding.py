"""The command that finds items of a collection: search."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.collection.group import Folder, opened
from wsabie.faces.cli.options import Json
from wsabie.faces.cli.terminal import note, one_line, out, show_json

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection
    from wsabie.catalogue.searching import Answer


def search(
    folder: Folder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help='Labels in any language; -x: without it; "x y" in quotes: one label.')
    ],
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Items of each group, at most.")] = 10,
    knowledge: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="What knows words, such as /usr/share/wordnet or translations; several complete each other.",
        ),
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.png", help="A sheet of the pictures that were found.")
    ] = None,
    json: Json = False,
) -> None:
    """Find items by words: tagged so, looking so, then related labels, each group with its reason."""
    if sheet is not None and sheet.suffix.lower() != ".png":
        raise InputError(f"--out {sheet} is no sheet; choose a name that ends in .png")
    with opened(folder, read_only=True) as collection:
        from wsabie.catalogue.items import numbered
        from wsabie.catalogue.searching import search as find
        from wsabie.catalogue.understanding import meanings_in
        from wsabie.storage.outputs import refuse_unwritable

        refuse_unwritable(("picture", sheet), inputs=collection.roots().values())
        answer = find(collection, text, k, meanings_in(*knowledge or ()))
        wanted = [hit.item for group in answer.groups for hit in group.hits]
        paths = {item.id: item.path for item in numbered(collection, wanted)}
        if sheet is not None:
            _draw(collection, answer, sheet)
        why = "" if answer.groups or json else _nothing(collection)
        if json:
            show_json(_document(answer, paths))
            return
        from wsabie.search.asked import listed

        for sentence in answer.meaning.said:
            note(sentence)
        for group in answer.groups:
            out.print(one_line(f"{listed(group.labels)}: {group.why}"))
            for hit in group.hits:
                score = "" if hit.score is None else f" {hit.score:.2f}"
                typer.echo(f"{one_line(paths[hit.item])}\t{one_line(hit.label)}{score}")
        if why:
            note(why)


def _nothing(collection: "Collection") -> str:
    """Why nothing was found, and what to do where that is for want of a model."""
    from wsabie.catalogue.database import reading
    from wsabie.catalogue.deciding import model_in_use, no_model

    with reading(collection.engine) as connection:
        if model_in_use(connection) is not None:
            return "nothing is tagged so, and the model in use suggests it for nothing"
        return f"nothing is tagged so, and {no_model(connection, collection.folder)}"


def _draw(collection: "Collection", answer: "Answer", target: Path) -> None:
    from wsabie.catalogue.thumbnails import thumbnail
    from wsabie.search.asked import listed
    from wsabie.storage.atomic import write_bytes
    from wsabie.studies.found_pictures import Line, sheet
    from wsabie.studies.report_input import Image

    pictures, lines = {}, []
    for group in answer.groups:
        tiles = [
            (str(hit.item), hit.label if hit.score is None else f"{hit.label} {hit.score:.2f}") for hit in group.hits
        ]
        lines.append(Line(listed(group.labels), group.why, tiles))
        for hit in group.hits:
            try:
                pictures[str(hit.item)] = Image(thumbnail(collection, hit.item).read_bytes())
            except InputError as error:
                note(str(error))
    write_bytes(target, sheet(lines, pictures))


def _document(answer: "Answer", paths: dict[int, str]) -> dict[str, Any]:
    meaning = answer.meaning
    return {
        "schema": 1,
        "wanted": list(meaning.wanted.values()),
        "unwanted": list(meaning.unwanted.values()),
        "said": meaning.said,
        "groups": [
            group._asdict() | {"hits": [{**hit._asdict(), "path": paths[hit.item]} for hit in group.hits]}
            for group in answer.groups
        ],
    }


COMMANDS: tuple[Callable[..., Any], ...] = (search,)
