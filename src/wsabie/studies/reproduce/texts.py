"""Runs that show labels instead of figures: the nearest labels of a label, the annotations of a row."""

from itertools import zip_longest

from wsabie.labels.similar import Mark
from wsabie.studies.comparison import Comparison
from wsabie.studies.gather import frequent_labels, labels_of, marked, neighbourhoods, spread_rows
from wsabie.studies.reproduce.models import available, compare_on
from wsabie.studies.reproduce.music_data import SEPARATOR
from wsabie.studies.reproduce.record import Findings, Found, Record, Setting
from wsabie.studies.task import Task

_SHOWN, _NEAREST, _BEST = 10, 8, 10
_SIGNED: dict[Mark, str] = {"true": "*{}*", "sibling": "[{}]", "other": "{}"}


def labels_near(record: Record, setting: Setting) -> Findings:
    """The nearest labels of the paper's labels, as far as the data have them, and of the most frequent ones."""
    taking_part, missing = available(record, setting)
    found = compare_on(setting.given, taking_part, setting)
    entry = found.entries[0]
    names = {label.partition(SEPARATOR)[2] or label: label for label in entry.model.vocabulary_}
    known = {names[row]: row for published in record.published for row in published.rows if row in names}
    asked = list(dict.fromkeys([*known, *_frequent(found.task)]))[: max(_SHOWN, len(known))]
    rows = []
    for near in neighbourhoods(entry, asked, _NEAREST, found.task.similar):
        told = [_SIGNED["sibling" if name in near.siblings else "other"].format(name) for name, _ in near.near]
        rows.append(Found(known.get(near.label, near.label), "nearest labels", {"nearest": ", ".join(told)}))
    return Findings(rows, missing, notes=[_about_siblings(found, "Labels in [brackets] are siblings.")])


def _frequent(task: Task) -> list[str]:
    """The most frequent labels, of each kind in turn where labels are of several kinds."""
    kinds: dict[str, list[str]] = {}
    for label in frequent_labels(task, len(task.counts)):
        kind, separator, _ = label.partition(SEPARATOR)
        kinds.setdefault(kind if separator else "", []).append(label)
    return [label for turn in zip_longest(*kinds.values()) for label in turn if label is not None]


def annotations(record: Record, setting: Setting) -> Findings:
    """The ten best labels of a few test rows by each model; true labels and siblings are marked."""
    taking_part, missing = available(record, setting)
    found = compare_on(setting.given, taking_part, setting)
    missing |= {skipped.name: skipped.reason for skipped in found.skipped}
    if found.main is None:
        return Findings([], missing)
    test = found.task.test
    numbers = spread_rows(
        found.main.evaluation, len({row.partition(", ")[0] for row in record.published[0].rows}), groups=test.groups
    )
    rows = []
    for entry in found.entries:
        for number, best in zip(numbers, entry.model.annotate(test.X[numbers], _BEST), strict=True):
            names = [name for name, _ in best]
            signs = marked(entry, names, labels_of(test, number), found.task.similar)
            told = ", ".join(_SIGNED[sign].format(name) for name, sign in zip(names, signs, strict=True))
            rows.append(Found(f"{test.ids[number]}, {entry.name}", entry.title, {"annotations": told}))
    notes = [
        "True labels are *starred*. The rows stand at even steps between the best and the worst annotated one of "
        f"{found.main.title}.",
        _about_siblings(found, "Siblings of a true label stand in [brackets]."),
    ]
    return Findings(rows, missing, notes=notes)


def _about_siblings(found: Comparison, known: str) -> str:
    return "No siblings are known for these data." if found.task.similar is None else known
