"""Commands about meanings of labels and words: labels, vectors."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.cli.inputs.options import Json, OptionalSeed, Rejects, Strict, Table, find_stated_options, refuse_options
from wsabie.core.errors import InputError

Kind = Annotated[
    Literal["about", "match", "under", "pairs", "within"],
    typer.Argument(
        metavar="KIND",
        help="about: what a name may mean; match: which synset each label means; under: the labels that a name "
        "stands for; pairs: the labels that a relation joins; within: what is at most NAME hops from labels.",
    ),
]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="A name or an id for about and under; a relation for pairs, such as has-part; hops for within.",
    ),
]
Knowledge = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="<path>",
        help="WordNet's folder, Open Images' hierarchy, translations or an is-a list; several complete each other.",
    ),
]
Pairs = Annotated[
    list[str] | None,
    typer.Option(metavar="RELATION=FILE", help="A list of id TAB id that states a relation: has-part=parts.tsv."),
]
Labels = Annotated[Path | None, typer.Option(help="For all but about: a file of one label a line, or a model folder.")]
Out = Annotated[
    Path | None,
    typer.Option(help="match, pairs, within: TSV to write: label, id, how, name, gloss; label, label; id, name."),
]
Levels = Annotated[int | None, typer.Option(min=1, help="under: steps down at most.")]
Inherit = Annotated[bool, typer.Option("--inherit", help="under, pairs: also parts of what is more general.")]
Without = Annotated[
    Path | None, typer.Option(help="pairs: id TAB id lines of pairs that do not hold, in either order.")
]


def labels(
    kind: Kind,
    name: Name = None,
    knowledge: Knowledge = None,
    pairs: Pairs = None,
    labels: Labels = None,
    table: Table = None,
    out: Out = None,
    levels: Levels = None,
    inherit: Inherit = False,
    without: Without = None,
    json: Json = False,
) -> None:
    """Look up labels in WordNet and other knowledge: meanings, synsets, kinds and parts."""
    from wsabie.cli.data.labels import run_about, run_match, run_pairs, run_under, run_within
    from wsabie.cli.inputs.knowledge_files import load_knowledge
    from wsabie.storage.output_checks import check_output_paths

    if not knowledge and not pairs:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    if kind != "under":
        refuse_options(find_stated_options(levels=levels), "what lies under a name; it belongs to under")
    if kind not in ("under", "pairs"):
        refuse_options(
            find_stated_options(inherit=inherit or None), "what is more general; it belongs to under and pairs"
        )
    if kind != "pairs":
        refuse_options(find_stated_options(without=without), "which pairs do not hold; it belongs to pairs")
    if kind not in ("match", "pairs", "within"):
        refuse_options(find_stated_options(out=out), "where to write; it belongs to match, pairs and within")
    if kind != "match":
        if name is None:
            missing = {"pairs": "relation? write it, such as has-part,", "within": "number of hops? write it"}
            raise InputError(f"which {missing.get(kind, 'name? write it')} behind `wsabie labels {kind}`")
    elif name is not None:
        raise InputError(f"match takes labels from --labels FILE or MODEL; leave {name!r} out")
    if kind == "about":
        refuse_options(
            find_stated_options(labels=labels, table=table), "which labels there are; it belongs to the others"
        )
    elif labels is None:
        raise InputError("--labels names a file of one label a line, or a model folder; add it")
    written: Literal["pairs", "labels"] = "pairs" if kind == "pairs" else "labels"
    check_output_paths((written, out), inputs=(*(knowledge or ()), labels, table, without))
    graph = load_knowledge(knowledge or (), pairs or ())
    if labels is None:
        run_about(graph, name or "", json)
    elif kind == "match":
        run_match(graph, labels, table, out, json)
    elif kind == "within":
        run_within(graph, name or "", labels, table, out, json)
    elif kind == "pairs":
        run_pairs(graph, name or "", labels, table, inherit, without, out, json)
    else:
        run_under(graph, name or "", labels, table, levels, inherit, json)


def vectors(
    kind: Annotated[
        Literal["train", "info", "near"],
        typer.Argument(
            metavar="KIND",
            help="train: learn vectors from text (skip-gram); info: what a file holds; near: words nearest to a name.",
        ),
    ],
    src: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="Text or documents to learn from; else word vectors of word2vec, GloVe or fastText, text or binary.",
        ),
    ],
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="near: a word or several.")] = None,
    out: Annotated[Path | None, typer.Option(help="train: file to write, in word2vec's text form.")] = None,
    dim: Annotated[int | None, typer.Option(min=1, max=4096, help="train: dimensions (default: 100).")] = None,
    window: Annotated[
        int | None, typer.Option(min=1, max=1000, help="train: words to either side that count (default: 5).")
    ] = None,
    min_count: Annotated[
        int | None, typer.Option(min=1, help="train: leave out words that are found less often (default: 5).")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="train: passes over the text (default: 5).")] = None,
    phrases: Annotated[
        int | None,
        typer.Option(min=0, max=4, help="train: how often neighbours such as New York are joined (default: 1)."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="train: threads; only one is reproducible (default: 1)."),
    ] = None,
    seed: OptionalSeed = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="near: how many (default: 10).")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="info, near: only the first words of the file.")] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="info, near: where the mapped table is kept (default: beside SRC, SRC.npy)."),
    ] = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Learn word vectors from your own text, or inspect a file of them."""
    from wsabie.cli.data.vectors import run_learn_vectors, run_near_words, run_vectors_info

    learning = find_stated_options(
        dim=dim, window=window, min_count=min_count, epochs=epochs, phrases=phrases, threads=threads, seed=seed
    )
    if kind == "train":
        refuse_options(find_stated_options(k=k, limit=limit, cache=cache), "how vectors are read")
        if name is not None or out is None:
            raise InputError("wsabie vectors train takes one SRC and --out FILE; give both, and nothing else")
        run_learn_vectors(src, out, learning, strict, rejects, json)
        return
    refuse_options({**find_stated_options(out=out), **learning}, "how vectors are learnt; it belongs to train")
    if kind == "info":
        refuse_options(find_stated_options(k=k), "how many words are shown; it belongs to near")
        if name is not None:
            raise InputError(f"info looks at a file as a whole; leave {name!r} out, or write near")
        run_vectors_info(src, cache, limit, strict, rejects, json)
        return
    if name is None:
        raise InputError("near to which word? write it behind the file")
    run_near_words(src, name, k or 10, cache, limit, strict, rejects, json)
