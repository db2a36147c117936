"""`wsabie vectors`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from wsabie.cli.framework import Options, Report, argument, command, list_stated, only_for, option, refuse_options
from wsabie.cli.knowledge_files import load_word_vectors
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, quote_path, show_table
from wsabie.cli.shared_options import OptionalSeed, RejectOptions
from wsabie.core.errors import InputError
from wsabie.core.machine import MAX_THREADS

if TYPE_CHECKING:
    from wsabie.vocabulary.word_vectors import WordVectors

_Kind = Literal["train", "info", "near"]
_option = partial(option, kinds=get_args(_Kind))


class LearningOptions(Options, panel="Learning (train)"):
    """Options of learning word vectors."""

    dim: int | None = option("Dimensions (default: 100).", min=1, max=4096)
    window: int | None = option("Words to either side that count (default: 5).", min=1, max=1000)
    min_count: int | None = option("Leave out words that are found less often (default: 5).", min=1)
    epochs: int | None = option("Passes over the text (default: 5).", min=1)
    phrases: int | None = option("How often neighbours such as New York are joined (default: 1).", min=0, max=4)
    threads: int | None = option("Threads; only one is reproducible (default: 1).", min=1, max=MAX_THREADS)
    seed: OptionalSeed = None


class VectorsOptions(RejectOptions):
    """Options of `wsabie vectors`."""

    kind: _Kind = argument("train: learn from text; info: show a file; near: find nearest words.", metavar="KIND")
    src: Path = argument("Text or documents; or word vectors of word2vec, GloVe or fastText.", metavar="SRC")
    name: str | None = argument("near: a word or several.", metavar="NAME")
    out: Path | None = _option("train: file to write, in word2vec's text form.")
    k: int | None = _option("near: how many (default: 10).", flag="-k", min=1)
    limit: int | None = _option("info, near: only the first words of the file.", min=1)
    cache: Path | None = _option("info, near: file of the mapped table (default: beside SRC, SRC.npy).")
    learning: Annotated[LearningOptions, only_for(get_args(_Kind), "train")]


@command("vectors train articles.txt --out words.vec", "vectors near words.vec 'new york' -k 5")
def vectors(options: VectorsOptions) -> Report:
    """Learn word vectors from your text, or inspect a file of them."""
    refuse_options(options.kind, options)
    if options.kind == "train":
        if options.name is not None or options.out is None:
            raise InputError("wsabie vectors train takes one SRC and --out FILE; give both, and nothing else")
        return _learn_vectors(options, options.out)
    if options.kind == "info":
        if options.name is not None:
            raise InputError(f"info looks at a file as a whole; leave {options.name!r} out, or write near")
        return _show_vectors(options)
    if options.name is None:
        raise InputError("near to which word? write it behind the file")
    return _show_near_words(options, options.name)


def _learn_vectors(options: VectorsOptions, target: Path) -> Report:
    """Learn word vectors from text and write them."""
    from wsabie.io.vocabulary.word_vector_files import write_word_vectors
    from wsabie.workflows.word_vector_training import learn_word_vectors

    options.check_outputs(("vectors", target), inputs=(options.src,))
    with options.collect_rejects() as rejects:
        settings = {**list_stated(options.learning), "rejects": rejects, "progress": TerminalProgress()}
        vectors = learn_word_vectors(options.src, **settings)
    write_word_vectors(target, vectors.words, vectors.table)
    n_words, dim = vectors.table.shape
    phrases = sum("_" in word for word in vectors.words)
    facts = {"words": n_words, "phrases": phrases, "dimensions": dim, "words_read": vectors.n_read}
    yield {"out": target, **facts}
    counts = f"{format_count(n_words, 'word')}, of which {format_count(phrases, 'phrase')}"
    out.print(f"{target}: {counts}, of {vectors.n_read:,} read")
    print_note(f"next: wsabie vectors near {quote_path(target)} WORD")


def _read_vectors(options: VectorsOptions) -> "WordVectors":
    options.check_outputs(inputs=(options.src,))
    with options.collect_rejects() as rejects:
        return load_word_vectors(options.src, cache=options.cache, limit=options.limit, rejects=rejects)


def _show_vectors(options: VectorsOptions) -> Report:
    """Print the contents of a file of word vectors."""
    src, vectors = options.src, _read_vectors(options)
    facts = {"words": len(vectors), "dimensions": vectors.dim, "first": vectors.words[:5]}
    yield {"vectors": src, **facts, "skipped": vectors.skipped}
    rows = {"words": len(vectors), "dimensions": vectors.dim, "first words": " ".join(vectors.words[:5])}
    size = f"{vectors.table.nbytes / 2**20:,.1f}"
    show_table(str(src), ["", ""], [*rows.items(), ("MiB of the table", size)])


def _show_near_words(options: VectorsOptions, name: str) -> Report:
    """Print the words nearest to a name."""
    from wsabie.search.vector_neighbours import find_nearest_words

    vectors = _read_vectors(options)
    near = find_nearest_words(vectors, name, options.k or 10)
    used = [vectors.words[row] for row in vectors.find_rows(name)]
    yield {"name": name, "words": used, "neighbours": [[word, round(c, 6)] for word, c in near]}
    show_table(f"nearest to {name}", ["word", "cosine"], [[word, f"{cosine:.3f}"] for word, cosine in near])
