"""Export as a model folder with a model card for the Hugging Face Hub, which `wsabie.load` opens too."""

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsabie.core.errors import require
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import collect_versions
from wsabie.models.annotators import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.models.exporters.export_formats import render_template, write_model_folder
from wsabie.models.joint_embedding.estimator import Wsabie

TASKS = {"pictures": "image-classification", "sounds": "audio-classification", "documents": "text-classification"}
"""Task names of the Hub by modality; for rows it is "tabular-classification"."""
_MODALITY_NOUNS = {"pictures": "pictures", "sounds": "sounds", "documents": "texts", "rows": "rows of features"}


def write_huggingface_folder(annotator: Annotator, out: Path, *, license: str | None = None) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    annotator = replace(annotator, model=drop_replay_buffer(annotator.model))
    state = annotator.to_state()
    state.config["facts"] = facts = shorten_paths(annotator.facts)
    return write_model_folder(out, state, {"README.md": build_model_card(annotator, facts, out.name, license)})


def drop_replay_buffer(model: LabelModel) -> LabelModel:
    """Return the model without its replay buffer, because training rows may be private.

    The copy keeps no later rows either: a buffer without old labels would take all labels for new.

    Examples
    --------
    >>> import numpy as np
    >>> model = Wsabie(dim=4, threads=1, replay=2).fit(np.eye(3), ["red", "green", "blue"])
    >>> len(model.replay_buffer_), drop_replay_buffer(model).replay_buffer_, len(model.replay_buffer_)
    (2, None, 2)
    """
    if not isinstance(model, Wsabie) or model.replay_buffer_ is None:
        return model
    bare = copy(model)
    bare.replay, bare.replay_buffer_, bare.batch_reports_ = None, None, []
    return bare


def shorten_paths(facts: Any) -> Any:
    """Return facts with the last part of each path only, because folder names may be private.

    Examples
    --------
    >>> shorten_paths({"source": "/home/ann/photos/cats.parquet", "rows": 12})
    {'source': 'cats.parquet', 'rows': 12}
    """
    if isinstance(facts, dict):
        return {name: shorten_paths(value) for name, value in facts.items()}
    if isinstance(facts, list):
        return [shorten_paths(value) for value in facts]
    return Path(facts).name if isinstance(facts, str) and "/" in facts else facts


def build_model_card(annotator: Annotator, facts: JsonObject, name: str, license: str | None) -> str:
    """Return the text of README.md: front matter for the Hub, then text for people."""
    model, modality = annotator.model, "rows" if annotator.extractor is None else annotator.extractor.modality
    about = {**model.facts(), **annotator.extraction_facts(), **facts}
    retired_ids = set(model.vocabulary_.retired_ids().tolist())
    return render_template(
        "model_card.md",
        front_matter=_build_front_matter(about, modality, name, license),
        title=name,
        modality=_MODALITY_NOUNS[modality],
        labels=[label for number, label in enumerate(model.vocabulary_) if number not in retired_ids],
        about={"kind": model.kind, **about},
        versions=collect_versions(),
    )


def _build_front_matter(about: JsonObject, modality: str, name: str, license: str | None) -> JsonObject:
    task = TASKS.get(modality, "tabular-classification")
    head: JsonObject = {
        "license": (license or "unknown").lower(),
        "library_name": "wsabie",
        "pipeline_tag": task,
        "tags": ["wsabie", "multi-label", "annotation", "ranking", "embeddings"],
    }
    figure = about.get("validation_map")
    if figure is None:
        return head
    metric = {"type": "mean_average_precision", "name": "MAP on validation rows", "value": round(figure, 4)}
    data = {"name": about.get("source") or "unnamed", "type": "other", "split": "validation"}
    result = {"task": {"type": task}, "dataset": data, "metrics": [metric]}
    return {**head, "metrics": ["mean_average_precision"], "model-index": [{"name": name, "results": [result]}]}


def write_half_precision(annotator: Annotator, out: Path) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The model is not a `Wsabie`, a value is too large for float16, or the folder cannot be written.
    """
    model = annotator.model
    require(type(model) is Wsabie, f"models of kind {model.kind} are not kept in float16; export one of kind wsabie")
    return write_model_folder(out, replace(annotator, model=model.to_float16()).to_state(), {})
