"""Labels instead of figures: the nearest labels of a label, the annotations of a row."""

from itertools import zip_longest

from papers.data.music_data import split_label_kinds
from papers.record import FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.model_tables import compare_on_data, list_available_entrants
from wsabie.vocabulary.label_similarity import LabelMatch
from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.compare.comparison_task import ComparisonTask
from wsabie.workflows.report.report_input import (
    build_neighbourhoods,
    list_frequent_labels,
    list_true_labels,
    mark_suggestions,
    select_spread_rows,
)

_N_LABELS, _NEAREST, _BEST = 10, 8, 10
_SIGNED: dict[LabelMatch, str] = {"true": "*{}*", "sibling": "[{}]", "other": "{}"}


def list_label_neighbours(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """List the nearest labels of the paper's labels that the data have, and of the most frequent ones."""
    entrants, missing = list_available_entrants(record, setting)
    comparison = compare_on_data(setting.required_data, entrants, setting)
    entry = comparison.entries[0]
    names = {name: label for label, (_, name) in split_label_kinds(list(entry.model.vocabulary_)).items()}
    paper_rows = {names[row]: row for published in record.published for row in published.rows if row in names}
    labels = list(dict.fromkeys([*paper_rows, *_list_frequent(comparison.task)]))[: max(_N_LABELS, len(paper_rows))]
    rows = []
    for neighbourhood in build_neighbourhoods(entry, labels, _NEAREST, comparison.task.similar):
        marked_names = [
            _SIGNED["sibling" if name in neighbourhood.siblings else "other"].format(name)
            for name, _ in neighbourhood.near
        ]
        rows.append(
            FindingRow(
                paper_rows.get(neighbourhood.label, neighbourhood.label),
                "nearest labels",
                {"nearest": ", ".join(marked_names)},
            )
        )
    return RunFindings(rows, missing, notes=[_explain_siblings(comparison, "Labels in [brackets] are siblings.")])


def _list_frequent(task: ComparisonTask) -> list[str]:
    """Return the most frequent labels; kinds of labels take turns."""
    kinds: dict[str, list[str]] = {}
    for label, (kind, _) in split_label_kinds(list_frequent_labels(task, len(task.counts))).items():
        kinds.setdefault(kind, []).append(label)
    return [label for turn in zip_longest(*kinds.values()) for label in turn if label is not None]


def list_annotations(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """List each model's ten best labels of a few test rows, with true labels and siblings marked."""
    entrants, missing = list_available_entrants(record, setting)
    comparison = compare_on_data(setting.required_data, entrants, setting)
    missing |= {skipped.name: skipped.reason for skipped in comparison.skipped}
    if comparison.main is None:
        return RunFindings([], missing)
    test = comparison.task.test
    numbers = select_spread_rows(
        comparison.main.evaluation,
        len({row.partition(", ")[0] for row in record.published[0].rows}),
        groups=test.groups,
    )
    rows = []
    for entry in comparison.entries:
        for number, best in zip(numbers, entry.model.annotate(test.X[numbers], _BEST), strict=True):
            names = [name for name, _ in best]
            signs = mark_suggestions(
                entry.model.vocabulary_, names, list_true_labels(test, number), comparison.task.similar
            )
            marked_names = ", ".join(_SIGNED[sign].format(name) for name, sign in zip(names, signs, strict=True))
            rows.append(FindingRow(f"{test.ids[number]}, {entry.name}", entry.title, {"annotations": marked_names}))
    notes = [
        "True labels are *starred*. The rows stand at even steps between the best and the worst annotated one of "
        f"{comparison.main.title}.",
        _explain_siblings(comparison, "Siblings of a true label stand in [brackets]."),
    ]
    return RunFindings(rows, missing, notes=notes)


def _explain_siblings(comparison: Comparison, explanation: str) -> str:
    return "No siblings are known for these data." if comparison.task.similar is None else explanation
