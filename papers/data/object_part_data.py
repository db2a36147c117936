"""Data of the tables of objects and parts: images, and relations between their labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from papers.datasets import LabelRelations, PaperData, build_three_sides
from papers.record import DataOpener
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects

PLANTED, NULL, LIKENESS = "parts:", "null", "likeness="
MIN_RELATIONS = 30
"""Fewest relations that can rank models."""


def open_parts(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
    knowledge: Sequence[Path] = (),
    inherit: bool = False,
) -> PaperData:
    """Open annotated images with relations between labels.

    Parameters
    ----------
    name : str
        A planted collection (`planted_parts.SIZES`). With the suffix ":null" the relations of training are false, with
        ":likeness=0.8" relations follow looks that much. "sample" or a path: see `synset_images`.
    seed, executor, progress, rejects
        As of `open_data`.
    knowledge, inherit
        For images: see `synset_images.open_synset_images`.

    Raises
    ------
    InputError
        There is no such collection, it has its own relations and takes no knowledge, or it lacks both.

    Examples
    --------
    >>> open_parts("parts:tiny:likeness=1:null").name
    'parts:tiny:likeness=1:null'
    """
    if name.startswith(PLANTED):
        if knowledge or inherit:
            raise InputError(f"{name} has relations of its own; leave --knowledge and --inherit out")
        return warn_few_relations(_generate_planted(name, seed, progress))
    if not knowledge:
        raise InputError(f"{name} has no relations between labels; name WordNet with --knowledge FOLDER")
    from papers.data.synset_images import open_synset_images

    rejects = Rejects() if rejects is None else rejects
    return warn_few_relations(
        open_synset_images(
            name, knowledge, inherit=inherit, seed=seed, executor=executor, progress=progress, rejects=rejects
        )
    )


OPENING = DataOpener(
    open_parts,
    "parts:paper, parts:S or parts:tiny (with :null behind it relations do not hold, with :likeness=0.8 they follow "
    "looks that much, from 0 to 1), or sample or a folder of pictures with --knowledge WORDNET",
    ("knowledge", "inherit"),
)


def warn_few_relations(data: PaperData) -> PaperData:
    """Add a warning to data with few relations."""
    n_relations = 0 if data.related is None else len(data.related.training)
    if n_relations >= MIN_RELATIONS:
        return data
    return replace(
        data, about=f"{data.about}. {n_relations} relations are too few to rank models by (fewer than {MIN_RELATIONS})"
    )


def _generate_planted(name: str, seed: int, progress: Progress) -> PaperData:
    from papers.data.planted_parts import generate_planted_parts

    collection, likeness, null = _parse_settings(name)
    with progress.stage("planting pictures and relations", None, ""):
        task = generate_planted_parts(collection, likeness=likeness, null=null, seed=seed)
    labels = [f"family {family} label {y}" for y, family in enumerate(task.appearance.families)]
    X, n_images = task.pictures.X, len(task.pictures.y)
    rows = FeatureTable(X, task.Y, labels, [f"picture {i}" for i in range(n_images)], counts=True)
    true, training_pairs, unseen = (_name_pairs(pairs, labels) for pairs in (task.true, task.training, task.unseen))
    training_note = (
        "which do not hold: their parts were dealt out again" if null else f"and {len(unseen)} that it is not told of"
    )
    about = (
        f"planted pictures and relations {name}, likeness {likeness:g}, seed {seed}: {len(task.split.train):,} "
        f"training, {len(task.split.valid):,} validation and {len(task.split.test):,} test pictures of {len(labels):,} "
        f"labels; training is told of {len(training_pairs):,} relations, {training_note} "
        "(papers/pages/planted-parts.md)"
    )
    related = LabelRelations(training_pairs, true[: len(training_pairs)], unseen)
    return PaperData(name, about, *build_three_sides(rows, task.split), related=related)


def _parse_settings(name: str) -> tuple[str, float, bool]:
    """Return the planted collection, the likeness of relations and looks, and the null setting."""
    from papers.data import planted_parts

    kind, size, *words = name.split(":")
    likeness, null = planted_parts.LIKENESS, False
    for word in words:
        try:
            if word.startswith(LIKENESS):
                likeness = float(word.removeprefix(LIKENESS))
            elif word == NULL:
                null = True
            else:
                raise ValueError(word)
        except ValueError as error:
            raise InputError(f"{name} says {word!r}; write {NULL} or {LIKENESS}0.8 behind {kind}:{size}") from error
    return f"{kind}:{size}", likeness, null


def _name_pairs(pairs: Any, labels: list[str]) -> list[tuple[str, str]]:
    return [(labels[object_id], labels[part_id]) for object_id, part_id in np.asarray(pairs).tolist()]
