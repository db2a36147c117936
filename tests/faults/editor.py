"""Somebody at the command line: makes labels, renames, merges and undoes, and prints what was acknowledged."""

import sys
import time
from pathlib import Path

from wsabie.collection.db.journal import begin_entry, undo_entry
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.labels import label_edits, label_list, label_merge, label_store

EDITOR = "cain"
STEPS = 3


def edit(folder: Path, first: int) -> None:
    """All steps with one label after the other, until killed."""
    with open_collection(folder) as collection:
        for number in range(first, 10**6):
            for step in range(STEPS):
                _do(collection, number, step)
                sys.stdout.write(f"{number} {step}\n")
                sys.stdout.flush()
                time.sleep(0.1)  # others want to write, too


def line_of(number: int, step: int) -> str:
    """Summary of a step in the journal."""
    if step == 0:
        return f"made {number}"
    renamed = f"changed 'edit {number}': called 'new {number}'"
    if step == 1:
        return renamed
    return f"merged 'new {number}' into 'all of them'" if number % 2 else f"undone: {renamed}"


def _do(collection: Collection, number: int, step: int) -> None:
    if step == 0:
        with begin_entry(collection.engine, EDITOR, "labels", line_of(number, 0)) as change:
            label_store.ensure_labels(change, [f"edit {number}", "all of them"])
    elif step == 1:
        label_edits.edit_label(collection, f"edit {number}", EDITOR, name=f"new {number}")
    elif number % 2:
        new, of_all = label_list.find_label_ids(collection, [f"new {number}", "all of them"])
        label_merge.merge_labels(collection, [new], of_all, EDITOR)
    else:
        undo_entry(collection.engine, by=EDITOR)


if __name__ == "__main__":
    edit(Path(sys.argv[1]), int(sys.argv[2]))
