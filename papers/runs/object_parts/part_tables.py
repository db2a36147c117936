"""Tables of Mesnil et al. 2014: labels of images, of pairs of images, and of one beside the other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from papers.datasets import LabelRelations, PaperData
from papers.record import Cell, FindingRow, PaperRecord, RecordEntry, RunFindings, RunSettings
from papers.runs.object_parts.part_columns import (
    ANNOTATION,
    METRICS,
    PAIRS,
    TRIPLET,
    UNSEEN,
    draw_named_test,
    evaluate_all_tasks,
    label_by_column,
    list_columns,
)
from papers.runs.object_parts.part_models import (
    N_VALIDATION_QUADRUPLETS,
    PAPER_SETTINGS,
    PARTS,
    BestPartModel,
    ModelCandidate,
    PairScoring,
    PartTraining,
    choose_epochs,
    list_candidates,
    train_part_model,
)
from papers.tuning_budget import limit_training_time
from wsabie.core.errors import InputError
from wsabie.models.object_parts.pair_ranker import QuadrupletTest, Values, evaluate_labels, evaluate_pairs
from wsabie.vocabulary.label_quadruplets import QuadrupletBatch
from wsabie.workflows.compare.entrants import build_entrants

SEEDS = 5
N_TEST_QUADRUPLETS = 10_000
"""Test quadruplets of each seed."""
N_LABELS, NEAREST = 10, 4
"""Labels in the table of neighbours, and neighbours of each."""
_MINUTES = 1.0
Choice = dict[str, list[ModelCandidate]]


class SelectedModels(NamedTuple):
    """The models of a seed by row, each row's choice, and the mean ranks of all candidates."""

    seed: int
    models: dict[str, BestPartModel]
    choice: Choice
    mean_ranks: dict[str, dict[ModelCandidate, float]]


# ---- models by row, seed after seed


def train_models(record: PaperRecord, setting: RunSettings, seeds: int) -> Iterator[SelectedModels]:
    """Yield the models of a record's rows; the first seed's validation quadruplets choose the settings."""
    data, related = setting.required_data, require_relations(setting.required_data)
    choice: Choice = {
        entry.row: list_candidates(entry.entrant, **entry.parameters)
        for entry in record.entries
        if entry.entrant in (PARTS, PAPER_SETTINGS)
    }
    for seed in range(setting.seed, setting.seed + seeds):
        parameters = {**setting.parameters, "seed": seed, "threads": setting.threads}
        best_models: dict[ModelCandidate, BestPartModel] = {}
        for training, scorings in _group_by_training(choice).items():
            models_by_scoring = train_part_model(
                training, scorings, (data.train, data.valid), related.training, parameters, setting.progress
            )
            best_models |= {ModelCandidate(training, scoring): model for scoring, model in models_by_scoring.items()}
        ranks = {
            row: {candidate: best_models[candidate].mean_rank for candidate in candidates}
            for row, candidates in choice.items()
        }
        choice = {row: [min(mean_ranks, key=mean_ranks.__getitem__)] for row, mean_ranks in ranks.items()}
        yield SelectedModels(seed, {row: best_models[candidate] for row, (candidate,) in choice.items()}, choice, ranks)


def _group_by_training(choice: Choice) -> dict[PartTraining, list[PairScoring]]:
    """Return each training once, with all scorings that rows need."""
    scorings_by_training: dict[PartTraining, list[PairScoring]] = {}
    for training, scoring in (candidate for candidates in choice.values() for candidate in candidates):
        scorings_by_training.setdefault(training, []).append(scoring)
    return scorings_by_training


def require_relations(data: PaperData) -> LabelRelations:
    """Return the relations of the data.

    Raises
    ------
    InputError
        There are none.
    """
    if data.related is None:
        raise InputError(f"{data.name} has no relations between labels; give some with --data parts:S, or --knowledge")
    return data.related


def _format_choices(selected: SelectedModels) -> str:
    notes = []
    for row, (candidate,) in selected.choice.items():
        best_model, mean_ranks = selected.models[row], selected.mean_ranks[row]
        notes.append(
            f"{row} {_format_settings(candidate)} (epoch {best_model.epoch}, mean rank {best_model.mean_rank:,.0f}"
        )
        alternatives = [
            f"{_format_settings(other_candidate)} {rank:,.0f}"
            for other_candidate, rank in mean_ranks.items()
            if other_candidate != candidate
        ]
        notes[-1] += f"; with {', '.join(alternatives)})" if alternatives else ")"
    return (
        f"Chosen by the mean rank of {N_VALIDATION_QUADRUPLETS:,} validation quadruplets among all pairs of "
        "labels, for seed "
        f"{selected.seed}, and kept for the others, of which each chooses its epoch: {'; '.join(notes)}."
    )


