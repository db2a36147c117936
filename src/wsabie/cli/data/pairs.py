"""`wsabie pairs`."""

from pathlib import Path
from typing import Any

from wsabie.cli.inputs.command_inputs import collect_rejects
from wsabie.cli.inputs.knowledge_files import load_knowledge, match_label_concepts
from wsabie.cli.terminal.output import TerminalProgress, format_count, out, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.io.formats.pair_list import write_id_pairs
from wsabie.storage.output_checks import check_output_paths


def run_listener_pairs(
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
    """Find songs with the same listeners, and write them as pairs."""
    from wsabie.io.datasets.taste_profile import (
        find_co_listened_pairs,
        read_listening_counts,
        read_song_tracks,
        write_co_listened_pairs,
    )

    check_output_paths(("pairs", target), ("rejects", rejects_file), inputs=(src, tracks))
    progress = TerminalProgress()
    with collect_rejects(rejects_file, strict=strict) as rejects:
        song_tracks = None if tracks is None else read_song_tracks(tracks, rejects=rejects)
        listening = read_listening_counts(
            src, known=song_tracks, heavy=heavy, seed=seed, rejects=rejects, progress=progress
        )
    pairs = list(find_co_listened_pairs(listening, least=least, cosine=cosine, top=top, progress=progress))
    n_songs, n_users = listening.by.shape
    if not pairs:
        raise InputError(
            f"no two songs of {src} have {format_count(least, 'common listener')} and a cosine of {cosine:g}; give a "
            "lower "
            "--least or --cosine"
        )
    written = write_co_listened_pairs(target, pairs, song_tracks)
    paired = len({song for first, second, _ in pairs for song in (first, second)})
    if json:
        facts = {"songs": n_songs, "listeners": n_users, "capped_listeners": listening.capped, "songs_in_pairs": paired}
        show_json({"schema": 1, "out": str(target), "pairs": written, **facts})
        return
    if listening.capped:
        print_note(
            f"of {format_count(listening.capped, 'listener')} with more than {heavy:,} songs, {heavy:,} of these count"
        )
    out.print(
        f"{target}: {format_count(written, 'pair')} of {paired:,} of {format_count(n_songs, 'song')}, heard by "
        f"{format_count(n_users, 'listener')}"
    )
    print_note(f'next: pairs = "{target}" in a relation of a TOML file, and wsabie train with that file')


def run_wordnet_pairs(
    src: Path, target: Path, relation: str, labels: Path | None, table: Path | None, inherit: bool, json: bool
) -> None:
    """Write the pairs of a relation of WordNet: of synsets, or of the labels that mean them."""
    from wsabie.io.vocabulary.knowledge_graphs import iterate_relation_pairs

    check_output_paths(("pairs", target), inputs=(src, labels, table))
    facts: dict[str, Any] = {}
    if labels is None:
        pairs, owner = list(iterate_relation_pairs(src, relation)), "its synsets"
    else:
        concepts, owner = match_label_concepts(load_knowledge([src]), labels, table), f"the labels of {labels}"
        names = concepts.labels
        pairs = [(names[first], names[second]) for first, second in concepts.pairs(relation, inherit=inherit)]
        facts = {"labels": len(names), "missing": concepts.missing}
    if not pairs:
        raise InputError(f"{src} states no pair of {relation} among {owner}; try --inherit, other labels or --relation")
    write_id_pairs(target, pairs)
    if json:
        show_json({"schema": 1, "out": str(target), "relation": relation, "pairs": len(pairs), **facts})
        return
    paired = format_count(len({name for pair in pairs for name in pair}), "synset" if labels is None else "label")
    out.print(f"{target}: {format_count(len(pairs), 'pair')} of {paired}, {relation}")
    print_note(f'next: pairs = "{target}" in a relation of a TOML file, and wsabie train with that file')
