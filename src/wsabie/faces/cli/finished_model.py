"""`wsabie train --resume` of a model that is finished: it is kept, and the answer is that of its training."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.plain import plain
from wsabie.faces.cli.terminal import note
from wsabie.sources.declaration import DeclaredKind, declaration_digest
from wsabie.sources.fingerprint import fingerprint_or_none
from wsabie.sources.records import Rows, Source
from wsabie.sources.sharded import ShardedRows
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.models.annotator import Annotator
    from wsabie.models.space_annotator import SpaceAnnotator
    from wsabie.studies.relating import SpaceRecipe
    from wsabie.studies.training import Recipe

_FREE = ("threads", "init", "init_labels", "vectors", "knowledge")
"""Parameters that may differ, or that no model keeps."""


def load_finished(recipe: "Recipe", source: Source | ShardedRows) -> "Annotator":
    """Return the finished model of these data and parameters.

    Raises
    ------
    InputError
        The model at this place is another one, so that there is nothing to go on from.
    """
    from wsabie.faces.cli.common import loaded

    annotator: Annotator = loaded(recipe.model)
    data = source.shards.fingerprint if isinstance(source, ShardedRows) else fingerprint_or_none(source)
    facts = annotator.facts
    if facts.get("system") != recipe.system:
        refuse_other_model(recipe.model, "kind")
    if data is None:
        _refuse_unreadable(recipe.model)
    if data not in (facts.get("fingerprint"), facts.get("source_fingerprint")):
        refuse_other_model(recipe.model, "data")
    refuse_other_parameters(recipe.model, annotator.model, recipe.estimator)
    tell_finished(recipe.model)
    return annotator


def refuse_other_space(recipe: "SpaceRecipe", finished: "SpaceAnnotator", rejects: Rejects) -> None:
    """Refuse a finished space of another declaration, or of other data, pairs or parameters.

    Raises
    ------
    InputError
        Also where the data cannot be read.
    """
    from wsabie.features.collect import outline
    from wsabie.studies.dealing import collect
    from wsabie.studies.relating import chosen, marks_of

    facts, model, relations = finished.facts, recipe.model, chosen(recipe.declared, recipe.only)
    digest, fingerprints = declaration_digest(recipe.declared, relations), dict[str, str | None]()
    if sorted(facts["pairs"]) != sorted(one.name for one in relations):
        refuse_other_model(model, "relations")
    if facts.get("declaration", digest) != digest:
        refuse_other_model(model, "kinds or relations in its declaration")

    def known_rows(kind: DeclaredKind, source: Source) -> Rows:
        """Rows of the things that could be described."""
        fingerprints[kind.name] = fingerprint_or_none(source)
        rows, things = source if isinstance(source, Rows) else outline(source), set(finished.space.things(kind.name))
        return rows.take(np.flatnonzero([name in things for name in rows.ids]))

    data = collect(recipe.declared, relations, known_rows, rejects)
    if None in fingerprints.values():
        _refuse_unreadable(model)
    if fingerprints != facts["fingerprints"]:
        refuse_other_model(model, "data")
    marks = marks_of(relations, data)
    if any(marks[name] != mark for name, mark in facts["pair_marks"].items()):
        refuse_other_model(model, "pairs")
    refuse_other_parameters(model, finished.space, recipe.space)


def tell_finished(model: Path) -> None:
    """Say that there is nothing left to do."""
    note(f"{model} is finished and stays as it is; leave --resume out to train it again")


def refuse_other_parameters(model: Path, finished: Any, requested: Any) -> None:
    """Refuse a finished model that has other parameters than the command line asks for."""
    old, new = _parameters(finished), _parameters(requested)
    different = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    if different:
        refuse_other_model(model, ", ".join(different))


def refuse_other_model(model: Path, what: str) -> NoReturn:
    """Raise the refusal of a model that another command made."""
    raise InputError(
        f"{model} is a finished model with other {what}, and no training of it is unfinished; leave --resume out to "
        "replace it, or name another folder"
    )


def _refuse_unreadable(model: Path) -> NoReturn:
    """Raise the refusal of a model whose data have an item that cannot be read, so that they cannot be compared."""
    raise InputError(f"{model} is a finished model, perhaps of other data; leave --resume out to train it again")


def _parameters(model: Any) -> dict[str, Any]:
    """Parameters as JSON knows them."""
    values = {name: value for name, value in model.get_params(deep=False).items() if not hasattr(value, "get_params")}
    compared = {name: value for name, value in values.items() if name not in _FREE}
    document: dict[str, Any] = json.loads(json.dumps(plain(compared), default=str))
    return document
