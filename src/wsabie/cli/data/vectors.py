"""`wsabie vectors`."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from wsabie.cli.command import NotFor, command, list_stated, options, refuse_options_for
from wsabie.cli.knowledge_files import load_word_vectors
from wsabie.cli.options import OptionalSeed, RejectOptions
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.vocabulary.word_vectors import WordVectors

_LEARNING = "how vectors are learnt; it belongs to train"
_ONLY_TRAIN, _NOT_TRAIN = NotFor(info=_LEARNING, near=_LEARNING), NotFor(train="how vectors are read")


@options
class LearningOptions:
    """Options of learning word vectors."""

    panel: ClassVar = "Learning (train)"

    dim: Annotated[int | None, typer.Option(min=1, max=4096, help="Dimensions (default: 100).")] = None
    window: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Words to either side that count (default: 5).")
    ] = None
    min_count: Annotated[
        int | None, typer.Option(min=1, help="Leave out words that are found less often (default: 5).")
    ] = None
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the text (default: 5).")] = None
    phrases: Annotated[
        int | None, typer.Option(min=0, max=4, help="How often neighbours such as New York are joined (default: 1).")
    ] = None
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Threads; only one is reproducible (default: 1).")
    ] = None
    seed: OptionalSeed = None


@options
class VectorsOptions:
    """Options of `wsabie vectors`."""

    kind: Annotated[
        Literal["train", "info", "near"],
        typer.Argument(
            metavar="KIND",
            help="train: learn vectors from text (skip-gram); info: what a file holds; near: words nearest to a name.",
        ),
    ]
    src: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="Text or documents to learn from; else word vectors of word2vec, GloVe or fastText, text or binary.",
        ),
    ]
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="near: a word or several.")] = None
    out: Annotated[Path | None, typer.Option(help="train: file to write, in word2vec's text form."), _ONLY_TRAIN] = None
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, help="near: how many (default: 10)."),
        NotFor(train="how vectors are read", info="how many words are shown; it belongs to near"),
    ] = None
    limit: Annotated[
        int | None, typer.Option(min=1, help="info, near: only the first words of the file."), _NOT_TRAIN
    ] = None
    cache: Annotated[
        Path | None,
        typer.Option(help="info, near: where the mapped table is kept (default: beside SRC, SRC.npy)."),
        _NOT_TRAIN,
    ] = None
    learning: Annotated[LearningOptions, _ONLY_TRAIN] = LearningOptions()
    output: RejectOptions = RejectOptions()


@command("vectors train articles.txt --out words.vec", "vectors near words.vec 'new york' -k 5")
def vectors(options: VectorsOptions) -> None:
    """Learn word vectors from your own text, or inspect a file of them."""
    refuse_options_for(options.kind, options)
    if options.kind == "train":
        if options.name is not None or options.out is None:
            raise InputError("wsabie vectors train takes one SRC and --out FILE; give both, and nothing else")
        _learn_vectors(options, options.out)
    elif options.kind == "info":
        if options.name is not None:
            raise InputError(f"info looks at a file as a whole; leave {options.name!r} out, or write near")
        _show_vectors(options)
    else:
        if options.name is None:
            raise InputError("near to which word? write it behind the file")
        _show_near_words(options, options.name)


def _learn_vectors(options: VectorsOptions, target: Path) -> None:
    """Learn word vectors from text and write them."""
    from wsabie.io.vocabulary.word_vectors import write_word_vectors
    from wsabie.workflows.word_vector_training import learn_word_vectors

    check_output_paths(("vectors", target), ("rejects", options.output.rejects), inputs=(options.src,))
    with options.output.collect() as rejects:
        vectors = learn_word_vectors(
            options.src, **list_stated(options.learning), rejects=rejects, progress=TerminalProgress()
        )
    write_word_vectors(target, vectors.words, vectors.table)
    n_words, dim = vectors.table.shape
    phrases = sum("_" in word for word in vectors.words)
    if options.output.json:
        counts = {"words": n_words, "phrases": phrases, "dimensions": dim, "words_read": vectors.n_read}
        show_json({"schema": 1, "out": str(target), **counts})
        return
    out.print(
        f"{target}: {format_count(n_words, 'word')}, of which {format_count(phrases, 'phrase')}, of "
        f"{vectors.n_read:,} read"
    )
    print_note(f"next: wsabie vectors near {quote(str(target))} WORD")


def _read_vectors(options: VectorsOptions) -> "WordVectors":
    check_output_paths(("rejects", options.output.rejects), inputs=(options.src,))
    with options.output.collect() as rejects:
        return load_word_vectors(options.src, cache=options.cache, limit=options.limit, rejects=rejects)


def _show_vectors(options: VectorsOptions) -> None:
    """Print the contents of a file of word vectors."""
    src, vectors = options.src, _read_vectors(options)
    first = vectors.words[:5]
    if options.output.json:
        facts = {"words": len(vectors), "dimensions": vectors.dim, "first": first, "skipped": vectors.skipped}
        show_json({"schema": 1, "vectors": str(src), **facts})
        return
    lines = [["words", f"{len(vectors):,}"], ["dimensions", f"{vectors.dim:,}"], ["first words", " ".join(first)]]
    show_table(str(src), ["", ""], [*lines, ["MiB of the table", f"{vectors.table.nbytes / 2**20:,.1f}"]])


def _show_near_words(options: VectorsOptions, name: str) -> None:
    """Print the words nearest to a name."""
    from wsabie.search.vector_neighbours import find_nearest_words

    vectors = _read_vectors(options)
    near = find_nearest_words(vectors, name, options.k or 10)
    if options.output.json:
        used = [vectors.words[row] for row in vectors.find_rows(name)]
        show_json({"schema": 1, "name": name, "words": used, "near": [[word, round(c, 6)] for word, c in near]})
        return
    show_table(f"nearest to {name}", ["word", "cosine"], [[word, f"{cosine:.3f}"] for word, cosine in near])
