"""Command of a collection: map."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.faces.cli.collection.group import Folder, opened
from wsabie.faces.cli.options import Json
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection
    from wsabie.catalogue.map_labels import LabelAt
    from wsabie.catalogue.maps import Map

_LABELS = 1_000_000


def map_(
    folder: Folder,
    umap: Annotated[
        bool, typer.Option("--umap", help="By UMAP, which is made where it is missing or items came since.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write items and labels with x and y as CSV.")
    ] = None,
    json: Json = False,
) -> None:
    """Items and labels in the plane, as the model in use sees them: the map that `wsabie serve` shows."""
    with opened(folder, read_only=True) as collection:
        from wsabie.catalogue import map_fit, map_labels, maps
        from wsabie.storage.outputs import refuse_unwritable

        refuse_unwritable(("places", to), inputs=[collection.place])
        if umap and maps.projections(collection)[1].state != "ready":
            maps.project(collection, progress=TerminalProgress())
        drawn = maps.whole(collection, "umap" if umap else "pca")
        labels = map_labels.labels_at(collection, drawn, _LABELS)
        figure = map_fit.fit_of(collection, drawn)
        if to is not None:
            _write(collection, drawn, labels, to)
        found = {
            "schema": 1,
            "model": drawn.model,
            "method": drawn.method,
            "items": len(drawn.items),
            "labels": len(labels),
            "share_of_variance": drawn.share,
            "around_labels": figure._asdict(),
            "projections": [one._asdict() for one in maps.projections(collection)],
        }
    if json:
        show_json(found)
        return
    share = "" if drawn.share is None else f", which hold {drawn.share:.0%} of what tells items apart"
    by = "UMAP" if umap else f"their principal components{share}"
    out.print(f"{plural(len(drawn.items), 'item')} and {plural(len(labels), 'label')} by {by}")
    if figure.labels:
        out.print(
            f"of the 10 items nearest to a label {figure.share:.0%} carry it, {figure.chance:.1%} would by chance "
            f"({plural(figure.labels, 'label')})"
        )
    if to is not None:
        note(f"written: {to}")


def _write(collection: "Collection", drawn: "Map", labels: "list[LabelAt]", to: Path) -> None:
    from wsabie.catalogue.items import LARGEST, numbered
    from wsabie.storage.atomic import replacing

    with replacing(to) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["kind", "id", "name", "x", "y"])
        for lo in range(0, len(drawn.items), LARGEST):
            some = drawn.items[lo : lo + LARGEST].tolist()
            at = dict(zip(some, drawn.places[lo : lo + LARGEST].tolist(), strict=True))
            lines.writerows(["item", one.id, one.path, *at[one.id]] for one in numbered(collection, some))
        lines.writerows(["label", one.id, one.name, one.x, one.y] for one in labels)


COMMANDS: tuple[Callable[..., Any], ...] = (map_,)
