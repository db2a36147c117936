"""Command of a collection: map."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsabie.cli.collection import Folder, open_collection_folder
from wsabie.cli.command import command, options
from wsabie.cli.options import OutputOptions
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, show_json

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.maps.item_map import LabelPosition, Map

_MAX_LABELS = 1_000_000


@options
class MapOptions:
    """Options of `wsabie collection map`."""

    folder: Folder
    umap: Annotated[bool, typer.Option(help="By UMAP, which is made where it is missing or items came since.")] = False
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write items and labels with x and y as CSV.")] = None
    output: OutputOptions = OutputOptions()


@command("collection map photos", "collection map photos --umap --out map.csv", name="map")
def map_(options: MapOptions) -> None:
    """Project items and labels onto the plane by the model in use: the map that `wsabie serve` shows."""
    umap, to = options.umap, options.out
    with open_collection_folder(options.folder, read_only=True) as collection:
        from wsabie.collection.maps import item_map
        from wsabie.storage.output_checks import check_output_paths

        check_output_paths(("places", to), inputs=[collection.place])
        if umap and item_map.list_projections(collection)[1].state != "ready":
            item_map.compute_projection(collection, progress=TerminalProgress())
        projection = item_map.build_map(collection, "umap" if umap else "pca")
        labels = item_map.place_labels(collection, projection, _MAX_LABELS)
        quality = item_map.measure_map_quality(collection, projection)
        if to is not None:
            _write_table(collection, projection, labels, to)
        facts = {
            "schema": 1,
            "model": projection.model,
            "method": projection.method,
            "items": len(projection.items),
            "labels": len(labels),
            "share_of_variance": projection.share,
            "around_labels": quality._asdict(),
            "projections": [status._asdict() for status in item_map.list_projections(collection)],
        }
    if options.output.json:
        show_json(facts)
        return
    share = "" if projection.share is None else f", which hold {projection.share:.0%} of what tells items apart"
    method = "UMAP" if umap else f"their principal components{share}"
    out.print(f"{format_count(len(projection.items), 'item')} and {format_count(len(labels), 'label')} by {method}")
    if quality.labels:
        out.print(
            f"of the 10 items nearest to a label {quality.share:.0%} carry it, {quality.chance:.1%} would by chance "
            f"({format_count(quality.labels, 'label')})"
        )
    if to is not None:
        print_note(f"written: {to}")


def _write_table(collection: "Collection", projection: "Map", labels: "list[LabelPosition]", to: Path) -> None:
    from wsabie.collection.items.item_pages import LARGEST, read_items_by_number
    from wsabie.storage.atomic_files import replace_file

    with replace_file(to) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["kind", "id", "name", "x", "y"])
        for start in range(0, len(projection.items), LARGEST):
            item_ids = projection.items[start : start + LARGEST].tolist()
            positions = dict(zip(item_ids, projection.places[start : start + LARGEST].tolist(), strict=True))
            lines.writerows(
                ["item", item.id, item.path, *positions[item.id]] for item in read_items_by_number(collection, item_ids)
            )
        lines.writerows(["label", label.id, label.name, label.x, label.y] for label in labels)
