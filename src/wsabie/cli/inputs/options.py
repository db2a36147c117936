"""Options and arguments that several commands share, and their conversions."""

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperCommand

from wsabie.cli.terminal.error_messages import check_path
from wsabie.core.errors import InputError
from wsabie.models.estimator_specs import SYSTEMS


def parse_positive(text: str) -> float:
    """Parse a positive number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise typer.BadParameter(f"{text} is no number above 0.")
    return number


def parse_buffer_size(text: str) -> int | str:
    """Parse the number of rows of a buffer, or "auto"."""
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and int(text)):
        raise typer.BadParameter(f"{text} is no number of rows; give one above 0, or auto.")
    return int(text)


def parse_metric(text: str) -> str:
    """Parse a metric of validation rows in any case: MAP, p@10, pairs."""
    return "MAP" if text.upper() == "MAP" else text.lower()


Replay = Annotated[
    str | None,
    typer.Option(
        parser=parse_buffer_size,
        metavar="N",
        help="Rows that the model keeps, so that wsabie update forgets nothing; auto: as many as 4 MB hold.",
    ),
]
By = Literal["auto", "group", "row", "label", "time"]
SplitBy = Literal["auto", "group", "row", "label", "time", "one-label"]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Pictures, sounds or documents in a folder, shards, Parquet, JSON lines or a TSV with a column text, "
        "svmlight/XC, Mulan ARFF, fastText text, pairs in a TSV, or a published collection; FILE.toml declares kinds "
        "of things and relations between them.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, as `wsabie train --model` wrote it.")]
Kind = Annotated[str, typer.Option(help=f"Kind of model: {', '.join(SYSTEMS)}.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="Threads (default: all cores).")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]
OptionalSeed = Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random (default: 0).")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad input instead of listing it.")]
Rejects = Annotated[Path | None, typer.Option(help="Write what was skipped to this file (JSON lines).")]
RayAddress = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Share the work on a Ray cluster: HOST:PORT of its head, or local."),
]
LabelLimit = Annotated[int, typer.Option("-k", min=1, help="How many labels.")]
IndexKind = Annotated[
    Literal["ivf", "hnsw"],
    typer.Option(help="ivf: small, made in seconds; hnsw: a graph, larger, made in minutes."),
]
LabelKind = Annotated[
    Literal["ivf", "hnsw", "int8", "tree"],
    typer.Option(
        help="ivf: small, made in seconds; hnsw: a graph, larger, made in minutes; int8: the exact answer, a byte a "
        "coordinate; tree: a label tree. The last two do without faiss."
    ),
]
RecallTarget = Annotated[float, typer.Option(min=0.01, max=1, help="Share of the exact top 10 that is to be found.")]
AllowOverlap = Annotated[bool, typer.Option("--allow-overlap", help="Judge training rows too, instead of refusing.")]
Hierarchies = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="<path>",
        help="Is-a list (child TAB parent, WordNet's files, a collection with categories) that says which labels are "
        "siblings; several complete each other.",
    ),
]
ParentFirst = Annotated[bool, typer.Option("--parent-first", help="Pairs in --hierarchy name the parent first.")]
Terms = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Terms in a dictionary (default: 10,000 of pictures, 2,000 of sounds, 1,000,000 of documents; fewer for "
        "few).",
    ),
]
MinRows = Annotated[int, typer.Option(min=1, help="Leave out labels with fewer training rows than this.")]
Size = Annotated[
    int | None,
    typer.Option(min=16, max=4096, help="Longer side, in pixels, at which pictures are described (default: 256)."),
]
Describe = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="How pictures are described, side by side if several: terms, colour, textons, hog, onnx:FILE (default: "
        "terms); how sounds are: mfcc, sai (default: both); how documents are: words.",
    ),
]
Items = Annotated[
    Literal["regions", "boxes", "pictures"] | None,
    typer.Option(
        help="Of COCO and Pascal VOC: regions, boxes (regions without their outlines), or pictures with the labels of "
        "all their regions (default: regions)."
    ),
]
Balance = Annotated[
    Literal["length", "mass"] | None,
    typer.Option(
        help="What is equal for descriptions side by side: length, or mass for kernels (default: length; mass with "
        "--components)."
    ),
]
Components = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Bring descriptions to N dense kernel components (default: rows stay as they are).",
    ),
]
Landmarks = Annotated[
    int | None,
    typer.Option(
        min=1, help="Rows that components compare all others with (default: all up to 4,096, else 4 per component)."
    ),
]
Normalise = Annotated[
    Literal["imagenet", "clip", "symmetric", "unit", "bytes"] | None,
    typer.Option(help="Values that an ONNX model was trained with (default: imagenet)."),
]
Output = Annotated[str | None, typer.Option(metavar="NAME", help="Output of an ONNX model (default: its first).")]
Rate = Annotated[
    int | None,
    typer.Option(
        min=1_000,
        max=192_000,
        help="Samples a second at which sounds are described (default: the collection's, at most 22,050).",
    ),
]
Augment = Annotated[
    int | None,
    typer.Option(min=0, help="Extra flipped, cropped, shifted versions of each picture (default: 0)."),
]
Crop = Annotated[
    float | None,
    typer.Option(
        parser=parse_positive,
        metavar="SHARE",
        help="Centred share of a picture's sides that is described; the rest is margin for --augment (default: 1).",
    ),
]

RelationName = Literal[
    "is-a", "instance-of", "part-of", "member-of", "substance-of",
    "has-kind", "has-instance", "has-part", "has-member", "has-substance",
]  # fmt: skip
Table = Annotated[
    Path | None,
    typer.Option(help="What labels mean, by hand: label TAB id a line, as `wsabie labels match` writes them."),
]
Candidates = Annotated[
    Path | None,
    typer.Option(help="Only these labels: a file, one a line (such as those that no training row had), or a model."),
]
WordVectors = Annotated[
    Path | None,
    typer.Option(help="Word vectors (word2vec, GloVe, fastText .vec), for what labels mean."),
]
LabelKnowledge = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="<path>",
        help="WordNet's files or others that say which terms a label has; several complete each other.",
    ),
]


def find_stated_options(**options: Any) -> dict[str, Any]:
    """Return the options that the command line states."""
    return {name: value for name, value in options.items() if value is not None}


def refuse_options(options: dict[str, Any], subject: str) -> None:
    """Refuse stated options that do not apply."""
    for name in options:
        flag = name.replace("_", "-")
        raise InputError(f"--{flag} says {subject}; leave --{flag} out")


def collect_feature_options(options: dict[str, Any]) -> dict[str, Any]:
    """Rename options of the command line to parameters of feature extractors."""
    return {
        f"n_{name}" if name in ("components", "landmarks", "terms") else name: value for name, value in options.items()
    }


class Command(TyperCommand):
    """Command that checks its paths, and shows `INPUTS` instead of `INPUTS <list[Path]>` in its help."""

    def invoke(self, ctx: Any) -> Any:
        for value in ctx.params.values():
            for path in value if isinstance(value, list | tuple) else (value,):
                if isinstance(path, Path):
                    check_path(path)
        return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if parameter.nargs == -1:
                vars(parameter)["display_type_rich"] = lambda ctx: None
        return parameters


def allow_unreadable_paths(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command accept unreadable paths; the code that opens them reports the error."""
    for hint in get_type_hints(command, include_extras=True).values():
        for parameter in getattr(hint, "__metadata__", ()):
            parameter.readable = False
    return command
