"""`wsabie collection scan`."""

from wsabie.cli.collection import CollectionOptions, ScanningOptions, TagsOption
from wsabie.cli.collection.reports import report_scan
from wsabie.cli.framework import Report, command, option


class ScanOptions(ScanningOptions, CollectionOptions):
    """Options of `wsabie collection scan`."""

    tags: TagsOption = None
    rehash: bool = option("Read every file, even if its size and time are unchanged.")


@command("collection scan photos", "collection scan photos --tags folders")
def scan(options: ScanOptions) -> Report:
    """Look for new, moved, changed and missing files, and for tags."""
    options.check_outputs()
    with options.open() as collection:
        with options.collect_rejects() as skipped:
            result = options.scan(collection, skipped, tags=options.tags, rehash=options.rehash, always=True)
        yield {"scanned": result}
        report_scan(collection, result, options.folder)
