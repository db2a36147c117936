"""Commands that make data: features, shards, split, hierarchy, pairs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.cli.inputs.options import (
    Augment,
    Balance,
    Components,
    Crop,
    Data,
    Describe,
    Items,
    Json,
    Landmarks,
    Normalise,
    OptionalSeed,
    Output,
    Rate,
    RayAddress,
    Rejects,
    RelationName,
    Seed,
    Size,
    SplitBy,
    Strict,
    Table,
    Terms,
    Threads,
    find_stated_options,
    refuse_options,
)

Kind = Annotated[
    Literal["images", "audio", "text", "onnx", "kpca"],
    typer.Argument(
        metavar="KIND", help="images, audio, text, onnx, or kpca: few dense features from many sparse ones."
    ),
]
Src = Annotated[
    list[Path],
    typer.Argument(
        metavar="SRC",
        help="Pictures, sounds or documents, as every other command takes them; after onnx, the ONNX file comes "
        "first; for kpca rows.",
    ),
]
Out = Annotated[Path, typer.Option(help="Parquet file to write; it is a source for every other command.")]
Weighting = Annotated[Literal["counts", "tfidf"] | None, typer.Option(help="counts or tfidf (default: counts).")]
MinCount = Annotated[
    int | None, typer.Option(min=1, help="text: leave out words that are found less often (default: 2).")
]
Hashing = Annotated[bool, typer.Option("--hashing", help="text: no dictionary, --terms columns of hashed words.")]
Dictionary = Annotated[
    Path | None,
    typer.Option(
        help="Use this saved dictionary, or that of this model; otherwise one is learned and saved beside OUT."
    ),
]
Dim = Annotated[int | None, typer.Option(min=1, help="kpca: components (default: 1,024, fewer for few rows).")]
MapFolder = Annotated[
    Path | None,
    typer.Option("--map", help="kpca: use this saved map; otherwise one is learned and saved beside OUT."),
]


def features(
    kind: Kind,
    src: Src,
    out: Out,
    items: Items = None,
    describe: Describe = None,
    balance: Balance = None,
    components: Components = None,
    terms: Terms = None,
    size: Size = None,
    weighting: Weighting = None,
    min_count: MinCount = None,
    hashing: Hashing = False,
    dictionary: Dictionary = None,
    augment: Augment = None,
    crop: Crop = None,
    dim: Dim = None,
    landmarks: Landmarks = None,
    map_folder: MapFolder = None,
    normalise: Normalise = None,
    output: Output = None,
    rate: Rate = None,
    threads: Threads = None,
    ray: RayAddress = None,
    seed: OptionalSeed = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Extract features of pictures, sounds or documents as rows; the same command resumes a stopped run.

    Or, with kpca, bring sparse rows to few dense dimensions by kernel PCA with the histogram intersection kernel.
    """
    from wsabie.cli.data.features import require_one_path, run_features, split_network_path

    if kind == "kpca":
        from wsabie.cli.data.kernel_pca import run_kernel_pca

        picture_options = find_stated_options(
            describe=describe, balance=balance, components=components, terms=terms, size=size, weighting=weighting,
            min_count=min_count, hashing=hashing or None, dictionary=dictionary, augment=augment, crop=crop,
            normalise=normalise, output=output, rate=rate, items=items,
        )  # fmt: skip
        refuse_options(
            picture_options, "how pictures, sounds or documents are described, and kpca takes rows of features"
        )
        map_options = find_stated_options(n_components=dim, n_landmarks=landmarks, seed=seed)
        run_kernel_pca(require_one_path(src), out, map_options, map_folder, threads, strict, rejects, json, ray)
        return
    refuse_options(find_stated_options(dim=dim, map=map_folder), "how rows are mapped; it belongs to kpca")

    pictures, network = split_network_path(kind, src, describe)
    extractor_options = find_stated_options(
        describe=network or describe, balance=balance, n_terms=terms, size=size, weighting=weighting
    )
    extractor_options |= find_stated_options(
        min_count=min_count,
        hashing=hashing or None,
        n_components=components,
        n_landmarks=landmarks,
        crop=crop,
        normalise=normalise,
        output=output,
        rate=rate,
        seed=seed,
    )
    run_features(
        kind, pictures, out, extractor_options, dictionary, augment or 0, threads, strict, rejects, json, items, ray
    )


