"""All commands with their options. Work is imported when a command runs, so that `--help` stays quick."""

from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from wsabie.base.errors import InputError


def _positive(text: str) -> float:
    """A number that a step or a norm can be."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise typer.BadParameter(f"{text} is no number above 0.")
    return number


By = Literal["auto", "group", "row", "label", "time"]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Pictures in a folder, Parquet, svmlight/XC, Mulan ARFF, fastText text, or pairs in a TSV."
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, as `wsabie train --model` wrote it.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="Threads (default: all cores).")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]
GivenSeed = Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random (default: 0).")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad input instead of listing it.")]
Rejects = Annotated[Path | None, typer.Option(help="Write what was skipped to this file (JSON lines).")]
Top = Annotated[int, typer.Option("-k", min=1, help="How many labels.")]
AllowOverlap = Annotated[bool, typer.Option("--allow-overlap", help="Judge training rows too, instead of refusing.")]
Terms = Annotated[
    int | None, typer.Option(min=2, help="Visual terms in the dictionary (default: 10,000, fewer for few pictures).")
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
        "terms).",
    ),
]
Balance = Annotated[
    Literal["length", "mass"] | None,
    typer.Option(help="What is equal for descriptions side by side: length, or mass for kernels (default: length)."),
]
Normalise = Annotated[
    Literal["imagenet", "clip", "symmetric", "unit", "bytes"] | None,
    typer.Option(help="Values that an ONNX model was trained with (default: imagenet)."),
]
Output = Annotated[str | None, typer.Option(metavar="NAME", help="Output of an ONNX model (default: its first).")]
Augment = Annotated[
    int | None,
    typer.Option(min=0, help="Extra flipped, cropped, shifted versions of each picture (default: 0)."),
]
Crop = Annotated[
    float | None,
    typer.Option(
        parser=_positive,
        metavar="SHARE",
        help="Centred share of a picture's sides that is described; the rest is margin for --augment (default: 1).",
    ),
]


def register(app: typer.Typer) -> None:
    """Add every command to the application."""
    for command in (train, evaluate, annotate, neighbours, compare, features, split, demo, info):
        for hint in get_type_hints(command, include_extras=True).values():
            for parameter in getattr(hint, "__metadata__", ()):
                parameter.readable = False  # a file that may not be read is no wrong usage: what opens it says so
        app.command()(command)


def train(
    data: Data,
    model: Annotated[Path, typer.Option(help="Folder for the model.")],
    valid: Annotated[
        Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside.")
    ] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, help="Fraction of rows (whole groups) that choose the epoch (default: 0.1)."),
    ] = None,
    min_rows: MinRows = 1,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with any parameters of the estimator (dim = 50); options here go before it."),
    ] = None,
    dim: Annotated[int | None, typer.Option(min=1, max=4096, help="Dimensions of the space (default: 100).")] = None,
    loss: Annotated[Literal["warp", "auc"] | None, typer.Option(help="warp or auc (default: warp).")] = None,
    similarity: Annotated[
        Literal["dot", "euclidean", "cosine"] | None, typer.Option(help="dot, euclidean or cosine (default: dot).")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the pairs (default: by size).")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(parser=_positive, metavar="NUMBER", help="First step (default: by size).")
    ] = None,
    max_norm: Annotated[
        float | None,
        typer.Option(parser=_positive, metavar="NUMBER", help="Limit on the norm of every row (default: 1.5)."),
    ] = None,
    describe: Describe = None,
    terms: Terms = None,
    size: Size = None,
    augment: Augment = None,
    crop: Crop = None,
    normalise: Normalise = None,
    output: Output = None,
    threads: Threads = None,
    seed: GivenSeed = None,
    hogwild: Annotated[bool, typer.Option("--hogwild", help="Lock-free threads instead of reproducible ones.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from where a stopped run was.")] = False,
    log: Annotated[
        Path | None, typer.Option(help="Append the figures of every epoch to this file (JSON lines).")
    ] = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Train a model on tagged data; new data is then annotated with `wsabie annotate`."""
    from wsabie.faces.cli.settings_file import read_parameters
    from wsabie.faces.cli.training import Asked, train_command
    from wsabie.models.wsabie import Wsabie
    from wsabie.studies.training import Recipe

    parameters: dict[str, Any] = {} if config is None else read_parameters(config)
    parameters |= _given(
        dim=dim,
        loss=loss,
        similarity=similarity,
        epochs=epochs,
        learning_rate=learning_rate,
        max_norm=max_norm,
        threads=threads,
        seed=seed,
        deterministic=False if hogwild else None,
    )
    if valid is not None and hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")
    pictures = _given(
        describe=describe, n_terms=terms, size=size, augment=augment, crop=crop, normalise=normalise, output=output
    )
    sides = _given(hold_out=hold_out)
    recipe = Recipe(str(data), model, Wsabie(**parameters), pictures, min_rows=min_rows, resume=resume, **sides)
    train_command(Asked(data, valid, recipe, log, rejects, strict=strict, json=json))


