"""Command of a collection: search."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.cli.collection.shared_options import FolderArgument, open_collection_folder
from wsabie.cli.inputs.options import Json
from wsabie.cli.terminal.output import escape_line, out, print_note, show_json
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.search.text_search import SearchResult


def search(
    folder: FolderArgument,
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
    with open_collection_folder(folder, read_only=True) as collection:
        from wsabie.collection.items.item_pages import read_items_by_number
        from wsabie.collection.search.query_parsing import load_label_knowledge
        from wsabie.collection.search.text_search import search_items
        from wsabie.storage.output_checks import check_output_paths

        check_output_paths(("picture", sheet), inputs=collection.roots().values())
        result = search_items(collection, text, k, load_label_knowledge(*knowledge or ()))
        item_ids = [hit.item for group in result.groups for hit in group.hits]
        paths = {item.id: item.path for item in read_items_by_number(collection, item_ids)}
        if sheet is not None:
            _write_sheet(collection, result, sheet)
        explanation = "" if result.groups or json else _explain_no_match(collection)
        if json:
            show_json(_serialize_result(result, paths))
            return
        from wsabie.search.query_labels import format_label_list

        for sentence in result.meaning.said:
            print_note(sentence)
        for group in result.groups:
            out.print(escape_line(f"{format_label_list(group.labels)}: {group.why}"))
            for hit in group.hits:
                score = "" if hit.score is None else f" {hit.score:.2f}"
                typer.echo(f"{escape_line(paths[hit.item])}\t{escape_line(hit.label)}{score}")
        if explanation:
            print_note(explanation)


def _explain_no_match(collection: "Collection") -> str:
    """Explain why nothing matches, and how to get a model if there is none."""
    from wsabie.collection.annotations.decisions import find_model_in_use, make_no_model_error
    from wsabie.collection.db.database import begin_read

    with begin_read(collection.engine) as connection:
        if find_model_in_use(connection) is not None:
            return "nothing is tagged so, and the model in use suggests it for nothing"
        return f"nothing is tagged so, and {make_no_model_error(connection, collection.folder)}"


def _write_sheet(collection: "Collection", result: "SearchResult", target: Path) -> None:
    from wsabie.collection.items.thumbnails import make_thumbnail
    from wsabie.search.query_labels import format_label_list
    from wsabie.storage.atomic_files import write_bytes
    from wsabie.workflows.report.report_input import EncodedImage
    from wsabie.workflows.search.result_sheet import SheetLine, render_sheet

    pictures, lines = {}, []
    for group in result.groups:
        tiles = [
            (str(hit.item), hit.label if hit.score is None else f"{hit.label} {hit.score:.2f}") for hit in group.hits
        ]
        lines.append(SheetLine(format_label_list(group.labels), group.why, tiles))
        for hit in group.hits:
            try:
                pictures[str(hit.item)] = EncodedImage(make_thumbnail(collection, hit.item).read_bytes())
            except InputError as error:
                print_note(str(error))
    write_bytes(target, render_sheet(lines, pictures))


def _serialize_result(result: "SearchResult", paths: dict[int, str]) -> dict[str, Any]:
    meaning = result.meaning
    return {
        "schema": 1,
        "wanted": list(meaning.wanted.values()),
        "unwanted": list(meaning.unwanted.values()),
        "said": meaning.said,
        "groups": [
            group._asdict() | {"hits": [{**hit._asdict(), "path": paths[hit.item]} for hit in group.hits]}
            for group in result.groups
        ],
    }


COMMANDS: tuple[Callable[..., Any], ...] = (search,)
