"""`wsabie train --resume` of a finished model, which is kept and reported again."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from wsabie.cli.terminal.output import print_note
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import to_json_value
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.records import FeatureTable, Source
from wsabie.io.shards.sharded_table import ShardedFeatureTable
from wsabie.io.space_declaration import KindDeclaration, declaration_digest
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.models.annotators.annotator import Annotator
    from wsabie.models.annotators.space_annotator import SpaceAnnotator
    from wsabie.workflows.spaces.space_training import SpaceRecipe
    from wsabie.workflows.train.model_training import TrainingRecipe

_IGNORED_PARAMETERS = ("threads", "init", "init_labels", "vectors", "knowledge")
"""Parameters that may differ, or that models do not store."""


def load_trained_model(recipe: "TrainingRecipe", source: Source | ShardedFeatureTable) -> "Annotator":
    """Return the finished model of these data and parameters.

    Raises
    ------
    InputError
        Another model is at this place.
    """
    from wsabie.cli.inputs.command_inputs import load_annotator

    annotator: Annotator = load_annotator(recipe.model)
    data = source.shards.fingerprint if isinstance(source, ShardedFeatureTable) else compute_fingerprint_or_none(source)
    facts = annotator.facts
    if facts.get("system") != recipe.system:
        refuse_other_model(recipe.model, "kind")
    if data is None:
        _refuse_unreadable(recipe.model)
    if data not in (facts.get("fingerprint"), facts.get("source_fingerprint")):
        refuse_other_model(recipe.model, "data")
    refuse_other_parameters(recipe.model, annotator.model, recipe.estimator)
    report_trained_model(recipe.model)
    return annotator


def refuse_other_space(recipe: "SpaceRecipe", finished: "SpaceAnnotator", rejects: Rejects) -> None:
    """Refuse a finished space of another declaration, or of other data, pairs or parameters.

    Raises
    ------
    InputError
        The space differs, or the data cannot be read.
    """
    from wsabie.features.base.table_builder import build_label_table
    from wsabie.workflows.spaces.relation_holdout import collect_declared_data
    from wsabie.workflows.spaces.space_training import compute_relation_marks, select_relations

    facts, model, relations = finished.facts, recipe.model, select_relations(recipe.declared, recipe.only)
    digest, fingerprints = declaration_digest(recipe.declared, relations), dict[str, str | None]()
    if sorted(facts["pairs"]) != sorted(relation.name for relation in relations):
        refuse_other_model(model, "relations")
    if facts.get("declaration", digest) != digest:
        refuse_other_model(model, "kinds or relations in its declaration")

    def read_known_rows(kind: KindDeclaration, source: Source) -> FeatureTable:
        """Return the rows of items whose features could be extracted."""
        fingerprints[kind.name] = compute_fingerprint_or_none(source)
        rows, item_names = (
            source if isinstance(source, FeatureTable) else build_label_table(source),
            set(finished.space.things(kind.name)),
        )
        return rows.take(np.flatnonzero([name in item_names for name in rows.ids]))

    data = collect_declared_data(recipe.declared, relations, read_known_rows, rejects)
    if None in fingerprints.values():
        _refuse_unreadable(model)
    if fingerprints != facts["fingerprints"]:
        refuse_other_model(model, "data")
    marks = compute_relation_marks(relations, data)
    if any(marks[name] != mark for name, mark in facts["pair_marks"].items()):
        refuse_other_model(model, "pairs")
    refuse_other_parameters(model, finished.space, recipe.space)


def report_trained_model(model: Path) -> None:
    """Report that there is nothing left to do."""
    print_note(f"{model} is finished and stays as it is; leave --resume out to train it again")


def refuse_other_parameters(model: Path, finished: Any, requested: Any) -> None:
    """Refuse a finished model that has other parameters than the command line asks for."""
    old, new = _serialize_parameters(finished), _serialize_parameters(requested)
    different = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    if different:
        refuse_other_model(model, ", ".join(different))


def refuse_other_model(model: Path, difference: str) -> NoReturn:
    """Raise the refusal of a model that another command made."""
    raise InputError(
        f"{model} is a finished model with other {difference}, and no training of it is unfinished; leave --resume "
        "out to "
        "replace it, or name another folder"
    )


def _refuse_unreadable(model: Path) -> NoReturn:
    """Raise the refusal of data with an unreadable item, which cannot be compared."""
    raise InputError(f"{model} is a finished model, perhaps of other data; leave --resume out to train it again")


def _serialize_parameters(model: Any) -> dict[str, Any]:
    """Return the comparable parameters of a model as JSON values."""
    values = {name: value for name, value in model.get_params(deep=False).items() if not hasattr(value, "get_params")}
    comparable = {name: value for name, value in values.items() if name not in _IGNORED_PARAMETERS}
    document: dict[str, Any] = json.loads(json.dumps(to_json_value(comparable), default=str))
    return document
