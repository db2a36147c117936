"""Runs of [P]'s tables of objects and parts: labels of pictures, of pairs of pictures, and of one beside the other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.errors import InputError
from wsabie.labels.quadruplets import Drawn
from wsabie.models.part_tasks import PartsTest, Values, of_labels, of_pairs
from wsabie.studies.entrants import entrants
from wsabie.studies.reproduce.budget import within_time
from wsabie.studies.reproduce.data import Data, Related
from wsabie.studies.reproduce.parts_judging import (
    ANNOTATION,
    METRICS,
    PAIRS,
    TRIPLET,
    UNSEEN,
    by_column,
    columns,
    of_all_tasks,
    test_of,
)
from wsabie.studies.reproduce.parts_models import (
    AS_IN_P,
    JUDGES,
    PARTS,
    Candidate,
    Kept,
    Scoring,
    Training,
    candidates_of,
    epochs_for,
    trained,
)
from wsabie.studies.reproduce.record import Cell, Entry, Findings, Found, Record, Setting

SEEDS = 5
TESTED = 10_000
"""Test quadruplets of each seed."""
SHOWN, NEAREST = 10, 4
"""Labels in the table of neighbours, and neighbours of each."""
_MINUTES = 1.0
Choice = dict[str, list[Candidate]]


class Chosen(NamedTuple):
    """The models of a seed by row, what each row chose, and the mean ranks of all that was tried."""

    seed: int
    models: dict[str, Kept]
    choice: Choice
    tried: dict[str, dict[Candidate, float]]


# ---- models by row, seed after seed


def models_of(record: Record, setting: Setting, seeds: int) -> Iterator[Chosen]:
    """The models of a record's rows, with settings that the first seed's validation quadruplets choose."""
    data, related = setting.given, related_of(setting.given)
    choice: Choice = {
        entry.row: candidates_of(entry.entrant, **entry.parameters)
        for entry in record.entries
        if entry.entrant in (PARTS, AS_IN_P)
    }
    for seed in range(setting.seed, setting.seed + seeds):
        parameters = {**setting.parameters, "seed": seed, "threads": setting.threads}
        kept: dict[Candidate, Kept] = {}
        for training, scorings in _trainings(choice).items():
            found = trained(training, scorings, (data.train, data.valid), related.told, parameters, setting.progress)
            kept |= {Candidate(training, scoring): model for scoring, model in found.items()}
        ranks = {row: {one: kept[one].mean_rank for one in tried} for row, tried in choice.items()}
        choice = {row: [min(tried, key=lambda one: tried[one])] for row, tried in ranks.items()}
        yield Chosen(seed, {row: kept[chosen] for row, (chosen,) in choice.items()}, choice, ranks)


def _trainings(choice: Choice) -> dict[Training, list[Scoring]]:
    """Each training once, with all ways to score that rows want of it."""
    found: dict[Training, list[Scoring]] = {}
    for training, scoring in (candidate for tried in choice.values() for candidate in tried):
        found.setdefault(training, []).append(scoring)
    return found


def related_of(data: Data) -> Related:
    """The relations of the data.

    Raises
    ------
    InputError
        There are none.
    """
    if data.related is None:
        raise InputError(f"{data.name} has no relations between labels; give some with --data parts:S, or --knowledge")
    return data.related


def _chosen_note(chosen: Chosen) -> str:
    told = []
    for row, (candidate,) in chosen.choice.items():
        kept, tried = chosen.models[row], chosen.tried[row]
        told.append(f"{row} {_settings(candidate)} (epoch {kept.epoch}, mean rank {kept.mean_rank:,.0f}")
        others = [f"{_settings(one)} {rank:,.0f}" for one, rank in tried.items() if one != candidate]
        told[-1] += f"; with {', '.join(others)})" if others else ")"
    return (
        f"Chosen by the mean rank of {JUDGES:,} validation quadruplets among all pairs of labels, for seed "
        f"{chosen.seed}, and kept for the others, of which each chooses its epoch: {'; '.join(told)}."
    )


def _settings(candidate: Candidate) -> str:
    """Weights of relations in training, and in scoring where they score."""
    weight = f"{candidate.training.relation_weight:g}"
    scored = candidate.scoring.label_scores == "learned"
    return f"r = {weight}" + (f" x {candidate.scoring.score_weight:g}" if scored else "")


# ---- tables


def three_tasks(record: Record, setting: Setting) -> Findings:
    """Image annotation, part-object labelling and triplet by every model ([P] Tables 3 and 4)."""
    data = setting.given
    values: dict[str, list[Values]] = {}
    notes, groups, n = [_about_training(data, setting)], {}, setting.seeds or SEEDS
    for chosen in models_of(record, setting, n):
        test = _test(data, chosen.seed)
        if chosen.seed == setting.seed:
            notes.append(_chosen_note(chosen))
            groups = _groups(test)
            values |= {entry.row: [_svm(entry, test, setting, notes)] for entry in record.entries if _is_svm(entry)}
        for row, kept in chosen.models.items():
            values.setdefault(row, []).append(of_all_tasks(test, kept.model))
    tested = f"{TESTED:,} test quadruplets each, drawn by relation" if data.couples is None else "the same test"
    notes.append(f"{n} seeds of training and of {tested}." if n > 1 else f"One training, {tested}.")
    return _findings(record, values, notes, n, groups)


def _test(data: Data, seed: int) -> PartsTest:
    """Things of the test side that belong together, or what is drawn from it."""
    if data.couples is None:
        return test_of(data.test, related_of(data).true, TESTED, np.random.default_rng([seed, 5]))
    number = {name: row for row, name in enumerate(data.test.ids)}
    ends = [(number[a], number[b]) for a, b in data.couples if a in number and b in number]
    objects, parts = np.array(ends, np.int64).reshape(-1, 2).T
    label = np.asarray(data.test.Y.tocsr().argmax(axis=1)).ravel().astype(np.int32)
    return PartsTest(Drawn(objects, label[objects], parts, label[parts]), data.test.X)


def among_couples(record: Record, setting: Setting) -> Findings:
    """Part-object labelling among known couples, some of which training was not told of ([P] Table 5)."""
    data, related = setting.given, related_of(setting.given)
    if related.told != related.true or not related.unseen:
        raise InputError(f"{data.name} has no unseen relations beside ones that hold; give another collection")
    couples = [*related.told, *related.unseen]
    values: dict[str, list[Values]] = {}
    notes, n = [_about_training(data, setting)], setting.seeds or SEEDS
    for chosen in models_of(record, setting, n):
        rng = np.random.default_rng([chosen.seed, 5])
        told, unseen = (test_of(data.test, some, TESTED // 2, rng) for some in (related.true, related.unseen))
        if chosen.seed == setting.seed:
            notes.append(_chosen_note(chosen))
        for row, kept in chosen.models.items():
            of_told, of_unseen = (of_pairs(test, kept.model, couples) for test in (told, unseen))
            both = {metric: np.concatenate([of_told[metric], of_unseen[metric]]) for metric in METRICS}
            values.setdefault(row, []).append(by_column({PAIRS: both, "told": of_told, UNSEEN: of_unseen}))
    notes.append(
        f"Pairs are ranked among {len(couples):,} couples. {n} seeds of training and of {TESTED // 2:,} test "
        f"quadruplets of told and as many of unseen relations, each drawn by relation; `pairs` is both together."
    )
    return _findings(record, values, notes, n, None)


def words_near(record: Record, setting: Setting) -> Findings:
    """The labels nearest to a label, by what was learned of labels, with shared tables and without ([P] Table 6)."""
    data, related = setting.given, related_of(setting.given)
    chosen = next(models_of(record, setting, 1))
    asked = _asked(record, related)
    near = {row: _nearest(kept.model, asked) for row, kept in chosen.models.items()}
    partners = _partners(related)
    rows = []
    for place, label in enumerate(asked):
        told = {
            row: ", ".join(f"*{name}*" if name in partners[label] else name for name in found[place])
            for row, found in near.items()
        }
        rows.append(Found(label, "nearest labels", dict(told)))
    notes = [
        _about_training(data, setting),
        _chosen_note(chosen),
        "Parts and wholes that training was told of are *starred*.",
    ]
    return Findings(rows, notes=notes)


def _partners(related: Related) -> dict[str, set[str]]:
    """Parts and wholes of each label."""
    found: dict[str, set[str]] = {}
    for one, other in related.told:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


def _asked(record: Record, related: Related) -> list[str]:
    """The paper's labels as far as they are there, then those with most relations."""
    partners = _partners(related)
    paper = {row for published in record.published for row in published.rows}
    known = [label for label in partners if label.partition(" (")[0] in paper]
    return list(dict.fromkeys([*known, *sorted(partners, key=lambda label: -len(partners[label]))]))[:SHOWN]