def evaluate(
    model: Model,
    data: Data,
    allow_overlap: AllowOverlap = False,
    threads: Threads = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Measure a model on data with known labels: p@k, recall@k, MAP, AUC, nDCG, coverage, with intervals."""
    from wsabie.faces.cli.evaluating import evaluate_command

    evaluate_command(model, data, allow_overlap, threads, strict, rejects, json)


def annotate(
    model: Model,
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUTS", help="Pictures, folders, or data in any source format.")
    ],
    k: Top = 10,
    explain: Annotated[
        Path | None, typer.Option(help="Folder for heat maps: where in the picture the best label is seen.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Explain this label instead of the best one.")] = None,
    threads: Threads = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Give new pictures or rows their best labels."""
    from wsabie.faces.cli.using import annotate_command

    annotate_command(model, inputs, k, explain, label, threads, strict, rejects, json)


def neighbours(
    model: Model,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A label of the model.")],
    k: Top = 10,
    json: Json = False,
) -> None:
    """The labels nearest to a label: synonyms, translations, near misses."""
    from wsabie.faces.cli.using import neighbours_command

    neighbours_command(model, label, k, json)


def compare(
    data: Data,
    models: Annotated[
        str, typer.Option(help="Comma-separated: wsabie, nearest, popularity, one-vs-rest.")
    ] = "wsabie,nearest,popularity,one-vs-rest",
    by: Annotated[
        By, typer.Option(help="How to split: group, row, label or time (default: group if there are groups).")
    ] = "auto",
    test: Annotated[Path | None, typer.Option(help="Test data; otherwise a tenth is split off.")] = None,
    allow_overlap: AllowOverlap = False,
    min_rows: MinRows = 1,
    describe: Describe = None,
    terms: Terms = None,
    size: Size = None,
    threads: Threads = None,
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """One table: every model and baseline on the same split, with time and memory."""
    from wsabie.faces.cli.comparing import compare_command

    pictures = _given(describe=describe, n_terms=terms, size=size)
    compare_command(
        data, models, by, test, allow_overlap, min_rows, pictures, threads, seed, report, strict, rejects, json
    )


def features(
    kind: Annotated[
        Literal["images", "onnx"],
        typer.Argument(metavar="KIND", help="images, or onnx (audio and text: later versions)."),
    ],
    src: Annotated[
        list[Path],
        typer.Argument(
            metavar="SRC", help="Folder of pictures, or Parquet with pictures; after onnx, the ONNX file comes first."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Parquet file to write; it is a source for every other command.")],
    describe: Describe = None,
    balance: Balance = None,
    terms: Terms = None,
    size: Size = None,
    weighting: Annotated[
        Literal["counts", "tfidf"] | None, typer.Option(help="counts or tfidf (default: counts).")
    ] = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            help="Use this saved dictionary, or that of this picture model; otherwise one is learned and saved beside "
            "OUT."
        ),
    ] = None,
    augment: Augment = None,
    crop: Crop = None,
    normalise: Normalise = None,
    output: Output = None,
    threads: Threads = None,
    seed: GivenSeed = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Describe pictures and write them as rows; a stopped run goes on where it was."""
    from wsabie.faces.cli.describing import features_command, pictures_and_network

    pictures, network = pictures_and_network(kind, src, describe)
    given = _given(describe=network or describe, balance=balance, n_terms=terms, size=size, weighting=weighting)
    given |= _given(crop=crop, normalise=normalise, output=output, seed=seed)
    features_command(pictures, out, given, dictionary, augment or 0, threads, strict, rejects, json)


def split(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for train, valid and test.")],
    valid: Annotated[float, typer.Option(min=0, max=1, help="Fraction of validation rows.")] = 0.1,
    test: Annotated[float, typer.Option(min=0, max=1, help="Fraction of test rows.")] = 0.1,
    by: Annotated[By, typer.Option(help="group, row, label or time (default: group if there are groups).")] = "auto",
    drop_near: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Test and validation rows at least this similar (cosine) to a training row are left out.",
        ),
    ] = None,
    seed: Seed = 0,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Split rows into train, validation and test without leaks, and list what was left out."""
    from wsabie.faces.cli.splitting import split_command

    split_command(data, out, valid, test, by, drop_near, seed, strict, rejects, json)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the report.")] = Path("wsabie-demo"),
    part: Annotated[
        Literal["emoji", "drawings", "all"], typer.Option(help="emoji, drawings, or all that is installed.")
    ] = "all",
    threads: Threads = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train on the bundled sample collection, compare with baselines, write a report."""
    from wsabie.faces.cli.demonstrating import demo_command

    demo_command(out, part, threads, seed, json)


def info(
    model: Model,
    epochs: Annotated[bool, typer.Option("--epochs", help="Also the figures of every epoch.")] = False,
    json: Json = False,
) -> None:
    """What a model is: sizes, parameters, training data, last figures."""
    from wsabie.faces.cli.using import info_command

    info_command(model, epochs, json)


def _given(**options: Any) -> dict[str, Any]:
    """The options that the command line names."""
    return {name: value for name, value in options.items() if value is not None}