def shards(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Rows of features: Parquet, svmlight/XC, Mulan ARFF or others. Pictures, sounds and documents are "
            "described first, by `wsabie features`.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the shards; it is a source for every other command.")],
    rows: Annotated[
        int, typer.Option(min=1, max=1 << 24, help="Rows of a shard, about; fewer where they are long.")
    ] = 1 << 16,
    values: Annotated[
        Literal["exact", "half"],
        typer.Option(
            help="exact: the smallest type of numbers that holds every value as it is; half: two bytes a value, with "
            "an error of one part in 2,048 at most."
        ),
    ] = "exact",
    seed: Seed = 0,
    ray: RayAddress = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Write rows as shards, to train on more than fits into memory; the same command resumes a stopped run."""
    from wsabie.cli.data.shards import run_shards
    from wsabie.workflows.shards.sorted_runs import ShardOptions

    run_shards(data, out, ShardOptions(rows, values, seed), strict, rejects, json, ray)


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
    relations: Annotated[
        Path | None,
        typer.Option(
            help="Related labels, object TAB part a line: as many as can be get two pictures on every side (in place "
            "of --by)."
        ),
    ] = None,
    seed: Seed = 0,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Split rows, or a declaration, into train, validation and test without leaks; list dropped rows."""
    from wsabie.cli.data.split import run_split
    from wsabie.cli.models.spaces import is_declaration

    if is_declaration(data):
        from wsabie.cli.workflows.space_workflows import run_split_declaration

        unsupported = find_stated_options(
            by=None if by == "auto" else by, least=least, relations=relations, **{"drop-near": drop_near}
        )
        refuse_options(
            unsupported, "how rows are split, and things of a TOML file are dealt whole, by groups if there are any"
        )
        shares = 0.1 if valid is None else valid, 0.1 if test is None else test
        run_split_declaration(data, out, shares, seed, strict, rejects, json)
        return
    run_split(data, out, valid, test, by, least, drop_near, seed, strict, rejects, json, relations)


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
    """Mine an is-a list from text: "a toad is an amphibian"."""
    from wsabie.cli.inputs.hierarchies import run_hierarchy

    run_hierarchy(src, out, min_count, labels, json)


def pairs(
    kind: Annotated[
        Literal["from-listeners", "from-wordnet"],
        typer.Argument(
            metavar="KIND",
            help="from-listeners: songs that the same people hear; from-wordnet: wheel and car, dolphin and whale.",
        ),
    ],
    src: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="Lines of user TAB song TAB plays, or gzip of them; or WordNet's folder, or Open Images' hierarchy.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="TSV to write: id, id, common listeners; a relation's pairs.")],
    tracks: Annotated[
        Path | None,
        typer.Option(help="unique_tracks.txt of the Million Song Dataset: pairs are of its tracks, not of songs."),
    ] = None,
    least: Annotated[int | None, typer.Option(min=1, help="Common listeners of a pair, at least (default: 5).")] = None,
    cosine: Annotated[
        float | None, typer.Option(min=0, max=1, help="Cosine of the listeners of a pair, at least (default: 0).")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Partners that a song may choose, the highest cosines (default: 20).")
    ] = None,
    heavy: Annotated[
        int | None,
        typer.Option(min=2, help="Of a user with more songs, this many count, drawn at random (default: 500)."),
    ] = None,
    relation: Annotated[
        RelationName | None, typer.Option(help="Of WordNet: which relation (default: part-of; the part comes first).")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Of WordNet: pairs of these labels, not of synsets: one label a line, or a model folder."),
    ] = None,
    table: Table = None,
    inherit: Annotated[
        bool, typer.Option("--inherit", help="With --labels: what is said of vehicles is said of cars too.")
    ] = False,
    seed: OptionalSeed = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Make pairs for a relation of a space, from listeners or from WordNet."""
    from wsabie.cli.data.pairs import run_listener_pairs, run_wordnet_pairs

    listener_options = find_stated_options(
        tracks=tracks, least=least, cosine=cosine, top=top, heavy=heavy, seed=seed, rejects=rejects
    )
    listener_options |= find_stated_options(strict=strict or None)
    wordnet_options = find_stated_options(relation=relation, labels=labels, table=table, inherit=inherit or None)
    if kind == "from-wordnet":
        refuse_options(listener_options, "how listeners are read or counted, and WordNet has none")
        if labels is None:
            refuse_options(
                find_stated_options(table=table, inherit=inherit or None), "what labels mean, and there is no --labels"
            )
        run_wordnet_pairs(src, out, relation or "part-of", labels, table, inherit, json)
        return
    refuse_options(wordnet_options, "which pairs of WordNet are meant")
    counts = 5 if least is None else least, cosine or 0.0, 20 if top is None else top, 500 if heavy is None else heavy
    run_listener_pairs(src, out, tracks, *counts, seed or 0, strict, rejects, json)
