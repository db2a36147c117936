"""Reports that several commands of a collection print."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.framework import JsonObject
from wsabie.cli.output import format_bytes, format_count, format_time, out, print_note, quote_path, show_table

if TYPE_CHECKING:
    from wsabie.collection.folder.backups import Backup
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.learning.suggestions import InferenceResult
    from wsabie.collection.scan.scanner import ScanResult

FIGURES = ("MAP", "p@1", "p@5")
"""Figures of models in tables."""
_REASONS = {
    "daily": "daily",
    "manual": "asked for",
    "migration": "before new tables",
    "replaced": "before a restore",
    "restored": "after a restore",
}


def report_scan(collection: "Collection", result: "ScanResult", folder: Path) -> None:
    """Report the result of a scan, and suggest the next command."""
    for root in result.unreachable_roots:
        print_note(f"{root.folder} is left as it was ({format_count(root.items, 'item')}): {root.reason}")
    for note in result.notes:
        print_note(note)
    if result.held_tags:
        reasons = "its sidecar is new, gone or unreadable, the picture still has them, or lost all keywords"
        tags = format_count(result.held_tags, "tag")
        print_note(f"{tags} kept that files no longer have ({reasons}); clear those that are wrong")
    if result.changed:
        print_note(f"{format_count(result.changed, 'file')} with other content; decisions about them stay")
    if not (result.summary or result.unchanged):
        command = f"wsabie collection add {quote_path(folder)} FOLDER"
        print_note(f"found no files; put some into {folder}, or add other folders: {command}")
        return
    unreadable = f" ({result.still_unreadable:,} of them unreadable)" * bool(result.still_unreadable)
    unchanged = f"{result.unchanged:,} as before{unreadable}" * bool(result.unchanged)
    summary = ", ".join(part for part in (result.summary, unchanged) if part)
    print_note(f"{result.modality or 'files'}: {summary}")
    from wsabie.collection.annotations.training_examples import MIN_ITEMS, MIN_LABELS
    from wsabie.collection.learning.zero_shot import find_name_encoder
    from wsabie.collection.overview import check_readiness

    has_pictures, path = result.modality == "pictures", quote_path(folder)
    readiness = check_readiness(collection, imported=not has_pictures)  # `wsabie train` reads the tags of the files
    if not has_pictures:
        print_note(f"{result.modality} can be listed, tagged and exported here; a collection learns from pictures only")
        if readiness.is_sufficient:
            print_note(f"next: learn from these files and the labels that they have: wsabie train {path} --model MODEL")
        return
    if readiness.is_sufficient:
        print_note(f"next: wsabie collection {'train' if result.added_tags else 'status'} {path}")
        return
    tags = f"{readiness.tagged_items} tagged so far" if readiness.tagged_items else "nothing is tagged yet"
    if readiness.tagged_items >= MIN_ITEMS:
        tags = "all tags are of one label"
    needs = f"{MIN_ITEMS} tagged pictures and {MIN_LABELS} labels, better with 20 pictures of each label"
    print_note(f"{tags}; a model needs {needs}")
    if readiness.labels:
        remedy = "" if find_name_encoder() else ", after: pip install 'wsabie[words]'"
        print_note(f"next: suggestions by the names of the labels alone: wsabie collection apply {path}{remedy}")
    recommend_service("tag some in the gallery", folder)
    print_note(f"or from a list: wsabie collection import {path} tags.csv")
    if readiness.folders:
        print_note(f"or read tags from the names of sub-folders: wsabie collection scan {path} --tags folders")
    print_note(f"then: wsabie collection train {path}")


def recommend_service(purpose: str, folder: Path) -> None:
    """Recommend the pages of the service, and its extra where that is not installed."""
    remedy = "" if find_spec("fastapi") else ", after: pip install 'wsabie[serve]'"
    print_note(f"next: {purpose}: wsabie serve {quote_path(folder)}{remedy}")


def show_backups(title: str, backups: "list[Backup]") -> None:
    """Show a table of backups."""
    rows = []
    for backup in backups:
        entry, size = "damaged" if backup.journal is None else backup.journal, format_bytes(backup.bytes)
        rows.append([backup.path.name, format_time(backup.at), _REASONS[backup.reason], entry, size])
    show_table(title, ["backup", "when (UTC)", "why", "up to entry", "size"], rows)


def show_figures(figures: JsonObject) -> None:
    """Show the figures of a model and of the previous one, and their difference."""
    titles = {"metrics": "this model", "previous_metrics": "previous model"}
    rows = [[title, *format_figures(figures[key])] for key, title in titles.items() if figures[key]]
    if difference := figures.get("difference"):
        for title, bound in (("difference", "mean"), ("95 % from", "low"), ("95 % to", "high")):
            rows.append([title, *(f"{difference[name][bound]:+.3f}" for name in FIGURES)])
    show_table(f"on {format_count(figures['items'], 'item')} held out", ["", *FIGURES], rows)


def format_figures(figures: dict[str, float] | None) -> list[str]:
    """Format the figures of a model, or empty cells."""
    return [f"{figures[name]:.3f}" if figures else "" for name in FIGURES]


def format_examples(facts: JsonObject, features: str = "") -> str:
    """Format what a model was trained on, and for how long."""
    tags = f"{facts['accepted']:,} accepted and {facts['rejected']:,} rejected tags, {facts['seconds']:.0f} s"
    return f"{format_count(facts['labels'], 'label')} from {format_count(facts['items'], 'item')}{features}, {tags}"


def show_inference(inference: "InferenceResult", folder: Path) -> None:
    """Show the number of suggestions, and of files that were skipped."""
    out.print(f"{format_count(inference.suggestions, 'suggestion')} for {format_count(inference.items, 'item')}")
    note_skipped_files(inference.unreadable, inference.changed, folder)


def note_skipped_files(unreadable: int, changed: int, folder: Path) -> None:
    """Note how many files were skipped, and the next command."""
    if unreadable:
        print_note(f"{format_count(unreadable, 'item')} cannot be read, and will be left out")
    if changed:
        command = f"wsabie collection scan {quote_path(folder)}"
        print_note(f"{format_count(changed, 'file')} changed or disappeared since the last scan; run: {command}")
