"""Export as a model folder with a model card for the Hugging Face Hub, which `wsabie.load` opens too."""

import json
import re
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError
from wsabie.core.machine import collect_versions
from wsabie.models.annotators import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.models.exporters.export_formats import write_model_folder
from wsabie.models.wsabie.estimator import Wsabie

TASKS = {"pictures": "image-classification", "sounds": "audio-classification", "documents": "text-classification"}
"""Task names of the Hub by modality; for rows it is "tabular-classification"."""
_LICENSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")
_MAX_LISTED_LABELS = 20
_MODALITY_NOUNS = {"pictures": "pictures", "sounds": "sounds", "documents": "texts", "rows": "rows of features"}


def write_huggingface_folder(annotator: Annotator, out: Path, *, license: str | None = None) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The license is no identifier, or the folder cannot be written.
    """
    if license is not None and not _LICENSE.fullmatch(license):
        raise InputError(f"the license {license!r} is no identifier; give one such as apache-2.0 or cc-by-4.0")
    annotator = replace(annotator, model=drop_replay_buffer(annotator.model))
    parts = annotator.to_parts()
    parts.config["facts"] = facts = shorten_paths(annotator.facts)
    return write_model_folder(out, parts, {"README.md": build_model_card(annotator, facts, out.name, license)})


def drop_replay_buffer(model: LabelModel) -> LabelModel:
    """Return the model without its replay buffer, because training rows may be private.

    The copy keeps no later rows either: a buffer without old labels would take all labels for new.

    Examples
    --------
    >>> import numpy as np
    >>> model = Wsabie(dim=4, threads=1, replay=2).fit(np.eye(3), ["red", "green", "blue"])
    >>> len(model.memory_), drop_replay_buffer(model).memory_, len(model.memory_)
    (2, None, 2)
    """
    if not isinstance(model, Wsabie) or model.memory_ is None:
        return model
    bare = copy(model)
    bare.replay, bare.memory_, bare.stream_ = None, None, []
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


def build_model_card(annotator: Annotator, facts: dict[str, Any], name: str, license: str | None) -> str:
    """Return the text of README.md: front matter for the Hub, then text for people."""
    model, modality = annotator.model, "rows" if annotator.terms is None else annotator.terms.modality
    about = {**model.facts(), **annotator.extraction_facts(), **facts}
    front_matter = _build_front_matter(about, modality, name, license).items()
    head = "\n".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front_matter
    )  # YAML knows no pairs
    retired_ids = set(model.vocabulary_.retired_ids().tolist())
    labels = [label for number, label in enumerate(model.vocabulary_) if number not in retired_ids]
    more = f", and {len(labels) - _MAX_LISTED_LABELS:,} more" if len(labels) > _MAX_LISTED_LABELS else ""
    names = ", ".join(f"`{label.replace('`', chr(39))}`" for label in labels[:_MAX_LISTED_LABELS])
    return _CARD.format(
        head=head,
        title=name,
        kind=model.kind,
        modality=_MODALITY_NOUNS[modality],
        n_labels=len(labels),
        names=names + more,
        data=_format_table(about, _DATA),
        model=_format_table({"kind": model.kind, **about}, _MODEL),
        figures=_format_figures(about),
        version=collect_versions()["wsabie"],
        python=collect_versions()["python"],
    )


def _build_front_matter(about: dict[str, Any], modality: str, name: str, license: str | None) -> dict[str, Any]:
    task = TASKS.get(modality, "tabular-classification")
    head: dict[str, Any] = {
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


_DATA = {
    "source": "collection",
    "fingerprint": "its fingerprint",
    "rows": "training rows",
    "items": "training items",
    "validation_rows": "validation rows",
    "labels_dropped": "labels with too few rows, left out",
    "rows_without_labels": "training rows without a label",
    "skipped": "items that could not be read",
}
_MODEL = {
    "system": "system", "kind": "kind", "labels": "labels", "features": "features", "dimensions": "dimensions",
    "similarity": "similarity", "models": "models", "epochs": "epochs", "extractor": "description",
    "size": "pixels of the longer side",
}  # fmt: skip


def _format_table(about: dict[str, Any], titles: dict[str, str]) -> str:
    entries = [(title, about[name]) for name, title in titles.items() if about.get(name) not in (None, "")]
    lines = [f"| {title} | {f'{value:,}' if isinstance(value, int) else str(value).replace('|', '/')} |"
             for title, value in entries]  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *lines]) if lines else "Nothing is known of it."


def _format_figures(about: dict[str, Any]) -> str:
    figure, rows = about.get("validation_map"), about.get("validation_rows")
    if figure is None:
        return (
            "None are known: no rows were held out, or the model was changed since. `wsabie evaluate` measures the "
            "model on data with known labels."
        )
    on = f"{rows:,} held-out rows" if rows else "held-out rows"
    return (
        f"| figure | value |\n|---|---|\n| mean average precision (MAP) on {on} | {figure:.4f} |\n\n"
        "These rows were not trained on, but they chose the epoch, so that the figure is a little too good. `wsabie "
        "evaluate` measures the model on data of your own."
    )


_CARD = """---
{head}
---

# {title}

Gives {modality} the labels that fit best, of {n_labels:,}: {names}.

## Intended use

Suggesting labels to people, who accept or reject them; searching and sorting collections like the one it learnt from.
Scores rank the labels of one row; they are no probabilities. The model knows no other labels, gives some to everything,
and repeats what is wrong or missing in its training data. It is not meant to decide about people.

## How to load

With the Python package wsabie ({version} or later):

```console
$ wsabie annotate FOLDER NEW
```

```python
import wsabie

annotator = wsabie.load("FOLDER")
new = annotator.rows(wsabie.open_source("NEW")).rows
annotator.model.annotate(new.X, k=5)
```

FOLDER is a copy of this repository and NEW holds {modality}. The model is `config.json` and `tensors/*.safetensors`,
with checksums; nothing in it is code.

## Model

{model}

## Training data

{data}

## Figures

{figures}

Written by wsabie {version} with Python {python}.
"""


def write_half_precision(annotator: Annotator, out: Path) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The model is no `Wsabie`, a value is too large for float16, or the folder cannot be written.
    """
    model = annotator.model
    if type(model) is not Wsabie:
        raise InputError(f"models of kind {model.kind} are not kept in float16; export one of kind wsabie")
    return write_model_folder(out, replace(annotator, model=model.halved()).to_parts(), {})
