"""From a declaration to a space: describe the things of every kind, hold some out, train, save, judge."""

import logging
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.base.validation import require
from wsabie.evaluation.evaluate import Evaluation
from wsabie.labels.hierarchy import Hierarchy
from wsabie.models.relations import Kind, Relation, known_pairs
from wsabie.models.space import Space
from wsabie.models.space_annotator import SpaceAnnotator
from wsabie.sources.declaration import KNOWN, Declared, DeclaredKind, DeclaredRelation, declaration_digest
from wsabie.sources.fingerprint import fingerprint_or_none
from wsabie.sources.records import Rows, Source
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects
from wsabie.studies.dealing import Collected, Dealt, collect, deal, kind_from, related_by
from wsabie.studies.things import Things
from wsabie.studies.unfinished import unfinished, work_beside
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
        """Where unfinished work is kept."""
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
        Data that cannot be used, what `Space.fit` refuses, or another process that trains this space.
    """
    declared, seed = recipe.declared, recipe.space.seed
    relations = chosen(declared, recipe.only)
    with unfinished(recipe.work, resume=recipe.resume):
        things = Things(seed, executor, progress, rejects, recipe.work)
        data = collect(declared, relations, things.rows, rejects)
        dealt = deal(declared, relations, data, recipe.hold_out, seed).numbered()
        facts = facts_of(recipe, relations, data, dealt, things)
        data = replace(data, couples={})  # pairs by name may take more memory than the space
        recipe.space.fit(
            dealt.learnt,
            validation=dealt.held_out,
            stop_on=recipe.stop_on,
            checkpoint=recipe.work / "checkpoint",
            resume=recipe.resume,
            progress=progress,
            on_epoch=on_epoch,
        )
        facts = {**facts, "skipped": len(rejects)}
        keep(recipe.space, recipe.model, data, dealt, things, facts)
    return TrainedSpace(facts, recipe.space.history_)


def facts_of(
    recipe: SpaceRecipe, relations: list[DeclaredRelation], data: Collected, dealt: Dealt, things: Things
) -> dict[str, Any]:
    """What a space remembers of its training."""
    return {
        "source": shown(recipe.declared.path),
        "declaration": declaration_digest(recipe.declared, relations),
        "pairs": {one.name: one.n_pairs for one in dealt.learnt},
        "held_out_pairs": {one.name: one.n_pairs for one in dealt.held_out},
        "fingerprints": things.fingerprints,
        "pair_marks": marks_of(relations, data),
    }


def keep(space: Space, model: Path, data: Collected, dealt: Dealt, things: Things, facts: dict[str, Any]) -> None:
    """Place what was set aside, for it belongs to the collection like the rest, and save the space."""
    for kind in dealt.aside:
        space.add(kind)
    columns = {
        name: {"feature_names": rows.feature_names, "dictionary": rows.dictionary} for name, rows in data.rows.items()
    }
    SpaceAnnotator(space, things.terms, columns, facts).save(model)


def chosen(declared: Declared, only: tuple[str, ...]) -> list[DeclaredRelation]:
    """The relations of these names, to be learned; all without names.

    Raises
    ------
    InputError
        There is no such relation, or one that is made to be judged.
    """
    known = {one.name: one for one in declared.relations}
    odd = [name for name in only if name not in known]
    if odd:
        raise InputError(f"{declared.path} declares no relation {odd[0]!r}; it declares {', '.join(known)}")
    found = [known[name] for name in only] if only else declared.relations
    judged = next((one.name for one in found if one.among is not None), None)
    if judged is not None:
        raise InputError(
            f'{declared.path} [relations.{judged}] says among = "{KNOWN}", which is for `wsabie evaluate`; give the '
            "declaration of training"
        )
    return found


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
    facts, known = annotator.facts, [name for name, _, _ in annotator.space.relations_]
    seen = Seen(known, facts.get("fingerprints", {}), facts.get("pair_marks", {}), allow_overlap)

    def rows_of(kind: DeclaredKind, source: Source) -> Rows:
        seen.refuse_things(kind, source)
        return annotator.rows(kind.name, source, executor=executor, progress=progress, rejects=rejects).rows

    relations = seen.of(declared)
    data = collect(declared, relations, rows_of, rejects)
    told = asked_by(declared, relations, data, seen)
    for relation in told:
        _tell_unknown(relation, annotator.space)
    return annotator.space.evaluate(told, ks, hierarchy=hierarchy)


@dataclass(frozen=True)
class Seen:
    """What training has seen, which judges nothing.

    Attributes
    ----------
    relations : list of str
    fingerprints : mapping of str to str or None
        Of the data of each kind.
    pair_marks : mapping of str to int
        Of the pairs of each relation.
    allowed : bool
        Nothing is refused.
    """

    relations: list[str]
    fingerprints: Mapping[str, str | None]
    pair_marks: Mapping[str, int]
    allowed: bool = False

    def of(self, declared: Declared) -> list[DeclaredRelation]:
        """The relations of a declaration that were learned; others are told.

        Raises
        ------
        InputError
            None.
        """
        found = [one for one in declared.relations if one.name in self.relations]
        require(
            bool(found),
            f"{declared.path} declares none of the relations that were learned: {', '.join(sorted(self.relations))}",
        )
        for one in declared.relations:
            if one.name not in self.relations:
                log.warning(
                    "%s: the space has learned no relation %r, so that it is not judged", declared.path, one.name
                )
        return found

    def refuse_things(self, kind: DeclaredKind, source: Source) -> None:
        """InputError where these are the things of training."""
        own = fingerprint_or_none(source)
        require(
            self.allowed or own is None or own != self.fingerprints.get(kind.name),
            f"{kind.data} is what the space was trained on; give other data, or add --allow-overlap",
        )


def asked_by(declared: Declared, relations: list[DeclaredRelation], data: Collected, seen: Seen) -> list[Relation]:
    """The relations of a declaration as they judge.

    Raises
    ------
    InputError
        Pairs that training has seen.
    """
    for one in relations:
        same = one.pairs is not None and mark_of(data.couples[one.name]) == seen.pair_marks.get(one.name)
        require(
            seen.allowed or not same,
            f"the pairs of {one.name!r} are those that the space was trained on; give others, or add --allow-overlap",
        )
    kinds = {name: kind_from(declared.kinds[name], rows) for name, rows in data.rows.items()}
    return [
        related_by(
            one,
            data.couples[one.name],
            kinds.get(one.query, one.query),
            one.target if one.among is not None else kinds.get(one.target, one.target),
        )
        for one in relations
    ]


def _tell_unknown(relation: Relation, space: Space) -> None:
    """Say how many pairs judge nothing, because the space does not know a thing in them."""
    sides = [
        end.names() if isinstance(end, Kind) and end.X is not None else space.known(name).things
        for end, name in ((relation.query, relation.query_kind), (relation.target, relation.target_kind))
    ]
    left_out = known_pairs(relation, sides[0], sides[1])[1]
    if left_out:
        log.warning("%s: %s pairs are left out, the space does not know their things", relation.name, f"{left_out:,}")


def marks_of(relations: list[DeclaredRelation], data: Collected) -> dict[str, int]:
    """The marks of the pairs of relations."""
    return {one.name: mark_of(data.couples[one.name]) for one in relations}


def mark_of(couples: Iterable[tuple[str, str]]) -> int:
    """By which the same pairs are known again, in whatever order they come."""
    return sum(zlib.crc32(f"{a}\t{b}".encode()) for a, b in couples)


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