def _format_settings(candidate: ModelCandidate) -> str:
    """Format the weights of relations in training, and in scoring if they score."""
    weight = f"{candidate.training.relation_weight:g}"
    scored = candidate.scoring.label_scores == "learned"
    return f"r = {weight}" + (f" x {candidate.scoring.score_weight:g}" if scored else "")


# ---- tables


def run_three_tasks(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Run annotation, part-object labelling and triplet by every model (Mesnil et al. 2014, Tables 3, 4)."""
    data = setting.required_data
    values: dict[str, list[Values]] = {}
    notes, groups, n_seeds = [_about_training(data, setting)], {}, setting.seeds or SEEDS
    for selected in train_models(record, setting, n_seeds):
        test = _build_test(data, selected.seed)
        if selected.seed == setting.seed:
            notes.append(_format_choices(selected))
            groups = _list_groups(test)
            values |= {
                entry.row: [_evaluate_baseline(entry, test, setting, notes)]
                for entry in record.entries
                if _is_baseline(entry)
            }
        for row, best_model in selected.models.items():
            values.setdefault(row, []).append(evaluate_all_tasks(test, best_model.model))
    tested = (
        f"{N_TEST_QUADRUPLETS:,} test quadruplets each, drawn by relation" if data.couples is None else "the same test"
    )
    notes.append(f"{n_seeds} seeds of training and of {tested}." if n_seeds > 1 else f"One training, {tested}.")
    return _build_findings(record, values, notes, n_seeds, groups)


def _build_test(data: PaperData, seed: int) -> QuadrupletTest:
    """Return related items of the test side, or a random test."""
    if data.couples is None:
        return draw_named_test(
            data.test, require_relations(data).true, N_TEST_QUADRUPLETS, np.random.default_rng([seed, 5])
        )
    number = {name: row for row, name in enumerate(data.test.ids)}
    ends = [(number[a], number[b]) for a, b in data.couples if a in number and b in number]
    objects, parts = np.array(ends, np.int64).reshape(-1, 2).T
    label = np.asarray(data.test.Y.tocsr().argmax(axis=1)).ravel().astype(np.int32)
    return QuadrupletTest(QuadrupletBatch(objects, label[objects], parts, label[parts]), data.test.X)


def run_couple_ranking(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Run part-object labelling among known couples, some of them unseen (Mesnil et al. 2014, Table 5)."""
    data, related = setting.required_data, require_relations(setting.required_data)
    if related.training != related.true or not related.unseen:
        raise InputError(f"{data.name} has no unseen relations beside ones that hold; give another collection")
    couples = [*related.training, *related.unseen]
    values: dict[str, list[Values]] = {}
    notes, n_seeds = [_about_training(data, setting)], setting.seeds or SEEDS
    for selected in train_models(record, setting, n_seeds):
        rng = np.random.default_rng([selected.seed, 5])
        training_test, unseen_test = (
            draw_named_test(data.test, relations, N_TEST_QUADRUPLETS // 2, rng)
            for relations in (related.true, related.unseen)
        )
        if selected.seed == setting.seed:
            notes.append(_format_choices(selected))
        for row, best_model in selected.models.items():
            training_values, unseen_values = (
                evaluate_pairs(test, best_model.model, couples) for test in (training_test, unseen_test)
            )
            values_of_all = {
                metric: np.concatenate([training_values[metric], unseen_values[metric]]) for metric in METRICS
            }
            values.setdefault(row, []).append(
                label_by_column({PAIRS: values_of_all, "training": training_values, UNSEEN: unseen_values})
            )
    notes.append(
        f"Pairs are ranked among {len(couples):,} couples. {n_seeds} seeds of training and of "
        f"{N_TEST_QUADRUPLETS // 2:,} test "
        f"quadruplets of told and as many of unseen relations, each drawn by relation; `pairs` is both together."
    )
    return _build_findings(record, values, notes, n_seeds, None)


def list_near_labels(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """List the nearest labels of a label, with shared tables and without (Mesnil et al. 2014, Table 6)."""
    data, related = setting.required_data, require_relations(setting.required_data)
    selected = next(train_models(record, setting, 1))
    labels = _list_labels(record, related)
    near = {row: _find_nearest(best_model.model, labels) for row, best_model in selected.models.items()}
    partners = _collect_partners(related)
    rows = []
    for place, label in enumerate(labels):
        marked_names = {
            row: ", ".join(f"*{name}*" if name in partners[label] else name for name in nearest_labels[place])
            for row, nearest_labels in near.items()
        }
        rows.append(FindingRow(label, "nearest labels", dict(marked_names)))
    notes = [
        _about_training(data, setting),
        _format_choices(selected),
        "Parts and wholes that training was told of are *starred*.",
    ]
    return RunFindings(rows, notes=notes)


def _collect_partners(related: LabelRelations) -> dict[str, set[str]]:
    """Return parts and wholes of each label."""
    partners: dict[str, set[str]] = {}
    for object_label, part_label in related.training:
        partners.setdefault(object_label, set()).add(part_label)
        partners.setdefault(part_label, set()).add(object_label)
    return partners


def _list_labels(record: PaperRecord, related: LabelRelations) -> list[str]:
    """Return the paper's labels that the data have, then those with most relations."""
    partners = _collect_partners(related)
    paper = {row for published in record.published for row in published.rows}
    paper_labels = [label for label in partners if label.partition(" (")[0] in paper]
    return list(dict.fromkeys([*paper_labels, *sorted(partners, key=lambda label: -len(partners[label]))]))[:N_LABELS]


def _find_nearest(model: Any, labels: Sequence[str]) -> list[list[str]]:
    """Return the labels with the largest cosine to each, without itself."""
    words = model.words_[:, : model.dim].astype(np.float64)
    words = words / np.maximum(np.linalg.norm(words, axis=1), 1e-12)[:, None]
    names, label_ids = np.array(list(model.vocabulary_)), model.vocabulary_.ids(list(labels))
    cosines = words[label_ids] @ words.T
    cosines[np.arange(len(label_ids)), label_ids] = -np.inf
    return [names[np.argsort(-row, kind="stable")[:NEAREST]].tolist() for row in cosines]


def _list_groups(test: QuadrupletTest) -> dict[str, list[str]]:
    """Return by column the relation of each value."""
    relations = test.relations
    return {
        column: relations if column.startswith(PAIRS) else relations * 2
        for column in list_columns(ANNOTATION, PAIRS, TRIPLET)
    }


def _build_findings(
    record: PaperRecord, values: dict[str, list[Values]], notes: list[str], seeds: int, groups: Any
) -> RunFindings:
    """Return means over the seeds with standard errors; for one seed the values of single quadruplets."""
    rows = []
    for entry in record.entries:
        runs = values.get(entry.row)
        if runs is None:
            continue
        means = {column: np.array([run[column].mean() for run in runs]) for column in runs[0]}
        figures: dict[str, Cell] = {column: float(mean.mean()) for column, mean in means.items()}
        if seeds == 1:
            rows.append(FindingRow(entry.row, entry.entrant, figures, dict(runs[0])))
        elif len(runs) == seeds:
            errors = {column: float(mean.std(ddof=1)) / len(runs) ** 0.5 for column, mean in means.items()}
            rows.append(FindingRow(entry.row, entry.entrant, figures, means, errors))
        else:
            rows.append(FindingRow(entry.row, entry.entrant, figures))
    return RunFindings(rows, notes=notes, groups=groups if seeds == 1 else None, seeds=seeds if seeds > 1 else 0)


def _is_baseline(entry: RecordEntry) -> bool:
    return entry.entrant not in (PARTS, PAPER_SETTINGS)


def _evaluate_baseline(entry: RecordEntry, test: QuadrupletTest, setting: RunSettings, notes: list[str]) -> Values:
    """Evaluate the baseline without relations, with the best setting on validation images."""
    data = setting.required_data
    (entrant,) = build_entrants([entry.entrant], seed=setting.seed, threads=setting.threads, max_minutes=_MINUTES)
    entrant = limit_training_time(entrant, data.train)
    rng = np.random.default_rng([setting.seed, 6])
    judges = draw_named_test(data.valid, require_relations(data).training, N_VALIDATION_QUADRUPLETS, rng)
    best: tuple[float, Any, Mapping[str, Any]] | None = None
    for option in entrant.options:
        model = entrant.build(**option).fit(data.train.X, data.train.Y, label_names=data.train.label_names)
        figure = float(_evaluate_annotation(judges, model)["MAP"].mean())
        if best is None or figure > best[0]:
            best = figure, model, option
    if best is None:
        raise ValueError("there is no setting to try")
    option_text = ", ".join(f"{name} = {value}" for name, value in best[2].items())
    notes.append(f"{entry.row}: {entrant.title}; {option_text}, by the MAP of validation pictures; one training.")
    values = _evaluate_annotation(test, best[1])
    return label_by_column({ANNOTATION: values, TRIPLET: values})


def _evaluate_annotation(test: QuadrupletTest, model: Any) -> Values:
    return evaluate_labels(test, lambda rows, partners, side: model.scores(test.X[rows]), len(model.vocabulary_))


def _about_training(data: PaperData, setting: RunSettings) -> str:
    epochs = setting.parameters.get("epochs") or choose_epochs(data.train)
    return f"Every model has {epochs} passes over the {len(data.train):,} training pictures."
