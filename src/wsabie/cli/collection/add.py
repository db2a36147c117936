"""`wsabie collection add`."""

from pathlib import Path

from wsabie.cli.collection import CollectionOptions, ScanningOptions, TagsOption
from wsabie.cli.collection.reports import report_scan
from wsabie.cli.framework import Report, argument, command
from wsabie.cli.output import TerminalProgress


class AddOptions(ScanningOptions, CollectionOptions):
    """Options of `wsabie collection add`."""

    paths: list[Path] = argument("Folders to add, or new files in folders of the collection.", metavar="FOLDER...")
    tags: TagsOption = None


@command("collection add photos /mnt/camera", "collection add photos /mnt/camera --tags xmp")
def add(options: AddOptions) -> Report:
    """Let further folders belong to the collection, and scan them.

    Nothing is written into them.
    """
    options.check_outputs()
    with options.open() as collection:
        from wsabie.collection.scan.roots import add_root, check_folders, discover_roots

        person, folders = options.resolve_author(), check_folders(collection, options.paths)
        with options.collect_rejects() as skipped:
            files = discover_roots(collection, folders, options.tags, skipped, TerminalProgress())
            for root in folders:
                add_root(collection, root, by=person)
            result = options.scan(collection, skipped, tags=options.tags, files=files)
        yield {"scanned": result}
        report_scan(collection, result, options.folder)
