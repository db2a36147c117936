"""`wsabie edit`."""

from dataclasses import replace
from typing import Literal

from wsabie.cli.framework import Report, argument, command
from wsabie.cli.inputs import load_annotator
from wsabie.cli.models.index import renew_label_index
from wsabie.cli.output import format_count, print_note
from wsabie.cli.shared_options import Model, OutputOptions
from wsabie.core.errors import InputError, require


class EditOptions(OutputOptions):
    """Options of `wsabie edit`."""

    model: Model
    action: Literal["rename", "merge", "remove"] = argument("Change of the labels.", metavar="rename|merge|remove")
    names: list[str] = argument("rename OLD NEW; merge INTO OTHER ...; remove LABEL ...", metavar="LABEL...")


@command("edit birds rename robbin robin", "edit birds merge sea ocean sea-side", locks_model=True)
def edit(options: EditOptions) -> Report:
    """Rename, merge or remove labels of a model.

    The ids of labels stay.
    """
    from wsabie.workflows.model_updates import require_updatable

    folder, action, names = options.model, options.action, options.names
    annotator = load_annotator(folder)
    model = require_updatable(annotator, folder)
    if action == "rename":
        require(len(names) == 2, "rename takes two names, the old and the new one: wsabie edit MODEL rename OLD NEW")
        model.rename_label(*names)
        change = f"{names[0]!r} is called {names[1]!r}"
    elif action == "merge":
        if len(names) < 2:
            raise InputError("merge takes two names or more, the first stays: wsabie edit MODEL merge INTO OTHER ...")
        model.merge_labels(names[0], names[1:])
        change = f"{_format_labels(names[1:])} went into {names[0]!r}"
    else:
        model.remove_labels(names)
        change = f"{_format_labels(names)} removed"
    n_labels = len(model.vocabulary_.active_ids())
    replace(annotator, facts={**annotator.facts, "labels": n_labels}).save(folder)
    renew_label_index(annotator, folder)
    yield {"model": folder, "action": action, "labels": n_labels}
    print_note(f"{change}: {format_count(n_labels, 'label')} in {folder} now")


def _format_labels(names: list[str]) -> str:
    """Format the first labels and the number of others."""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more
