"""`wsabie collection index`."""

from typing import Literal

from wsabie.cli import shared_options as shared
from wsabie.cli.collection import CollectionOptions
from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import TerminalProgress, format_bytes, out


class ItemIndexOptions(CollectionOptions):
    """Options of `wsabie collection index`."""

    kind: Literal["ivf", "hnsw"] = option("ivf: small, made in seconds; hnsw: a graph, larger, made in minutes.", "ivf")
    recall: shared.RecallTarget = 0.95


@command("collection index photos", "collection index photos --kind hnsw")
def index(options: ItemIndexOptions) -> Report:
    """Make an approximate index of the items of a large collection.

    It helps from hundreds of thousands of items on; `apply` makes it again.
    """
    with options.open() as collection:
        from wsabie.collection.registry.item_index import index_items

        indexes = index_items(collection, kind=options.kind, recall=options.recall, progress=TerminalProgress())
    yield indexes
    for similarity, facts in vars(indexes).items():
        speed = f"{facts['milliseconds']:.2f} ms (exactly {facts['exact_milliseconds']:.2f})"
        out.print(f"by {similarity}: recall@10 {facts['recall@10']:.3f}, {speed}, {format_bytes(facts['bytes'])}")
