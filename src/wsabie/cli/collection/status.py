"""`wsabie collection status`."""

from typing import TYPE_CHECKING

from wsabie.cli.collection import CollectionOptions
from wsabie.cli.collection.reports import show_backups
from wsabie.cli.framework import command, option
from wsabie.cli.output import format_count, format_time, print_note, show_table

if TYPE_CHECKING:
    from wsabie.collection.overview import CollectionStatus

_ORIGIN_NAMES = {"person": "people", "import": "import", "model": "a model"}


class StatusOptions(CollectionOptions):
    """Options of `wsabie collection status`."""

    check: bool = option("Look through the whole database for damage.")


@command("collection status photos", "collection status photos --check")
def status(options: StatusOptions) -> None:
    """Show the contents of a collection.

    They are items, labels, decisions and waiting suggestions.
    """
    with options.open(read_only=True) as collection:
        from wsabie.collection.folder.backups import list_backups
        from wsabie.collection.folder.collection import make_damage_error
        from wsabie.collection.overview import read_status

        summary, backups = read_status(collection, check=options.check), list_backups(collection.place)
        if not options.show_json({"collection": collection.folder, **summary._asdict(), "backups": backups}):
            show_table(str(collection.folder), ["", ""], _format_status(summary))
            recent = [[entry.summary or entry.action, format_time(entry.at), entry.by] for entry in summary.last]
            if recent:
                show_table("last changes", ["what", "when (UTC)", "who"], recent)
            if summary.drafts:
                drafts = format_count(len(summary.drafts), "draft")
                print_note(f"the next export into your pictures removes {drafts} of a stopped export")
            if backups:
                show_backups("backups of the database", backups)
        if summary.damage:
            raise make_damage_error(collection, summary.damage[0])


def _format_status(summary: "CollectionStatus") -> list[list[str | int]]:
    rows: list[list[str | int]] = [[summary.modality or "items", summary.items["present"]]]
    rows += [[f"  {state}", summary.items[state]] for state in ("missing", "unreadable") if summary.items[state]]
    for root in summary.roots:
        tags = f", tags: {root.tags}" if root.tags else ""
        availability = "" if root.reachable else ", cannot be reached"
        rows.append([f"  in {root.folder}{tags}{availability}", sum(root.items.values())])
    rows.append(["labels", summary.labels])
    rows += [[f"{count.state} by {_ORIGIN_NAMES[count.origin]}", count.annotations] for count in summary.annotations]
    if summary.model is not None:
        rows.append([f"model {summary.model.id}, made {summary.model.created_at[:10]}", ""])
        rows.append(["open suggestions", summary.suggestions])
    if summary.damage is not None:
        rows.append(["database", "damaged" if summary.damage else "whole"])
    rows += [[f"draft that a stopped export left: {draft}", ""] for draft in summary.drafts]
    return rows
