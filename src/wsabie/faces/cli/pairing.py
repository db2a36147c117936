"""`wsabie pairs`."""

from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import listing
from wsabie.faces.cli.meanings import known_of, matched_labels
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.sources.pairs import write_pairs
from wsabie.storage.outputs import refuse_unwritable


def listeners_command(
    src: Path,
    target: Path,
    tracks: Path | None,
    least: int,
    cosine: float,
    top: int,
    heavy: int,
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Find the songs that the same people hear and write them as pairs."""
    from wsabie.sources.listened import read_heard, together, tracks_of_songs, write_together

    refuse_unwritable(("pairs", target), ("rejects", rejects_file), inputs=(src, tracks))
    progress = TerminalProgress()
    with listing(rejects_file, strict=strict) as rejects:
        known = None if tracks is None else tracks_of_songs(tracks, rejects=rejects)
        heard = read_heard(src, known=known, heavy=heavy, seed=seed, rejects=rejects, progress=progress)
    pairs = list(together(heard, least=least, cosine=cosine, top=top, progress=progress))
    n_songs, n_users = heard.by.shape
    if not pairs:
        raise InputError(
            f"no two songs of {src} have {plural(least, 'common listener')} and a cosine of {cosine:g}; give a lower "
            "--least or --cosine"
        )
    written = write_together(target, pairs, known)
    paired = len({song for one, other, _ in pairs for song in (one, other)})
    if json:
        counts = {"songs": n_songs, "listeners": n_users, "capped_listeners": heard.capped, "songs_in_pairs": paired}
        show_json({"schema": 1, "out": str(target), "pairs": written, **counts})
        return
    if heard.capped:
        note(f"of {plural(heard.capped, 'listener')} with more than {heavy:,} songs, {heavy:,} of these count")
    out.print(
        f"{target}: {plural(written, 'pair')} of {paired:,} of {plural(n_songs, 'song')}, heard by "
        f"{plural(n_users, 'listener')}"
    )
    note(f'next: pairs = "{target}" in a relation of a TOML file, and wsabie train with that file')


def wordnet_command(
    src: Path, target: Path, relation: str, labels: Path | None, table: Path | None, inherit: bool, json: bool
) -> None:
    """Write the pairs of a relation of WordNet: of synsets, or of the labels that mean them."""
    from wsabie.sources.knowledge import relation_pairs

    refuse_unwritable(("pairs", target), inputs=(src, labels, table))
    facts: dict[str, Any] = {}
    if labels is None:
        pairs, of = list(relation_pairs(src, relation)), "its synsets"
    else:
        matched, of = matched_labels(known_of([src]), labels, table), f"the labels of {labels}"
        names = matched.labels
        pairs = [(names[one], names[other]) for one, other in matched.pairs(relation, inherit=inherit)]
        facts = {"labels": len(names), "missing": matched.missing}
    if not pairs:
        raise InputError(f"{src} states no pair of {relation} among {of}; try --inherit, other labels or --relation")
    write_pairs(target, pairs)
    if json:
        show_json({"schema": 1, "out": str(target), "relation": relation, "pairs": len(pairs), **facts})
        return
    ends = plural(len({end for pair in pairs for end in pair}), "synset" if labels is None else "label")
    out.print(f"{target}: {plural(len(pairs), 'pair')} of {ends}, {relation}")
    note(f'next: pairs = "{target}" in a relation of a TOML file, and wsabie train with that file')
