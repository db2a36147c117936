"""Runs that show labels instead of figures: the nearest labels of a label, the annotations of a row."""

from collections.abc import Sequence
from typing import Any

from wsabie.studies.gather import frequent_labels, labels_of, spread_rows
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.models import available, compare_on
from wsabie.studies.reproduce.record import Findings, Found, Record, Setting

_SHOWN, _NEAREST, _BEST = 10, 8, 10


def labels_near(record: Record, setting: Setting) -> Findings:
    """The nearest labels of the paper's labels, as far as the data have them, and of the most frequent ones."""
    data = setting.given
    taking_part, missing = available(record.entries, setting)
    found = compare_on(data, taking_part, setting)
    model, names = found.entries[0].model, found.task.train.label_names
    asked = [row for published in record.published for row in published.rows]
    wanted = [name for name in asked if name in model.vocabulary_] or frequent_labels(found.task, _SHOWN)
    near = _siblings_of(data, names)
    rows = []
    for label in wanted:
        told = [f"[{name}]" if name in near(label) else name for name, _ in model.neighbours(label, _NEAREST)]
        rows.append(Found(label, "nearest labels", {"nearest": ", ".join(told)}))
    notes = [
        "Labels in brackets are siblings." if data.siblings is not None else "No siblings are known for these data."
    ]
    return Findings(rows, missing, notes=notes)


def _siblings_of(data: Data, names: Sequence[str]) -> Any:
    """label -> names of its siblings."""
    if data.siblings is None:
        return lambda label: frozenset()
    all_names = data.train.label_names
    number = {name: y for y, name in enumerate(all_names)}
    known = set(names)

    def near(label: str) -> frozenset[str]:
        line = data.siblings[[number[label]]].tocsr()
        return frozenset({all_names[y] for y in line.indices} & known)

    return near


def annotations(record: Record, setting: Setting) -> Findings:
    """The ten best labels of a few test rows by each model; true labels and siblings are marked."""
    data = setting.given
    taking_part, missing = available(record.entries, setting)
    found = compare_on(data, taking_part, setting)
    if not found.entries:
        return Findings([], missing)
    test, near = found.task.test, _siblings_of(data, found.task.train.label_names)
    main = found.main or found.entries[0]
    rows = []
    for number in spread_rows(main.evaluation, len(record.published[0].rows), groups=test.groups):
        true = labels_of(test, number)
        close = frozenset().union(*(near(label) for label in true))
        for entry in found.entries:
            best = [name for name, _ in entry.model.annotate(test.X[[number]], _BEST)[0]]
            told = ", ".join(_marked(name, true, close) for name in best)
            rows.append(Found(f"{test.ids[number]}, {entry.name}", entry.title, {"annotations": told}))
    notes = [
        "True labels are *starred*, siblings of one in [brackets]. The rows stand at even steps between the best and "
        f"the worst annotated one of {main.title}."
    ]
    return Findings(rows, missing, notes=notes)


def _marked(name: str, true: Sequence[str], close: frozenset[str]) -> str:
    if name in true:
        return f"*{name}*"
    return f"[{name}]" if name in close else name
