"""Commands of a collection: labels, tag."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.cli.collection.shared_options import ByOption, FolderArgument, open_collection_folder, resolve_person
from wsabie.cli.inputs.options import Json, Table, find_stated_options, refuse_options
from wsabie.cli.terminal.output import format_count, print_note, show_json
from wsabie.core.errors import InputError

LabelAction = Literal["list", "show", "tidy", "merge", "apart", "rename", "parent", "synonym", "edit", "delete", "fill"]


_ACTION_OPTIONS: dict[LabelAction, tuple[str, ...]] = {
    "list": ("k", "order"),
    "tidy": ("k", "knowledge", "least", "keep", "merge_above"),
    "show": ("k",),
    "synonym": ("language",),
    "edit": ("language", "wordnet", "drop"),
    "delete": ("with_tags",),
    "fill": ("knowledge", "table", "dry_run"),
}


Action = Annotated[
    LabelAction,
    typer.Argument(
        metavar="WHAT",
        help="list: labels with their counts; show: LABEL, all that is known; tidy: labels that could be one; "
        "merge: A ... B, into B; apart: A B ..., never to be proposed again; rename: OLD NEW; "
        "parent: LABEL PARENT (without PARENT: none); synonym: LABEL OTHER ...; edit: LABEL, its --language, "
        "--wordnet, other names to --drop; delete: LABEL ..., with their names; "
        "fill: meanings, parents and synonyms from --knowledge.",
    ),
]
Names = Annotated[list[str] | None, typer.Argument(metavar="LABEL", help="Labels; of list, a part of their names.")]
K = Annotated[
    int | None, typer.Option("-k", min=1, help="list, tidy: at most so many (default: 20); show: neighbours (10).")
]
Order = Annotated[
    Literal["items", "name", "right"] | None,
    typer.Option(help="list: by items (default), by name, or those first of which models are wrong most often."),
]
Knowledge = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="<path>",
        help="tidy, fill: WordNet's folder, translations and their like; several complete each other.",
    ),
]
Least = Annotated[
    float | None, typer.Option(min=0, max=1, help="tidy: score from which a pair is proposed (default: 0.7).")
]
Keep = Annotated[
    str | None, typer.Option(metavar="LANGUAGE", help="tidy: keep labels of this one (default: the most frequent).")
]
MergeAbove = Annotated[
    float | None, typer.Option(min=0, max=1, help="tidy: merge all proposals of this score, as one entry to undo.")
]
Language = Annotated[str | None, typer.Option(help="synonym, edit: language of the names, such as de.")]
Wordnet = Annotated[
    str | None, typer.Option(metavar="ID", help="edit: what it means, such as n02084071; '' for nothing.")
]
Drop = Annotated[list[str] | None, typer.Option(metavar="NAME", help="edit: another name that it has no more.")]
WithTags = Annotated[bool, typer.Option("--with-tags", help="delete: also what was decided of them, on all items.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="fill: only list what would be written down.")]


def labels(
    folder: FolderArgument,
    action: Action = "list",
    names: Names = None,
    k: K = None,
    order: Order = None,
    knowledge: Knowledge = None,
    table: Table = None,
    least: Least = None,
    keep: Keep = None,
    merge_above: MergeAbove = None,
    language: Language = None,
    wordnet: Wordnet = None,
    drop: Drop = None,
    with_tags: WithTags = False,
    dry_run: DryRun = False,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """List, show, tidy, merge, rename, nest or delete the labels of a collection."""
    from wsabie.cli.collection.label_actions import ACTIONS

    options = find_stated_options(
        k=k,
        order=order,
        knowledge=knowledge or None,
        table=table,
        least=least,
        keep=keep,
        merge_above=merge_above,
        language=language,
        wordnet=wordnet,
        drop=drop or None,
        with_tags=with_tags or None,
        dry_run=dry_run or None,
    )
    unsupported = {
        option.replace("_", "-"): value
        for option, value in options.items()
        if option not in _ACTION_OPTIONS.get(action, ())
    }
    refuse_options(unsupported, f"what `labels {action}` does not ask")
    is_read_only = (
        action in ("list", "show") or (action == "tidy" and merge_above is None) or (action == "fill" and dry_run)
    )
    with open_collection_folder(folder, read_only=is_read_only) as collection:
        ACTIONS[action](collection, names or [], by, json, **options)


def tag(
    folder: FolderArgument,
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="Items, by path or number.")],
    accept: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that fits; may be new.")] = None,
    reject: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that does not fit.")] = None,
    clear: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that is to be undecided.")] = None,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Say which labels fit items and which do not; each option may be given several times."""
    if not (accept or reject or clear):
        raise InputError("say what fits or does not: --accept LABEL, --reject LABEL, --clear LABEL")
    with open_collection_folder(folder) as collection:
        from wsabie.collection.annotations.item_tagging import find_items, tag_items

        numbers = list(dict.fromkeys(find_items(collection, items, Path.cwd())))
        result = tag_items(
            collection, numbers, accept=accept or (), reject=reject or (), clear=clear or (), by=resolve_person(by)
        )
    if json:
        show_json({"schema": 1, "items": numbers, **result.decided._asdict(), "new_labels": result.new})
        return
    new_labels = f"; new: {', '.join(result.new)}" if result.new else ""
    changes = result.decided
    print_note(
        f"{format_count(len(numbers), 'item')}: {changes.added:,} added, {changes.changed:,} changed, "
        f"{changes.removed:,} removed{new_labels}"
    )


COMMANDS: tuple[Callable[..., Any], ...] = (labels, tag)
