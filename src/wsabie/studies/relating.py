"""From a declaration to a space: describe the things of every kind, hold some out, train, save, judge."""

import logging
import shutil
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.base.validation import require
from wsabie.evaluation.evaluate import Evaluation
from wsabie.features.describer import Describer
from wsabie.labels.hierarchy import Hierarchy
from wsabie.models.relations import Kind, Relation, known_pairs
from wsabie.models.space import Space
from wsabie.models.space_annotator import SpaceAnnotator
from wsabie.sources.align import align
from wsabie.sources.declaration import Declared, DeclaredKind, DeclaredRelation
from wsabie.sources.fingerprint import fingerprint_or_none
from wsabie.sources.records import ItemSource, Rows, Source
from wsabie.storage.rejects import Rejects
from wsabie.studies.dealing import collect, deal, kind_from, related_by
from wsabie.studies.training import described, transformed, work_beside
from wsabie.training.stats import EpochStats

log = logging.getLogger("wsabie")
KEPT = r"kinds|checkpoint"
"""What is kept beside the space until it is saved."""


@dataclass(frozen=True)
class SpaceRecipe:
    """How a space is made.

    Attributes
    ----------
    declared : Declared
    model : Path
        Folder that it is saved to.
    space : Space
        Not yet fitted.
    hold_out : float
        Share of the things with features, and of the pairs of things without, that chooses the epoch.
    only : tuple of str
        Relations that are learned; empty: all.
    stop_on : str
        As of `Space.fit`.
    resume : bool
    """

    declared: Declared
    model: Path
    space: Space
    hold_out: float = 0.1
    only: tuple[str, ...] = ()
    stop_on: str = "mean"
    resume: bool = False

    @property
    def work(self) -> Path:
        """Where unfinished work is kept; whoever is sure of the space removes it."""
        return work_beside(self.model)


@dataclass(frozen=True)
class TrainedSpace:
    """A saved space: its facts and the figures of its epochs."""

    facts: dict[str, Any]
    history: list[EpochStats]


def train_space(
    recipe: SpaceRecipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
    on_epoch: Callable[[EpochStats], None] | None = None,
) -> TrainedSpace:
    """Train on what a file declares, and save the space with what describes its things.

    Raises
    ------
    InputError
        Data that cannot be used, or what `Space.fit` refuses.
    """
    declared, seed = recipe.declared, recipe.space.seed
    relations = chosen(declared, recipe.only)
    if not recipe.resume:
        shutil.rmtree(recipe.work, ignore_errors=True)
    things = _Things(recipe, executor, progress, rejects)
    data = collect(declared, relations, things.rows, rejects)
    dealt = deal(declared, relations, data, recipe.hold_out, seed)
    recipe.space.fit(
        dealt.learnt,
        validation=dealt.held_out,
        stop_on=recipe.stop_on,
        checkpoint=recipe.work / "checkpoint",
        resume=recipe.resume,
        progress=progress,
        on_epoch=on_epoch,
    )
    for kind in dealt.aside:  # the epoch is chosen: they belong to the collection like the others
        recipe.space.add(kind)
    columns = {
        name: {"feature_names": rows.feature_names, "dictionary": rows.dictionary} for name, rows in data.rows.items()
    }
    facts = {
        "source": str(declared.path),
        "pairs": {one.name: one.n_pairs for one in dealt.learnt},
        "held_out_pairs": {one.name: one.n_pairs for one in dealt.held_out},
        "skipped": len(rejects),
        "fingerprints": things.fingerprints,
        "pair_marks": {one.name: _mark(data.couples[one.name]) for one in relations if one.pairs is not None},
    }
    SpaceAnnotator(recipe.space, things.terms, columns, facts).save(recipe.model)
    return TrainedSpace(facts, recipe.space.history_)


