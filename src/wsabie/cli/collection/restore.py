"""`wsabie collection restore`."""

from pathlib import Path

from wsabie.cli.collection import CollectionOptions, PersonOptions, require_database
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.output import format_count, out, print_note, quote_path


class RestoreOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection restore`."""

    backup: Path | None = argument("Name or path of a backup (default: that with most entries).", metavar="BACKUP")
    accept: bool = option("Accept the present database, or BACKUP, even if it is older or another one.")


@command("collection restore photos", "collection restore photos --accept")
def restore(options: RestoreOptions) -> Report:
    """Replace the database by a backup, and keep the old one.

    For PostgreSQL, print the command.
    """
    folder, backup, accept = options.folder, options.backup, options.accept
    require_database()
    from wsabie.collection.folder.backups import accept_database, format_load_command, read_record, restore_backup

    address = read_record(folder).database
    if address is not None and not accept:
        command = format_load_command(address, str(backup or "collection.dump"))
        yield {"restored": None, "command": command}
        print_note("the database is in PostgreSQL; these restore it from a dump:")
        out.print(command)
        out.print(f"wsabie collection restore {quote_path(folder)} --accept")
        return
    if accept and backup is None:
        result = accept_database(folder, by=options.resolve_author())
    else:
        result = restore_backup(folder, backup, by=options.resolve_author(), accept=accept)
    yield {"restored": result, "command": None}
    lost = f"; {format_count(result.lost, 'later entry is', 'later entries are')} not in it" if result.lost else ""
    print_note(f"{folder} now has the database of {result.source}, up to entry {result.journal} of the history{lost}")
    if result.replaced is not None:
        print_note(f"the replaced database is kept: {result.replaced}")
