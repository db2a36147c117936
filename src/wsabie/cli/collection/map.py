"""`wsabie collection map`."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.collection import CollectionOptions
from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import TerminalProgress, format_count, out, print_note
from wsabie.storage.atomic_files import replace_file

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.maps.item_map import LabelPosition, Map

_MAX_LABELS = 1_000_000


class MapOptions(CollectionOptions):
    """Options of `wsabie collection map`."""

    umap: bool = option("Use UMAP, and compute it if it is missing or lacks new items.")
    out: Path | None = option("Write items and labels with x and y as CSV.", metavar="FILE")


@command("collection map photos", "collection map photos --umap --out map.csv", name="map")
def map_(options: MapOptions) -> Report:
    """Project items and labels onto the plane by the model in use.

    `wsabie serve` shows this map.
    """
    with options.open(read_only=True) as collection:
        from wsabie.collection.maps import item_map

        options.check_outputs(("places", options.out), inputs=[collection.place])
        if options.umap and item_map.list_projections(collection)[1].state != "ready":
            item_map.compute_projection(collection, progress=TerminalProgress())
        projection = item_map.build_map(collection, "umap" if options.umap else "pca")
        labels = item_map.place_labels(collection, projection, _MAX_LABELS)
        quality = item_map.measure_map_quality(collection, projection)
        if options.out is not None:
            _write_table(collection, projection, labels, options.out)
        yield {
            "model": projection.loaded_model.id,
            "method": projection.method,
            "items": len(projection.items),
            "labels": len(labels),
            "share_of_variance": projection.share,
            "around_labels": quality,
            "projections": item_map.list_projections(collection),
        }
    share = "" if projection.share is None else f", which hold {projection.share:.0%} of what tells items apart"
    method = "UMAP" if options.umap else f"their principal components{share}"
    out.print(f"{format_count(len(projection.items), 'item')} and {format_count(len(labels), 'label')} by {method}")
    if quality.labels:
        shares = f"{quality.share:.0%} carry it, {quality.chance:.1%} would by chance"
        out.print(f"of the 10 items nearest to a label {shares} ({format_count(quality.labels, 'label')})")
    if options.out is not None:
        print_note(f"written: {options.out}")


def _write_table(collection: "Collection", projection: "Map", labels: "list[LabelPosition]", to: Path) -> None:
    from wsabie.collection.db.cursors import MAX_PAGE_SIZE
    from wsabie.collection.items.item_pages import read_items_by_id

    with replace_file(to) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["kind", "id", "name", "x", "y"])
        for start in range(0, len(projection.items), MAX_PAGE_SIZE):
            item_ids = projection.items[start : start + MAX_PAGE_SIZE].tolist()
            positions = dict(zip(item_ids, projection.coordinates[start : start + MAX_PAGE_SIZE].tolist(), strict=True))
            items = read_items_by_id(collection, item_ids)
            lines.writerows(["item", item.id, item.path, *positions[item.id]] for item in items)
        lines.writerows(["label", label.id, label.name, label.x, label.y] for label in labels)
