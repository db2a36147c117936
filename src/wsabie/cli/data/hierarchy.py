"""`wsabie hierarchy`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.cli.command import command, options
from wsabie.cli.inputs import read_label_names
from wsabie.cli.options import OutputOptions
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths


@options
class HierarchyCommandOptions:
    """Options of `wsabie hierarchy`."""

    kind: Annotated[Literal["from-text"], typer.Argument(metavar="KIND", help="from-text: mine running English text.")]
    src: Annotated[Path, typer.Argument(metavar="SRC", help="Plain text, or gzip of it.")]
    out: Annotated[Path, typer.Option(help="TSV to write: child, parent, count; --hierarchy reads it.")]
    min_count: Annotated[int, typer.Option(min=1, help="Leave out pairs that are said less often.")] = 1
    labels: Annotated[
        Path | None, typer.Option(help="Keep these children: a file of one label a line, or a model folder.")
    ] = None
    output: OutputOptions = OutputOptions()


@command(
    "hierarchy from-text articles.txt --out is-a.tsv",
    "hierarchy from-text articles.txt.gz --out is-a.tsv --min-count 3 --labels birds",
)
def hierarchy(options: HierarchyCommandOptions) -> None:
    """Mine an is-a list from text: "a toad is an amphibian"."""
    from wsabie.io.vocabulary.hierarchies import mine_hierarchy, write_hierarchy

    src, target, min_count, labels = options.src, options.out, options.min_count, options.labels
    check_output_paths(("is-a", target), inputs=(src, labels))
    mined = mine_hierarchy(src, _make_label_filter(labels), progress=TerminalProgress())
    pairs = mined.pairs(min_count)
    if not pairs:
        minimum, remedy = ("", "") if min_count == 1 else (f" {min_count} times", ", or a lower --min-count")
        raise InputError(
            f"{src} never says that something is a kind of something{minimum}; give more English text{remedy}"
        )
    write_hierarchy(target, pairs)
    if mined.max_undercount:
        print_note(
            f"the rarest pairs were forgotten on the way: counts may be too low by up to {mined.max_undercount:,}"
        )
    counts = {"pairs": len(pairs), "children": len({p[0] for p in pairs}), "parents": len({p[1] for p in pairs})}
    if options.output.json:
        show_json({"schema": 1, "out": str(target), **counts, "max_undercount": mined.max_undercount})
        return
    children = format_count(counts["children"], "child", "children")
    out.print(
        f"{target}: {format_count(len(pairs), 'pair')} of {children}, {format_count(counts['parents'], 'parent')}"
    )


def _make_label_filter(labels: Path | None) -> Callable[[str], bool] | None:
    """Return a predicate for the labels of a model or a file, by spelling; None without labels."""
    from wsabie.vocabulary.hierarchy import make_lookup_key

    return None if labels is None else {make_lookup_key(name) for name in read_label_names(labels)}.__contains__
