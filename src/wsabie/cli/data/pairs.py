"""`wsabie pairs`."""

from pathlib import Path
from typing import Annotated, Literal

from wsabie.cli import shared_options as shared
from wsabie.cli.framework import Options, Report, Scope, Settings, argument, command, only_for, option, refuse_options
from wsabie.cli.knowledge_files import load_knowledge, match_label_concepts
from wsabie.cli.output import TerminalProgress, format_count, out, print_note
from wsabie.core.errors import require
from wsabie.core.json_conversion import JsonObject

_KINDS = ("from-listeners", "from-wordnet")
_ONLY_LISTENERS = only_for(_KINDS, "from-listeners")
_NO_MEANINGS = Scope(synsets="it is for --labels, which is not given")


class ListenerOptions(Options, panel="Listeners (from-listeners)"):
    """Options of pairs of songs that the same people hear."""

    tracks: Path | None = option("unique_tracks.txt of the Million Song Dataset: pair tracks, not songs.")
    min_listeners: int | None = option("Common listeners of a pair, at least (default: 5).", min=1)
    min_cosine: float | None = option("Cosine of the listeners of a pair, at least (default: 0).", min=0, max=1)
    max_partners: int | None = option("Partners that a song may choose, the highest cosines (default: 20).", min=1)
    max_songs: int | None = option("Of a user with more songs, this many count, drawn at random (default: 500).", min=2)
    seed: shared.OptionalSeed = None


class WordNetOptions(Options, panel="WordNet (from-wordnet)"):
    """Options of pairs of a relation of WordNet."""

    relation: shared.RelationName | None = option("Which relation (default: part-of; the part comes first).")
    labels: Path | None = option("Pairs of these labels, not of synsets: one label a line, or a model folder.")
    table: Annotated[shared.Table, _NO_MEANINGS] = None
    inherit: bool = option("With --labels: labels inherit the pairs of more general ones.", scope=_NO_MEANINGS)


class PairsRejectOptions(shared.RejectOptions):
    """Options of what cannot be read, which only lists of listeners have."""

    strict: Annotated[shared.Strict, _ONLY_LISTENERS] = False
    rejects: Annotated[shared.RejectFile, _ONLY_LISTENERS] = None


class PairsOptions(PairsRejectOptions):
    """Options of `wsabie pairs`."""

    kind: Literal["from-listeners", "from-wordnet"] = argument(
        "from-listeners: songs that the same people hear; from-wordnet: wheel and car, dolphin and whale.",
        metavar="KIND",
    )
    src: Path = argument(
        "Lines of user TAB song TAB plays, or gzip of them; or WordNet's folder, or Open Images' hierarchy.",
        metavar="SRC",
    )
    out: Path = option("TSV to write: id, id, common listeners; a relation's pairs.")
    listeners: Annotated[ListenerOptions, _ONLY_LISTENERS]
    wordnet: Annotated[WordNetOptions, only_for(_KINDS, "from-wordnet")]


@command(
    "pairs from-listeners plays.tsv --out heard.tsv",
    "pairs from-wordnet /usr/share/wordnet --out parts.tsv --labels birds",
)
def pairs(options: PairsOptions) -> Report:
    """Make pairs for a relation of a space.

    They come from listeners or from WordNet.
    """
    refuse_options(options.kind, options)
    if options.kind == "from-listeners":
        return _pair_songs(options)
    if options.wordnet.labels is None:
        refuse_options("synsets", options)
    return _write_wordnet_pairs(options)


def _pair_songs(options: PairsOptions) -> Report:
    """Find songs with the same listeners, and write them as pairs."""
    from wsabie.io.datasets import million_song

    src, target, listeners = options.src, options.out, options.listeners
    tracks, max_songs, cosine = listeners.tracks, listeners.max_songs or 500, listeners.min_cosine or 0.0
    least = listeners.min_listeners or 5
    options.check_outputs(("pairs", target), inputs=(src, tracks))
    with options.collect_rejects() as rejects:
        song_tracks = None if tracks is None else million_song.read_song_tracks(tracks, rejects=rejects)
        settings: Settings = {"heavy": max_songs, "seed": listeners.seed or 0, "progress": TerminalProgress()}
        listening = million_song.read_listening_counts(src, song_filter=song_tracks, rejects=rejects, **settings)
    limits: Settings = {"least": least, "cosine": cosine, "top": listeners.max_partners or 20}
    pairs = list(million_song.find_co_listened_pairs(listening, **limits, progress=TerminalProgress()))
    n_songs, n_users = listening.song_users.shape
    shared = f"{format_count(least, 'common listener')} and a cosine of {cosine:g}"
    require(len(pairs) > 0, f"no two songs of {src} have {shared}; give a lower --min-listeners or --min-cosine")
    written = million_song.write_co_listened_pairs(target, pairs, song_tracks)
    paired = len({song for first, second, _ in pairs for song in (first, second)})
    facts = {"songs": n_songs, "listeners": n_users, "capped_listeners": listening.n_capped, "songs_in_pairs": paired}
    yield {"out": target, "pairs": written, **facts}
    if listening.n_capped:
        capped = format_count(listening.n_capped, "listener")
        print_note(f"of {capped} with more than {max_songs:,} songs, {max_songs:,} count")
    songs, users = format_count(n_songs, "song"), format_count(n_users, "listener")
    _report_pairs(target, f"{format_count(written, 'pair')} of {paired:,} of {songs}, heard by {users}")


def _write_wordnet_pairs(options: PairsOptions) -> Report:
    """Write the pairs of a relation of WordNet: of synsets, or of the labels that mean them."""
    from wsabie.io.formats.pair_list import write_id_pairs
    from wsabie.io.vocabulary.knowledge_graphs import iterate_relation_pairs

    src, target, wordnet = options.src, options.out, options.wordnet
    relation, labels, table = wordnet.relation or "part-of", wordnet.labels, wordnet.table
    options.check_outputs(("pairs", target), inputs=(src, labels, table))
    facts: JsonObject = {}
    if labels is None:
        pairs, owner = list(iterate_relation_pairs(src, relation)), "its synsets"
    else:
        concepts, owner = match_label_concepts(load_knowledge([src]), labels, table), f"the labels of {labels}"
        names = concepts.labels
        pairs = [(names[first], names[second]) for first, second in concepts.pairs(relation, inherit=wordnet.inherit)]
        facts = {"labels": len(names), "missing": concepts.missing}
    require(bool(pairs), f"{src} states no pair of {relation} among {owner}; try --inherit, other labels or --relation")
    write_id_pairs(target, pairs)
    yield {"out": target, "relation": relation, "pairs": len(pairs), **facts}
    paired = format_count(len({name for pair in pairs for name in pair}), "synset" if labels is None else "label")
    _report_pairs(target, f"{format_count(len(pairs), 'pair')} of {paired}, {relation}")


def _report_pairs(target: Path, summary: str) -> None:
    out.print(f"{target}: {summary}")
    print_note(f'next: pairs = "{target}" in a relation of a TOML file, and wsabie train with that file')
