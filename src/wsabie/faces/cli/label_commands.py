"""Commands about what labels and words mean: labels, vectors."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.options import GivenSeed, Json, Rejects, Strict, Table, refuse_options, stated


def labels(
    kind: Annotated[
        Literal["about", "match", "under", "pairs", "within"],
        typer.Argument(
            metavar="KIND",
            help="about: what a name may mean; match: which synset each label means; under: the labels that a name "
            "stands for; pairs: the labels that a relation joins; within: what is at most NAME hops from labels.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A name or an id for about and under; a relation for pairs, such as has-part; hops for within.",
        ),
    ] = None,
    knowledge: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="WordNet's folder, Open Images' hierarchy, translations or an is-a list; several complete each other.",
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(metavar="RELATION=FILE", help="A list of id TAB id that states a relation: has-part=parts.tsv."),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="For all but about: a file of one label a line, or a model folder.")
    ] = None,
    table: Table = None,
    out: Annotated[
        Path | None,
        typer.Option(help="match, pairs, within: TSV to write: label, id, how, name, gloss; label, label; id, name."),
    ] = None,
    levels: Annotated[int | None, typer.Option(min=1, help="under: steps down at most.")] = None,
    inherit: Annotated[
        bool, typer.Option("--inherit", help="under, pairs: also parts of what is more general.")
    ] = False,
    without: Annotated[
        Path | None, typer.Option(help="pairs: id TAB id lines of pairs that do not hold, in either order.")
    ] = None,
    json: Json = False,
) -> None:
    """What WordNet and its like know of labels: meanings, synsets, kinds and parts."""
    from wsabie.faces.cli.labelling import (
        about_command,
        match_command,
        pairs_command,
        under_command,
        within_command,
    )
    from wsabie.faces.cli.meanings import known_of
    from wsabie.storage.outputs import refuse_unwritable

    if not knowledge and not pairs:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    if kind != "under":
        refuse_options(stated(levels=levels), "what lies under a name; it belongs to under")
    if kind not in ("under", "pairs"):
        refuse_options(stated(inherit=inherit or None), "what is more general; it belongs to under and pairs")
    if kind != "pairs":
        refuse_options(stated(without=without), "which pairs do not hold; it belongs to pairs")
    if kind not in ("match", "pairs", "within"):
        refuse_options(stated(out=out), "where to write; it belongs to match, pairs and within")
    if kind != "match":
        if name is None:
            what = {"pairs": "relation? write it, such as has-part,", "within": "number of hops? write it"}
            raise InputError(f"which {what.get(kind, 'name? write it')} behind `wsabie labels {kind}`")
    elif name is not None:
        raise InputError(f"match takes labels from --labels FILE or MODEL; leave {name!r} out")
    if kind == "about":
        refuse_options(stated(labels=labels, table=table), "which labels there are; it belongs to the others")
    elif labels is None:
        raise InputError("--labels names a file of one label a line, or a model folder; add it")
    written: Literal["pairs", "labels"] = "pairs" if kind == "pairs" else "labels"
    refuse_unwritable((written, out), inputs=(*(knowledge or ()), labels, table, without))
    known = known_of(knowledge or (), pairs or ())
    if labels is None:
        about_command(known, name or "", json)
    elif kind == "match":
        match_command(known, labels, table, out, json)
    elif kind == "within":
        within_command(known, name or "", labels, table, out, json)
    elif kind == "pairs":
        pairs_command(known, name or "", labels, table, inherit, without, out, json)
    else:
        under_command(known, name or "", labels, table, levels, inherit, json)


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
    seed: GivenSeed = None,
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
    """Word vectors: learn them from your own text, or look into a file of them."""
    from wsabie.faces.cli.word_vectors import info_command, learn_command, near_command

    learning = stated(
        dim=dim, window=window, min_count=min_count, epochs=epochs, phrases=phrases, threads=threads, seed=seed
    )
    if kind == "train":
        refuse_options(stated(k=k, limit=limit, cache=cache), "how vectors are read")
        if name is not None or out is None:
            raise InputError("wsabie vectors train takes one SRC and --out FILE; give both, and nothing else")
        learn_command(src, out, learning, strict, rejects, json)
        return
    refuse_options({**stated(out=out), **learning}, "how vectors are learnt; it belongs to train")
    if kind == "info":
        refuse_options(stated(k=k), "how many words are shown; it belongs to near")
        if name is not None:
            raise InputError(f"info looks at a file as a whole; leave {name!r} out, or write near")
        info_command(src, cache, limit, strict, rejects, json)
        return
    if name is None:
        raise InputError("near to which word? write it behind the file")
    near_command(src, name, k or 10, cache, limit, strict, rejects, json)
