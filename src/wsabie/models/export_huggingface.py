"""A model folder with a model card, as the Hugging Face Hub shows it; `wsabie.load` opens it as any other."""

import json
import re
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.machine import versions
from wsabie.models.annotator import Annotator
from wsabie.models.base import LabelModel
from wsabie.models.export import write_folder
from wsabie.models.wsabie import Wsabie

TASKS = {"pictures": "image-classification", "sounds": "audio-classification", "documents": "text-classification"}
"""What the Hub calls the task, by the things that a model describes; of rows "tabular-classification"."""
_LICENSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")
_SHOWN = 20
_MEANT = {"pictures": "pictures", "sounds": "sounds", "documents": "texts", "rows": "rows of features"}


def write(annotator: Annotator, out: Path, *, license: str | None = None) -> list[Path]:
    """Write the folder; what is in it.

    Raises
    ------
    InputError
        The license is no identifier, or the folder cannot be written.
    """
    if license is not None and not _LICENSE.fullmatch(license):
        raise InputError(f"the license {license!r} is no identifier; give one such as apache-2.0 or cc-by-4.0")
    annotator = replace(annotator, model=without_buffer(annotator.model))
    parts = annotator.to_parts()
    parts.config["facts"] = facts = without_places(annotator.facts)
    return write_folder(out, parts, {"README.md": card(annotator, facts, out.name, license)})


def without_buffer(model: LabelModel) -> LabelModel:
    """The model without the training rows that it keeps against forgetting, which are not for everybody.

    It keeps none of later rows either: a buffer that has met no old label would take them all for new.

    Examples
    --------
    >>> import numpy as np
    >>> model = Wsabie(dim=4, threads=1, replay=2).fit(np.eye(3), ["red", "green", "blue"])
    >>> len(model.memory_), without_buffer(model).memory_, len(model.memory_)
    (2, None, 2)
    """
    if not isinstance(model, Wsabie) or model.memory_ is None:
        return model
    bare = copy(model)
    bare.replay, bare.memory_, bare.stream_ = None, None, []
    return bare


def without_places(facts: Any) -> Any:
    """Facts whose paths are their last parts: where files lay is nobody else's business.

    Examples
    --------
    >>> without_places({"source": "/home/ann/photos/cats.parquet", "rows": 12})
    {'source': 'cats.parquet', 'rows': 12}
    """
    if isinstance(facts, dict):
        return {name: without_places(value) for name, value in facts.items()}
    if isinstance(facts, list):
        return [without_places(value) for value in facts]
    return Path(facts).name if isinstance(facts, str) and "/" in facts else facts


def card(annotator: Annotator, facts: dict[str, Any], name: str, license: str | None) -> str:
    """The text of README.md: what the Hub reads, then what people read."""
    model, things = annotator.model, "rows" if annotator.terms is None else annotator.terms.things
    about = {**model.facts(), **annotator.description(), **facts}
    told = _head(about, things, name, license).items()
    head = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in told)  # YAML knows no pairs
    gone = set(model.vocabulary_.retired().tolist())
    labels = [label for number, label in enumerate(model.vocabulary_) if number not in gone]
    more = f", and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else ""
    names = ", ".join(f"`{label.replace('`', chr(39))}`" for label in labels[:_SHOWN])
    return _CARD.format(
        head=head,
        title=name,
        kind=model.kind,
        things=_MEANT[things],
        n_labels=len(labels),
        names=names + more,
        data=_listed(about, _DATA),
        model=_listed({"kind": model.kind, **about}, _MODEL),
        figures=_figures(about),
        version=versions()["wsabie"],
        python=versions()["python"],
    )


def _head(about: dict[str, Any], things: str, name: str, license: str | None) -> dict[str, Any]:
    task = TASKS.get(things, "tabular-classification")
    head: dict[str, Any] = {
        "license": (license or "unknown").lower(),
        "library_name": "wsabie",
        "pipeline_tag": task,
        "tags": ["wsabie", "multi-label", "annotation", "ranking", "embeddings"],
    }
    figure = about.get("validation_map")
    if figure is None:
        return head
    told = {"type": "mean_average_precision", "name": "MAP on validation rows", "value": round(figure, 4)}
    data = {"name": about.get("source") or "unnamed", "type": "other", "split": "validation"}
    found = {"task": {"type": task}, "dataset": data, "metrics": [told]}
    return {**head, "metrics": ["mean_average_precision"], "model-index": [{"name": name, "results": [found]}]}


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
    "similarity": "similarity", "models": "models", "epochs": "epochs", "describe": "description",
    "size": "pixels of the longer side",
}  # fmt: skip


def _listed(about: dict[str, Any], wanted: dict[str, str]) -> str:
    known = [(told, about[name]) for name, told in wanted.items() if about.get(name) not in (None, "")]
    lines = [f"| {told} | {f'{value:,}' if isinstance(value, int) else str(value).replace('|', '/')} |"
             for told, value in known]  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *lines]) if lines else "Nothing is known of it."


def _figures(about: dict[str, Any]) -> str:
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

Gives {things} the labels that fit best, of {n_labels:,}: {names}.

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

FOLDER is a copy of this repository and NEW holds {things}. The model is `config.json` and `tensors/*.safetensors`, with
checksums; nothing in it is code.

## Model

{model}

## Training data

{data}

## Figures

{figures}

Written by wsabie {version} with Python {python}.
"""
