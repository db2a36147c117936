"""All commands with their options. Work is imported when a command runs, so that `--help` stays quick."""

from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from wsabie.base.errors import InputError
from wsabie.models.systems import SYSTEMS
from wsabie.studies.entrants import NAMES, USUAL


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
SplitBy = Literal["auto", "group", "row", "label", "time", "one-label"]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Pictures in a folder, Parquet, svmlight/XC, Mulan ARFF, fastText text, pairs in a TSV, or a published "
        "collection.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, as `wsabie train --model` wrote it.")]
Kind = Annotated[str, typer.Option(help=f"Kind of model: {', '.join(SYSTEMS)}.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="Threads (default: all cores).")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]
GivenSeed = Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random (default: 0).")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad input instead of listing it.")]
Rejects = Annotated[Path | None, typer.Option(help="Write what was skipped to this file (JSON lines).")]
Top = Annotated[int, typer.Option("-k", min=1, help="How many labels.")]
AllowOverlap = Annotated[bool, typer.Option("--allow-overlap", help="Judge training rows too, instead of refusing.")]
Hierarchies = Annotated[
    list[Path] | None,
    typer.Option(
        help="Is-a list (child TAB parent, WordNet's files, a collection with categories) that says which labels are "
        "siblings; several complete each other."
    ),
]
ParentFirst = Annotated[bool, typer.Option("--parent-first", help="Pairs in --hierarchy name the parent first.")]
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
    for command in (
        train,
        evaluate,
        annotate,
        neighbours,
        compare,
        reproduce,
        tune,
        features,
        split,
        demo,
        info,
        hierarchy,
    ):
        for hint in get_type_hints(command, include_extras=True).values():
            for parameter in getattr(hint, "__metadata__", ()):
                parameter.readable = False  # a file that may not be read is no wrong usage: what opens it says so
        app.command()(command)


