"""Commands of search: search, index."""

from pathlib import Path
from typing import Annotated

import typer

from wsabie.cli.inputs.options import Json, LabelKind, Model, RecallTarget, Rejects, Seed, Strict, Table, Threads
from wsabie.core.errors import InputError


def search(
    model: Model,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A label, or a word that means one.")],
    within: Annotated[
        list[Path],
        typer.Option("--in", metavar="DATA", help="What to search: any data that the model takes; several are joined."),
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="How many of each group.")] = 10,
    related: Annotated[int, typer.Option(min=0, help="How many related labels at most.")] = 8,
    knowledge: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Finds labels by synonyms, translations and kinds, and related ones: WordNet's folder, Open Images' "
            "hierarchy, translations or an is-a list; several complete each other.",
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(metavar="RELATION=FILE", help="A list of id TAB id that states a relation: has-part=parts.tsv."),
    ] = None,
    table: Table = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="Word vectors, by which a word that is known of nothing finds its nearest label."),
    ] = None,
    trained: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="MODEL",
            help="Model of objects and parts, or space with a relation of labels, that finds related ones.",
        ),
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="Which relation of a space in --trained (default: its first).")
    ] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Of things of one group of the collection, only the best.")
    ] = False,
    points: Annotated[
        Path | None, typer.Option(help="Folder that keeps the encoded collection for the next search.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Page (.html) or sheet (.png) of the pictures.")] = None,
    threads: Threads = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Find pictures by a text: those of its label, then those of related labels, grouped and explained."""
    from wsabie.cli.search.search import SearchRequest, run_search

    if not (knowledge or pairs) and table is not None:
        raise InputError("--table says what labels mean in --knowledge; add it, or leave --table out")
    if relation is not None and not trained:
        raise InputError("--relation is one of a space; name that space with --trained, or leave --relation out")
    run_search(
        SearchRequest(
            model, query, tuple(within), k, related,
            knowledge=tuple(knowledge or ()), pairs=tuple(pairs or ()), table=table, vectors=vectors,
            trained=tuple(trained or ()), relation=relation, distinct=distinct, points=points, out=out,
            threads=threads, strict=strict, rejects=rejects, json=json,
        )
    )  # fmt: skip


def index(
    model: Model,
    kind: LabelKind = "ivf",
    recall: RecallTarget = 0.95,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Data like what will be asked about, to measure on (default: the labels)."),
    ] = None,
    threads: Threads = None,
    seed: Seed = 0,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Make an index of a model's labels, measured against the exact search; `annotate` uses it."""
    from wsabie.cli.search.index import run_index
    from wsabie.storage.atomic_files import lock_folder

    with lock_folder(model):  # labels that change meanwhile would leave it an index of others
        run_index(model, kind, recall, queries, threads, seed, strict, rejects, json)