def _nearest(model: Any, labels: Sequence[str]) -> list[list[str]]:
    """The labels with the largest cosine to each, without itself."""
    words = model.words_[:, : model.dim].astype(np.float64)
    words = words / np.maximum(np.linalg.norm(words, axis=1), 1e-12)[:, None]
    names, own = np.array(list(model.vocabulary_)), model.vocabulary_.ids(list(labels))
    alike = words[own] @ words.T
    alike[np.arange(len(own)), own] = -np.inf
    return [names[np.argsort(-row, kind="stable")[:NEAREST]].tolist() for row in alike]


def _groups(test: PartsTest) -> dict[str, list[str]]:
    """By column, the relation of each value."""
    own = test.relations
    return {column: own if column.startswith(PAIRS) else own * 2 for column in columns(ANNOTATION, PAIRS, TRIPLET)}


def _findings(record: Record, values: dict[str, list[Values]], notes: list[str], seeds: int, groups: Any) -> Findings:
    """Means over the seeds with their standard errors; of one seed the values of single quadruplets."""
    rows = []
    for entry in record.entries:
        runs = values.get(entry.row)
        if runs is None:
            continue
        means = {column: np.array([run[column].mean() for run in runs]) for column in runs[0]}
        figures: dict[str, Cell] = {column: float(mean.mean()) for column, mean in means.items()}
        if seeds == 1:
            rows.append(Found(entry.row, entry.entrant, figures, dict(runs[0])))
        elif len(runs) == seeds:
            errors = {column: float(mean.std(ddof=1)) / len(runs) ** 0.5 for column, mean in means.items()}
            rows.append(Found(entry.row, entry.entrant, figures, means, errors))
        else:
            rows.append(Found(entry.row, entry.entrant, figures))
    return Findings(rows, notes=notes, groups=groups if seeds == 1 else None, seeds=seeds if seeds > 1 else 0)