class _Things:
    """Describes the things of every kind; kinds of one map alike.

    Attributes
    ----------
    terms : dict of str to Describer
    fingerprints : dict of str to str or None
        Of the data of each kind.
    """

    def __init__(self, recipe: SpaceRecipe, executor: Executor, progress: Progress, rejects: Rejects) -> None:
        self.recipe, self.run = recipe, (executor, progress, rejects)
        self.terms: dict[str, Describer] = {}
        self.fingerprints: dict[str, str | None] = {}
        self.first: dict[str, tuple[str, Rows]] = {}

    def rows(self, kind: DeclaredKind, source: Source) -> Rows:
        """The things of a kind in the features of its map."""
        self.fingerprints[kind.name] = fingerprint_or_none(source)
        if kind.map in self.first:
            return self._alike(kind, source, *self.first[kind.map])
        rows = source if isinstance(source, Rows) else self._described(kind, source)
        if rows is source:
            require(not kind.description, f"[kinds.{kind.name}] says how to describe what is rows of features already")
        if kind.map is not None:
            self.first[kind.map] = kind.name, rows
        return rows

    def _described(self, kind: DeclaredKind, source: ItemSource) -> Rows:
        work = self.recipe.work / "kinds" / f"{len(self.terms)}"
        rows, self.terms[kind.name] = described(source, kind.description, work, self.recipe.space.seed, *self.run)
        return rows

    def _alike(self, kind: DeclaredKind, source: Source, other: str, known: Rows) -> Rows:
        """As the kind that had the map first."""
        where = f"[kinds.{kind.name}] shares the map of {other!r}"
        require(not kind.description, f"{where}, which says how things are described; leave it out here")
        if not isinstance(source, Rows) and other not in self.terms:
            raise InputError(f"{where}, which is made of rows, and {kind.data} holds {source.things}; give rows")
        if other in self.terms:
            self.terms[kind.name] = self.terms[other]
        executor, progress, rejects = self.run
        rows = transformed(self.terms.get(other), source, executor, progress, rejects)
        return align(rows, None, known.feature_names, known.X.shape[1], known.dictionary).rows


def chosen(declared: Declared, only: tuple[str, ...]) -> list[DeclaredRelation]:
    """The relations of these names; all without names.

    Raises
    ------
    InputError
        There is no such relation.
    """
    known = {one.name: one for one in declared.relations}
    odd = [name for name in only if name not in known]
    if odd:
        raise InputError(f"{declared.path} declares no relation {odd[0]!r}; it declares {', '.join(known)}")
    return [known[name] for name in only] if only else declared.relations


def evaluate_space(
    annotator: SpaceAnnotator,
    declared: Declared,
    ks: tuple[int, ...],
    *,
    hierarchy: Hierarchy | None = None,
    allow_overlap: bool = False,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> dict[str, Evaluation]:
    """The figures of every relation on the things and pairs of another declaration.

    Raises
    ------
    InputError
        It has none of the relations, or the things of training (unless `allow_overlap`).
    """
    trained = annotator.facts.get("fingerprints", {})
    known = {name for name, _, _ in annotator.space.relations_}
    relations = [one for one in declared.relations if one.name in known]
    require(
        bool(relations),
        f"{declared.path} declares none of the relations that were learned: {', '.join(sorted(known))}",
    )

    def rows_of(kind: DeclaredKind, source: Source) -> Rows:
        own = fingerprint_or_none(source)
        require(
            allow_overlap or own is None or own != trained.get(kind.name),
            f"{kind.data} is what the space was trained on; give other data, or add --allow-overlap",
        )
        return annotator.rows(kind.name, source, executor=executor, progress=progress, rejects=rejects).rows

    for one in declared.relations:
        if one.name not in known:
            log.warning("%s: the space has learned no relation %r, so that it is not judged", declared.path, one.name)
    data = collect(declared, relations, rows_of, rejects)
    marks = annotator.facts.get("pair_marks", {})
    for one in relations:
        same = one.pairs is not None and _mark(data.couples[one.name]) == marks.get(one.name)
        require(
            allow_overlap or not same,
            f"the pairs of {one.name!r} are those that the space was trained on; give others, or add --allow-overlap",
        )
    kinds = {name: kind_from(declared.kinds[name], rows) for name, rows in data.rows.items()}
    told = [
        related_by(one, data.couples[one.name], kinds.get(one.query, one.query), kinds.get(one.target, one.target))
        for one in relations
    ]
    for relation in told:
        _tell_unknown(relation, annotator.space)
    return annotator.space.evaluate(told, ks, hierarchy=hierarchy)


def _tell_unknown(relation: Relation, space: Space) -> None:
    """Say how many pairs judge nothing, because the space does not know a thing in them."""
    sides = [
        end.names() if isinstance(end, Kind) and end.X is not None else space.known(name).things
        for end, name in ((relation.query, relation.query_kind), (relation.target, relation.target_kind))
    ]
    left_out = known_pairs(relation, sides[0], sides[1])[1]
    if left_out:
        log.warning("%s: %s pairs are left out, the space does not know their things", relation.name, f"{left_out:,}")


def _mark(couples: list[tuple[str, str]]) -> int:
    """By which the same pairs are known again."""
    return zlib.crc32("\n".join(sorted(f"{a}\t{b}" for a, b in couples)).encode())


def with_parameters(space: Space, declared: Declared, given: Mapping[str, Any]) -> Space:
    """A space with the parameters of a declaration, and those of the command line before them.

    Raises
    ------
    InputError
        There is no such parameter.
    """
    known = space.get_params()
    odd = sorted(set(declared.parameters) - set(known))
    require(not odd, f"{declared.path} [space] says {odd[:1]}; the parameters are {', '.join(known)}")
    return space.set_params(**{**declared.parameters, **given})  # type: ignore[no-any-return]
