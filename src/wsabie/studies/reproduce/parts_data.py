"""What the tables of objects and parts run on: pictures, and relations between their labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.sources.records import Rows
from wsabie.storage.rejects import Rejects
from wsabie.studies.reproduce.data import Data, Related, three_sides
from wsabie.studies.reproduce.record import Opening

PLANTED, NULL, LIKENESS = "parts:", "null", "likeness="
FEW = 30
"""Relations below which models are not to be ranked."""


def open_parts(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
    knowledge: Sequence[Path] = (),
    inherit: bool = False,
) -> Data:
    """Annotated pictures with relations between labels.

    Parameters
    ----------
    name : str
        A planted collection (`planted_parts.SIZES`); with ":null" behind it training is told of relations that do not
        hold, with ":likeness=0.8" relations follow looks that much. "sample" or a path: see `parts_pictures`.
    seed, executor, progress, rejects
        As of `open_data`.
    knowledge, inherit
        For pictures: see `parts_pictures.pictures_with_parts`.

    Raises
    ------
    InputError
        There is no such collection, or it knows of its parts and needs no knowledge, or the other way round.

    Examples
    --------
    >>> open_parts("parts:tiny:likeness=1:null").name
    'parts:tiny:likeness=1:null'
    """
    if name.startswith(PLANTED):
        if knowledge or inherit:
            raise InputError(f"{name} has relations of its own; leave --knowledge and --inherit out")
        return warned(_planted(name, seed, progress))
    if not knowledge:
        raise InputError(f"{name} has no relations between labels; name WordNet with --knowledge FOLDER")
    from wsabie.studies.reproduce.parts_pictures import pictures_with_parts

    rejects = Rejects() if rejects is None else rejects
    return warned(
        pictures_with_parts(
            name, knowledge, inherit=inherit, seed=seed, executor=executor, progress=progress, rejects=rejects
        )
    )


OPENING = Opening(
    open_parts,
    "parts:paper, parts:S or parts:tiny (with :null behind it relations do not hold, with :likeness=0.8 they follow "
    "looks that much, from 0 to 1), or sample or a folder of pictures with --knowledge WORDNET",
    ("knowledge", "inherit"),
)


def warned(data: Data) -> Data:
    """The data, with a warning where their relations are few."""
    told = 0 if data.related is None else len(data.related.told)
    if told >= FEW:
        return data
    return replace(data, about=f"{data.about}. {told} relations are too few to rank models by (fewer than {FEW})")


def _planted(name: str, seed: int, progress: Progress) -> Data:
    from wsabie.studies.reproduce.planted_parts import generate

    collection, likeness, null = _settings(name)
    with progress.stage("planting pictures and relations", None, ""):
        task = generate(collection, likeness=likeness, null=null, seed=seed)
    labels = [f"family {family} label {y}" for y, family in enumerate(task.looks.families)]
    X, n = task.pictures.X, len(task.pictures.y)
    rows = Rows(X, task.Y, labels, [f"picture {i}" for i in range(n)], counts=True)
    true, told, unseen = (_named(pairs, labels) for pairs in (task.true, task.told, task.unseen))
    said = "which do not hold: their parts were dealt out anew" if null else f"and {len(unseen)} that it is not told of"
    about = (
        f"planted pictures and relations {name}, likeness {likeness:g}, seed {seed}: {len(task.split.train):,} "
        f"training, {len(task.split.valid):,} validation and {len(task.split.test):,} test pictures of {len(labels):,} "
        f"labels; training is told of {len(told):,} relations, {said} (docs/planted-parts.md)"
    )
    related = Related(told, true[: len(told)], unseen)
    return Data(name, about, *three_sides(rows, task.split), related=related)


def _settings(name: str) -> tuple[str, float, bool]:
    """The planted collection, how much relations follow looks, and whether they do not hold."""
    from wsabie.studies.reproduce import planted_parts

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


def _named(pairs: Any, labels: list[str]) -> list[tuple[str, str]]:
    return [(labels[one], labels[other]) for one, other in np.asarray(pairs).tolist()]
