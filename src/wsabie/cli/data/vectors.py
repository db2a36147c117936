"""`wsabie vectors`."""

from pathlib import Path
from shlex import quote
from typing import Any

from wsabie.cli.inputs.command_inputs import collect_rejects
from wsabie.cli.inputs.knowledge_files import load_word_vectors
from wsabie.cli.terminal.output import TerminalProgress, format_count, out, print_note, show_json, show_table
from wsabie.storage.output_checks import check_output_paths


def run_learn_vectors(
    src: Path, target: Path, options: dict[str, Any], strict: bool, rejects_file: Path | None, json: bool
) -> None:
    """Learn word vectors from text and write them."""
    from wsabie.io.vocabulary.word_vectors import write_word_vectors
    from wsabie.workflows.train.word_vector_training import learn_word_vectors

    check_output_paths(("vectors", target), ("rejects", rejects_file), inputs=(src,))
    with collect_rejects(rejects_file, strict=strict) as rejects:
        vectors = learn_word_vectors(src, **options, rejects=rejects, progress=TerminalProgress())
    write_word_vectors(target, vectors.words, vectors.table)
    n_words, dim = vectors.table.shape
    phrases = sum("_" in word for word in vectors.words)
    if json:
        counts = {"words": n_words, "phrases": phrases, "dimensions": dim, "words_read": vectors.n_read}
        show_json({"schema": 1, "out": str(target), **counts})
        return
    out.print(
        f"{target}: {format_count(n_words, 'word')}, of which {format_count(phrases, 'phrase')}, of "
        f"{vectors.n_read:,} read"
    )
    print_note(f"next: wsabie vectors near {quote(str(target))} WORD")


def run_vectors_info(
    src: Path, cache: Path | None, limit: int | None, strict: bool, rejects_file: Path | None, json: bool
) -> None:
    """Print the contents of a file of word vectors."""
    check_output_paths(("rejects", rejects_file), inputs=(src,))
    with collect_rejects(rejects_file, strict=strict) as rejects:
        vectors = load_word_vectors(src, cache=cache, limit=limit, rejects=rejects)
    first = vectors.words[:5]
    if json:
        facts = {"words": len(vectors), "dimensions": vectors.dim, "first": first, "skipped": vectors.skipped}
        show_json({"schema": 1, "vectors": str(src), **facts})
        return
    lines = [["words", f"{len(vectors):,}"], ["dimensions", f"{vectors.dim:,}"], ["first words", " ".join(first)]]
    show_table(str(src), ["", ""], [*lines, ["MiB of the table", f"{vectors.table.nbytes / 2**20:,.1f}"]])


def run_near_words(
    src: Path, name: str, k: int, cache: Path | None, limit: int | None, strict: bool, rejects_file: Path | None,
    json: bool,
) -> None:  # fmt: skip
    """Print the words nearest to a name."""
    from wsabie.search.word_neighbours import find_nearest_words

    check_output_paths(("rejects", rejects_file), inputs=(src,))
    with collect_rejects(rejects_file, strict=strict) as rejects:
        vectors = load_word_vectors(src, cache=cache, limit=limit, rejects=rejects)
    near = find_nearest_words(vectors, name, k)
    if json:
        used = [vectors.words[row] for row in vectors.rows(name)]
        show_json({"schema": 1, "name": name, "words": used, "near": [[word, round(c, 6)] for word, c in near]})
        return
    show_table(f"nearest to {name}", ["word", "cosine"], [[word, f"{cosine:.3f}"] for word, cosine in near])