def _is_svm(entry: Entry) -> bool:
    return entry.entrant not in (PARTS, AS_IN_P)


def _svm(entry: Entry, test: PartsTest, setting: Setting, notes: list[str]) -> Values:
    """The baseline that knows of pictures alone, with the setting that is best on validation pictures."""
    data = setting.given
    (known,) = entrants([entry.entrant], seed=setting.seed, threads=setting.threads, max_minutes=_MINUTES)
    known = within_time(known, data.train)
    rng = np.random.default_rng([setting.seed, 6])
    judges = test_of(data.valid, related_of(data).told, JUDGES, rng)
    best: tuple[float, Any, Mapping[str, Any]] | None = None
    for option in known.options:
        model = known.build(**option).fit(data.train.X, data.train.Y, label_names=data.train.label_names)
        figure = float(_annotated(judges, model)["MAP"].mean())
        if best is None or figure > best[0]:
            best = figure, model, option
    if best is None:
        raise ValueError("there is no setting to try")
    told = ", ".join(f"{name} = {value}" for name, value in best[2].items())
    notes.append(f"{entry.row}: {known.title}; {told}, by the MAP of validation pictures; one training.")
    found = _annotated(test, best[1])
    return by_column({ANNOTATION: found, TRIPLET: found})


def _annotated(test: PartsTest, model: Any) -> Values:
    return of_labels(test, lambda rows, others, side: model.scores(test.X[rows]), len(model.vocabulary_))


def _about_training(data: Data, setting: Setting) -> str:
    epochs = setting.parameters.get("epochs") or epochs_for(data.train)
    return f"Every model has {epochs} passes over the {len(data.train):,} training pictures."
