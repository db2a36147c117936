"""`wsabie collection history`."""

from typing import TYPE_CHECKING

from wsabie.cli.collection import CollectionOptions
from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import format_count, format_time, show_table

if TYPE_CHECKING:
    from wsabie.collection.db.journal import JournalEntry


class HistoryOptions(CollectionOptions):
    """Options of `wsabie collection history`."""

    k: int = option("Entries, last first.", 20, flag="-k", min=1, max=100_000)


@command("collection history photos", "collection history photos -k 100")
def history(options: HistoryOptions) -> Report:
    """List the changes of a collection, newest first.

    Each has its author.
    """
    with options.open(read_only=True) as collection:
        from wsabie.collection.db.journal import read_history

        records = read_history(collection.engine, options.k)
        yield {"entries": records}
        rows = [
            [record.summary or record.action, str(record.id), format_time(record.at), record.by, _format_undo(record)]
            for record in records
        ]
        title = f"{options.folder}: {format_count(len(rows), 'entry', 'entries')}, last first"
        show_table(title, ["what", "entry", "when (UTC)", "who", ""], rows)


def _format_undo(entry: "JournalEntry") -> str:
    if entry.undone_by is not None:
        return f"undone by {entry.undone_by}"
    return f"undoes {entry.undoes}" if entry.undoes is not None else ""
