"""One sentence on what a source holds, for the end of each reading."""

from collections import Counter

from wsabie.io.data_formats import FORMATS_BY_KIND
from wsabie.io.records import FeatureTable, ItemList, Source, count_labels
from wsabie.io.regions import RegionCrop


def summarise_source(source: Source, data_format: str) -> str:
    """Return format, size and labels of a source.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wsabie.io.records import Item
    >>> items = [Item("a", b"", ("sea", "sky")), Item("b", b"", ("sea",))]
    >>> summarise_source(ItemList(Path("a"), items, "documents"), "table")
    'table of documents: 2 documents, 3 labels in 2 names, e.g. sea, sky'
    """
    counts = _count_label_names(source)
    size = f"{FORMATS_BY_KIND[data_format].title}: {len(source):,} {_name_unit(source)}"
    if not counts:
        return f"{size} without labels"
    names = sorted(counts, key=lambda name: (-counts[name], name))[:3]
    return f"{size}, {counts.total():,} labels in {len(counts):,} names, e.g. {', '.join(name[:40] for name in names)}"


def _name_unit(source: Source) -> str:
    if isinstance(source, FeatureTable):
        return "rows"
    is_of_regions = isinstance(source, ItemList) and any(isinstance(item.content, RegionCrop) for item in source.items)
    return "regions" if is_of_regions else source.modality


def _count_label_names(source: Source) -> Counter[str]:
    if isinstance(source, FeatureTable):
        counts = zip(source.label_names, count_labels(source).tolist(), strict=True)
        return Counter({name: n for name, n in counts if n})
    counted: Counter[str] | None = getattr(source, "label_counts", None)
    return Counter(name for item in source for name in item.labels) if counted is None else counted