def train(
    data: Data,
    model: Annotated[Path, typer.Option(help="Folder for the model.")],
    kind: Kind = "wsabie",
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
    ensemble: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Train N models and add up their scores (default: one model)."),
    ] = None,
    ensemble_by: Annotated[
        Literal["seed", "rows", "columns"] | None,
        typer.Option(help="How the N models differ: seed, rows (bags) or columns (kinds of features) (default: seed)."),
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
    from wsabie.faces.cli.training import Asked, estimator_of, refuse_without_epochs, train_command
    from wsabie.models.systems import system_of
    from wsabie.studies.training import Recipe

    run = _given(threads=threads, seed=seed)
    trained = system_of(kind).trained
    refuse_without_epochs(kind, {"valid": valid, "hold-out": hold_out, "log": log})
    parameters: dict[str, Any] = {} if config is None else read_parameters(config, kind)
    parameters = {name: value for name, value in parameters.items() if name not in run}
    parameters |= _given(
        dim=dim,
        loss=loss,
        similarity=similarity,
        epochs=epochs,
        learning_rate=learning_rate,
        max_norm=max_norm,
        deterministic=False if hogwild else None,
    )
    if valid is not None and hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")
    pictures = _given(
        describe=describe, n_terms=terms, size=size, augment=augment, crop=crop, normalise=normalise, output=output
    )
    sides = _given(hold_out=hold_out if trained else 0.0)
    estimator = estimator_of(kind, parameters, run, ensemble, ensemble_by)
    rest: dict[str, Any] = {"min_rows": min_rows, "resume": resume, "system": kind, "given": run, **sides}
    recipe = Recipe(str(data), model, estimator, pictures, **rest)
    train_command(Asked(data, valid, recipe, log, rejects, strict=strict, json=json))


def evaluate(
    model: Model,
    data: Data,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    allow_overlap: AllowOverlap = False,
    exclude: Annotated[
        Path | None,
        typer.Option(help="Labels that a row has in this data are no candidates: the training data of --by one-label."),
    ] = None,
    threads: Threads = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Measure a model on data with known labels: p@k, recall@k, MAP, AUC, nDCG, coverage, with intervals."""
    from wsabie.faces.cli.evaluating import evaluate_command

    evaluate_command(model, data, allow_overlap, exclude, threads, strict, rejects, json, hierarchy, parent_first)


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
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    threads: Threads = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Give new pictures or rows their best labels."""
    from wsabie.faces.cli.using import annotate_command

    annotate_command(model, inputs, k, explain, label, threads, strict, rejects, json, hierarchy, parent_first)


def neighbours(
    model: Model,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A label of the model.")],
    k: Top = 10,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    json: Json = False,
) -> None:
    """The labels nearest to a label: synonyms, translations, near misses."""
    from wsabie.faces.cli.using import neighbours_command

    neighbours_command(model, label, k, json, hierarchy, parent_first)


def compare(
    data: Data,
    models: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(NAMES)}.")] = ",".join(USUAL),
    by: Annotated[
        By, typer.Option(help="How to split: group, row, label or time (default: group if there are groups).")
    ] = "auto",
    test: Annotated[Path | None, typer.Option(help="Test data; otherwise a tenth is split off.")] = None,
    allow_overlap: AllowOverlap = False,
    min_rows: MinRows = 1,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
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
        data,
        models,
        by,
        test,
        allow_overlap,
        min_rows,
        hierarchy,
        parent_first,
        pictures,
        threads,
        seed,
        report,
        strict,
        rejects,
        json,
    )


def tune(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the trials, the model and the page; a second run goes on.")],
    kind: Annotated[str, typer.Option(help="Kind of model, as in `wsabie train`.")] = "wsabie",
    valid: Annotated[
        Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside.")
    ] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.9, help="Fraction of rows (whole groups) that judge trials (default: 0.1)."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Test data: the best setting and the defaults are judged on them at the end.")
    ] = None,
    allow_overlap: AllowOverlap = False,
    metric: Annotated[Literal["MAP", "p@1", "p@10"], typer.Option(help="MAP, p@1 or p@10.")] = "MAP",
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials in all (default: 30, or no limit with --minutes).")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            parser=_positive, metavar="NUMBER", help="Minutes for all trials; the last training comes on top."
        ),
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Give a parameter this value in all trials.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with parameters, and with a table [space] of what to try.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Train all trials to their end, also those behind.")] = False,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Train the model that is saved on the validation rows too.")
    ] = False,
    min_rows: MinRows = 1,
    terms: Terms = None,
    size: Size = None,
    augment: Augment = None,
    crop: Crop = None,
    threads: Threads = None,
    seed: Seed = 0,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Search for better parameters on validation rows; the best setting becomes a model."""
    from wsabie.faces.cli.tuning import Asked, read_changes, tune_command
    from wsabie.models.systems import build
    from wsabie.studies.spaces import search
    from wsabie.studies.training import Recipe
    from wsabie.studies.tuned import Plan

    if valid is not None and hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")
    pictures = _given(n_terms=terms, size=size, augment=augment, crop=crop)
    searched = search(read_changes(config, fix or []), kind)
    estimator = build(kind, threads=threads, seed=seed)
    rest: dict[str, Any] = {"min_rows": min_rows, "resume": True, "system": kind, **_given(hold_out=hold_out)}
    recipe = Recipe(str(data), out / "model", estimator, pictures, **rest)
    trials = 30 if trials is None and minutes is None else trials
    plan = Plan(searched, metric, trials, minutes, not full, all_rows, allow_overlap)
    tune_command(Asked(data, valid, test, out, plan, recipe, rejects, strict=strict, json=json))


def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name of a table or figure; `list` shows all.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="sample (default), visterm:S (generated; also tiny, M, imagenet, web), or a collection's path."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results (default: wsabie-reproduce/TABLE).")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the pairs (default: by size).")] = None,
    min_rows: Annotated[
        int | None, typer.Option(min=1, help="Leave out labels with fewer training rows (default: 1; sample: 2).")
    ] = None,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    threads: Threads = None,
    seed: Seed = 0,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """A table or figure of the papers: their figures beside those of the data at hand, and what holds here."""
    from wsabie.faces.cli.reproducing import reproduce_command

    parameters = _given(epochs=epochs)
    reproduce_command(
        table, data, out, parameters, threads, seed, min_rows, hierarchy, parent_first, strict, rejects, json
    )


def features(
    kind: Annotated[
        Literal["images", "onnx", "kpca"],
        typer.Argument(
            metavar="KIND", help="images, onnx, or kpca: few dense features from many sparse ones (audio, text: later)."
        ),
    ],
    src: Annotated[
        list[Path],
        typer.Argument(
            metavar="SRC",
            help="Folder of pictures, or Parquet with pictures; after onnx, the ONNX file comes first; for kpca rows.",
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
    dim: Annotated[
        int | None, typer.Option(min=1, help="kpca: components (default: 1,024, fewer for few rows).")
    ] = None,
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=1, help="kpca: rows that all are compared with (default: all up to 4,096, else 4 per component)."
        ),
    ] = None,
    map_folder: Annotated[
        Path | None,
        typer.Option("--map", help="kpca: use this saved map; otherwise one is learned and saved beside OUT."),
    ] = None,
    normalise: Normalise = None,
    output: Output = None,
    threads: Threads = None,
    seed: GivenSeed = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Describe pictures and write them as rows; a stopped run goes on where it was.

    Or, with kpca, bring sparse rows to few dense dimensions by kernel PCA with the histogram intersection kernel.
    """
    from wsabie.faces.cli.describing import features_command, one_of, pictures_and_network

    if kind == "kpca":
        from wsabie.faces.cli.mapping import kpca_command

        pictures_given = _given(
            describe=describe, balance=balance, terms=terms, size=size, weighting=weighting, dictionary=dictionary,
            augment=augment, crop=crop, normalise=normalise, output=output,
        )  # fmt: skip
        _refuse_options(pictures_given, "how pictures are described, and kpca takes rows of features")
        wanted = _given(n_components=dim, n_landmarks=landmarks, seed=seed)
        kpca_command(one_of(src), out, wanted, map_folder, threads, strict, rejects, json)
        return
    _refuse_options(_given(dim=dim, landmarks=landmarks, map=map_folder), "how rows are mapped; it belongs to kpca")

    pictures, network = pictures_and_network(kind, src, describe)
    given = _given(describe=network or describe, balance=balance, n_terms=terms, size=size, weighting=weighting)
    given |= _given(crop=crop, normalise=normalise, output=output, seed=seed)
    features_command(pictures, out, given, dictionary, augment or 0, threads, strict, rejects, json)


