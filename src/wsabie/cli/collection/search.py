"""`wsabie collection search`."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wsabie.cli.collection import CollectionOptions
from wsabie.cli.framework import JsonObject, Report, argument, command, option
from wsabie.cli.output import escape_line, out, print_note, print_row
from wsabie.cli.shared_options import Knowledge
from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import write_bytes

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.search.text_search import SearchHit, SearchResult


class ItemSearchOptions(CollectionOptions):
    """Options of `wsabie collection search`."""

    text: str = argument('Labels in any language, or any words; -x: without it; "x y": one label.', metavar="TEXT")
    k: int = option("Items of each group, at most.", 10, flag="-k", min=1, max=100)
    knowledge: Knowledge = None
    label: str | None = option("Only items with this label.", metavar="LABEL")
    label_state: Literal["accepted", "rejected", "suggested"] = option("State of that label.", "accepted")
    min_probability: float | None = option("Suggested label: at least this probability.", min=0, max=1)
    max_probability: float | None = option("Suggested label: at most this probability.", min=0, max=1)
    unlabelled: bool = option("Only items without labels.", flag="--untagged")
    no_tag_fits: float | None = option("Untagged, and no suggestion has this precision.", metavar="PRECISION", max=1)
    under: str | None = option("Only this folder of the collection, and those below it.", metavar="FOLDER")
    taken_from: str | None = option("Taken then or later, such as 2026-05.", metavar="TIME")
    taken_to: str | None = option("Taken before this day or time ended.", metavar="TIME")
    words: str | None = option("Words that all occur in the path.", metavar="WORDS")
    out: Path | None = option("PNG file for the pictures of the result.", metavar="FILE.png")


@command(
    'collection search photos "bird -duck"',
    "collection search photos Vogel --knowledge /usr/share/wordnet --out birds.png",
)
def search(options: ItemSearchOptions) -> Report:
    """Find items by words, in groups with reasons.

    First come those with the tag and those alike, then those near to the words, then neighbours.
    """
    if options.out is not None and options.out.suffix.lower() != ".png":
        raise InputError(f"--out {options.out} is not a sheet; choose a name that ends in .png")
    with options.open(read_only=True) as collection:
        from wsabie.collection.items.filters import ItemFilter
        from wsabie.collection.items.item_pages import read_items_by_id
        from wsabie.collection.search.query_parsing import load_label_knowledge
        from wsabie.collection.search.text_search import search_items

        options.check_outputs(("picture", options.out), inputs=collection.roots().values())
        names = ("label", "label_state", "min_probability", "max_probability", "unlabelled", "no_tag_fits")
        conditions = options.pick(*names, "taken_from", "taken_to", "words") | {"folder": options.under}
        knowledge = load_label_knowledge(*options.knowledge or ())
        result = search_items(collection, options.text, options.k, knowledge, ItemFilter(**conditions))
        item_ids = [hit.item for group in result.groups for hit in group.hits]
        paths = {item.id: item.path for item in read_items_by_id(collection, item_ids)}
        if options.out is not None:
            _write_sheet(collection, result, options.out)
        yield _serialize_result(result, paths)
        from wsabie.search.query_labels import format_label_list

        for sentence in result.query.notes:
            print_note(sentence)
        for group in result.groups:
            out.print(escape_line(f"{format_label_list(group.labels)}: {group.reason}"))
            for hit in group.hits:
                print_row(paths[hit.item], _format_hit(hit))
        if not result.groups:
            print_note(_explain_no_match(collection))


def _explain_no_match(collection: "Collection") -> str:
    """Explain why nothing matches, and how to get a model if there is none."""
    from wsabie.collection.annotations.decisions import find_model_in_use, make_no_model_error
    from wsabie.collection.db.database import begin_read

    with begin_read(collection.engine) as connection:
        if find_model_in_use(connection) is not None:
            return "no item has this tag, and the model in use suggests it for none"
        return f"no item has this tag, and {make_no_model_error(connection, collection.folder)}"


def _format_hit(hit: "SearchHit") -> str:
    return hit.label if hit.score is None else f"{hit.label} {hit.score:.2f}"


def _write_sheet(collection: "Collection", result: "SearchResult", target: Path) -> None:
    from wsabie.collection.items.thumbnails import make_thumbnail
    from wsabie.search.query_labels import format_label_list
    from wsabie.workflows.augmented_search import SheetLine, render_sheet
    from wsabie.workflows.report.html_pages import EncodedImage

    pictures, lines = {}, []
    for group in result.groups:
        tiles = [(str(hit.item), _format_hit(hit)) for hit in group.hits]
        lines.append(SheetLine(format_label_list(group.labels), group.reason, tiles))
        for hit in group.hits:
            try:
                pictures[str(hit.item)] = EncodedImage(make_thumbnail(collection, hit.item).read_bytes())
            except InputError as error:
                print_note(str(error))
    write_bytes(target, render_sheet(lines, pictures))


def _serialize_result(result: "SearchResult", paths: dict[int, str]) -> JsonObject:
    groups = [
        group._asdict() | {"hits": [{**hit._asdict(), "path": paths[hit.item]} for hit in group.hits]}
        for group in result.groups
    ]
    query = result.query
    labels, excluded = ([*query.labels.values()], [*query.excluded.values(), *query.excluded_phrases])
    return {"labels": labels, "excluded": excluded, "notes": query.notes, "groups": groups}
