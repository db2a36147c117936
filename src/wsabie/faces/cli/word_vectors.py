"""`wsabie vectors`."""

from pathlib import Path
from shlex import quote
from typing import Any

from wsabie.faces.cli.common import listing
from wsabie.faces.cli.meanings import vectors_of
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json, show_table
from wsabie.storage.outputs import refuse_unwritable


def learn_command(
    src: Path, target: Path, options: dict[str, Any], strict: bool, rejects_file: Path | None, json: bool
) -> None:
    """Learn word vectors from text and write them."""
    from wsabie.sources.vectors import write_vectors
    from wsabie.studies.skip_gram import learn_vectors

    refuse_unwritable(("vectors", target), ("rejects", rejects_file), inputs=(src,))
    with listing(rejects_file, strict=strict) as rejects:
        learnt = learn_vectors(src, **options, rejects=rejects, progress=TerminalProgress())
    write_vectors(target, learnt.words, learnt.table)
    n, dim = learnt.table.shape
    phrases = sum("_" in word for word in learnt.words)
    if json:
        counts = {"words": n, "phrases": phrases, "dimensions": dim, "words_read": learnt.n_read}
        show_json({"schema": 1, "out": str(target), **counts})
        return
    out.print(f"{target}: {plural(n, 'word')}, of which {plural(phrases, 'phrase')}, of {learnt.n_read:,} read")
    note(f"next: wsabie vectors near {quote(str(target))} WORD")


def info_command(
    src: Path, cache: Path | None, limit: int | None, strict: bool, rejects_file: Path | None, json: bool
) -> None:
    """Print what a file of word vectors holds."""
    refuse_unwritable(("rejects", rejects_file), inputs=(src,))
    with listing(rejects_file, strict=strict) as rejects:
        vectors = vectors_of(src, cache=cache, limit=limit, rejects=rejects)
    first = vectors.words[:5]
    if json:
        facts = {"words": len(vectors), "dimensions": vectors.dim, "first": first, "skipped": vectors.skipped}
        show_json({"schema": 1, "vectors": str(src), **facts})
        return
    lines = [["words", f"{len(vectors):,}"], ["dimensions", f"{vectors.dim:,}"], ["first words", " ".join(first)]]
    show_table(str(src), ["", ""], [*lines, ["MiB of the table", f"{vectors.table.nbytes / 2**20:,.1f}"]])


def near_command(
    src: Path, name: str, k: int, cache: Path | None, limit: int | None, strict: bool, rejects_file: Path | None,
    json: bool,
) -> None:  # fmt: skip
    """Print the words nearest to a name."""
    from wsabie.search.words import nearest_words

    refuse_unwritable(("rejects", rejects_file), inputs=(src,))
    with listing(rejects_file, strict=strict) as rejects:
        vectors = vectors_of(src, cache=cache, limit=limit, rejects=rejects)
    near = nearest_words(vectors, name, k)
    if json:
        used = [vectors.words[row] for row in vectors.rows(name)]
        show_json({"schema": 1, "name": name, "words": used, "near": [[word, round(c, 6)] for word, c in near]})
        return
    show_table(f"nearest to {name}", ["word", "cosine"], [[word, f"{cosine:.3f}"] for word, cosine in near])