def split(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for train, valid and test.")],
    valid: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Fraction of validation rows (default: 0.1; with one-label: 0)."),
    ] = None,
    test: Annotated[
        float | None, typer.Option(min=0, max=1, help="Fraction of test rows (default: 0.1; with one-label: 1).")
    ] = None,
    by: Annotated[
        SplitBy,
        typer.Option(
            help="group, row, label or time (default: group if there are groups); one-label: every row stays in "
            "training and one of its labels is the test."
        ),
    ] = "auto",
    least: Annotated[
        int | None, typer.Option(min=1, help="With one-label: rows with fewer labels keep them all (default: 2).")
    ] = None,
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

    split_command(data, out, valid, test, by, least, drop_near, seed, strict, rejects, json)


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


def hierarchy(
    kind: Annotated[Literal["from-text"], typer.Argument(metavar="KIND", help="from-text: mine running English text.")],
    src: Annotated[Path, typer.Argument(metavar="SRC", help="Plain text, or gzip of it.")],
    out: Annotated[Path, typer.Option(help="TSV to write: child, parent, count; --hierarchy reads it.")],
    min_count: Annotated[int, typer.Option(min=1, help="Leave out pairs that are said less often.")] = 1,
    labels: Annotated[
        Path | None, typer.Option(help="Keep these children: a file of one label a line, or a model folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Make an is-a list from what text says: "a toad is an amphibian"."""
    from wsabie.faces.cli.hierarchies import hierarchy_command

    hierarchy_command(src, out, min_count, labels, json)


def _given(**options: Any) -> dict[str, Any]:
    """The options that the command line names."""
    return {name: value for name, value in options.items() if value is not None}


def _refuse_options(given: dict[str, Any], because: str) -> None:
    """Refuse options that another kind of features has."""
    for flag in given:
        raise InputError(f"--{flag} says {because}; leave --{flag} out")
