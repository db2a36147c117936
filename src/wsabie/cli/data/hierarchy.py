"""`wsabie hierarchy`."""

from pathlib import Path
from typing import Literal

from wsabie.cli import shared_options as shared
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.inputs import read_label_file
from wsabie.cli.output import TerminalProgress, format_count, out, print_note
from wsabie.core.errors import InputError


class HierarchyCommandOptions(shared.OutputOptions):
    """Options of `wsabie hierarchy`."""

    kind: Literal["from-text"] = argument("from-text: mine running English text.", metavar="KIND")
    src: Path = argument("Plain text, or gzip of it.", metavar="SRC")
    out: Path = option("TSV to write: child, parent, count; --hierarchy reads it.")
    min_count: int = option("Leave out pairs that occur less often.", 1, min=1)
    labels: Path | None = option("Keep these children: a file of one label a line, or a model folder.")


@command(
    "hierarchy from-text articles.txt --out is-a.tsv",
    "hierarchy from-text articles.txt.gz --out is-a.tsv --min-count 3 --labels birds",
)
def hierarchy(options: HierarchyCommandOptions) -> Report:
    """Mine an is-a list from text: "a toad is an amphibian"."""
    from wsabie.io.vocabulary.hierarchy_files import mine_hierarchy, write_hierarchy
    from wsabie.vocabulary.concept_hierarchy import make_lookup_key

    src, target, min_count, labels = options.src, options.out, options.min_count, options.labels
    options.check_outputs(("is-a", target), inputs=(src, labels))
    names = None if labels is None else set(map(make_lookup_key, read_label_file(labels)))
    mined = mine_hierarchy(src, None if names is None else names.__contains__, progress=TerminalProgress())
    pairs = mined.pairs(min_count)
    if not pairs:
        minimum, remedy = ("", "") if min_count == 1 else (f" {min_count} times", ", or a lower --min-count")
        fact = f"{src} never says that something is a kind of something{minimum}"
        raise InputError(f"{fact}; give more English text{remedy}")
    write_hierarchy(target, pairs)
    if mined.max_undercount:
        undercount = f"{mined.max_undercount:,}"
        print_note(f"the rarest pairs were forgotten on the way: counts may be too low by up to {undercount}")
    counts = {"pairs": len(pairs), "children": len({p[0] for p in pairs}), "parents": len({p[1] for p in pairs})}
    yield {"out": target, **counts, "max_undercount": mined.max_undercount}
    children, parents = format_count(counts["children"], "child", "children"), format_count(counts["parents"], "parent")
    out.print(f"{target}: {format_count(len(pairs), 'pair')} of {children}, {parents}")
