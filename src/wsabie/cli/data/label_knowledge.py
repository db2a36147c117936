"""Knowledge of labels: `wsabie labels`, `wsabie hierarchy` and `wsabie pairs`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from wsabie.cli import shared_options as shared
from wsabie.cli.framework import Options, Report, Scope, Settings, argument, command, only_for, option, refuse_options
from wsabie.cli.inputs import read_label_file
from wsabie.cli.knowledge_files import load_knowledge, match_label_concepts
from wsabie.cli.output import TerminalProgress, escape_line, format_count, out, print_note, print_row, show_table
from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.storage.atomic_files import write_text

if TYPE_CHECKING:
    from wsabie.vocabulary.concept_matching import LabelConcepts
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

_MAX_SHOWN, _MAX_HOPS = 8, 99
_Kind = Literal["about", "match", "under", "pairs", "within"]
_option = partial(option, kinds=get_args(_Kind))
_NO_ABOUT = only_for(get_args(_Kind), "match", "under", "pairs", "within")
_KINDS = ("from-listeners", "from-wordnet")
_ONLY_LISTENERS = only_for(_KINDS, "from-listeners")
_NO_MEANINGS = Scope(synsets="it is for --labels, which is not given")


class LabelsOptions(shared.OutputOptions):
    """Options of `wsabie labels`."""

    kind: _Kind = argument(
        "about: what a name may mean; match: which synset each label means; under: the labels that a name stands for; "
        "pairs: the labels that a relation joins; within: what is at most NAME hops from labels.",
        metavar="KIND",
    )
    name: str | None = argument(
        "A name or an id for about and under; a relation for pairs, such as has-part; hops for within.", metavar="NAME"
    )
    knowledge: shared.Knowledge = None
    pairs: shared.RelationPairs = None
    labels: Path | None = option("For all but about: a file of one label a line, or a model folder.", scope=_NO_ABOUT)
    table: Annotated[shared.Table, _NO_ABOUT] = None
    out: Path | None = _option(
        "match, pairs, within: TSV to write: label, id, method, name, gloss; label, label; id, name."
    )
    max_depth: int | None = _option("under: steps down at most.", min=1)
    inherit: bool = _option("under, pairs: also parts of more general concepts.")
    exclude_pairs: Path | None = _option("pairs: file of id TAB id lines, pairs to leave out in either order.")


@command(
    "labels match --knowledge /usr/share/wordnet --labels birds --out concepts.tsv",
    "labels under bird --knowledge /usr/share/wordnet --labels birds",
)
def labels(options: LabelsOptions) -> Report:
    """Look up labels in WordNet and other knowledge: meanings, synsets, kinds and parts."""
    kind, name = options.kind, options.name
    if not options.knowledge and not options.pairs:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    refuse_options(kind, options)
    if kind != "match":
        if name is None:
            missing = {"pairs": "relation? write it, such as has-part,", "within": "number of hops? write it"}
            raise InputError(f"which {missing.get(kind, 'name? write it')} behind `wsabie labels {kind}`")
    elif name is not None:
        raise InputError(f"match takes labels from --labels FILE or MODEL; leave {name!r} out")
    if kind != "about" and options.labels is None:
        raise InputError("--labels names a file of one label a line, or a model folder; add it")
    written: Literal["pairs", "labels"] = "pairs" if kind == "pairs" else "labels"
    inputs = (*(options.knowledge or ()), options.labels, options.table, options.exclude_pairs)
    options.check_outputs((written, options.out), inputs=inputs)
    graph = load_knowledge(options.knowledge or (), options.pairs or ())
    if options.labels is None:
        return _show_senses(graph, name or "")
    concepts = match_label_concepts(graph, options.labels, options.table)
    if kind == "match":
        return _show_matches(options, concepts)
    show = {"within": _show_nearby, "pairs": _show_pairs, "under": _show_labels_under}[kind]
    return show(options, graph, concepts, name or "")


def _show_senses(graph: "KnowledgeGraph", name: str) -> Report:
    """Print the meanings of a name, and the relations of the first one."""
    from wsabie.vocabulary.label_names import format_unknown_label

    senses = [graph.concept(concept) for concept in graph.find_senses(name)]
    if not senses:
        raise UnknownLabelError(format_unknown_label(name, list(graph.all_names()), "name"))
    related = {relation: ids for relation in _list_relations(graph) if (ids := graph.related(senses[0].id, relation))}
    entries = [
        {"id": sense.id, "names": [*zip(sense.names, sense.languages, strict=True)], "gloss": sense.gloss}
        for sense in senses
    ]
    yield {"name": name, "senses": entries, "related": related}
    for sense in senses:
        parts = [text for text in (", ".join(sense.names), sense.gloss) if text]
        out.print(escape_line("  ".join([sense.id, ": ".join(parts)]).rstrip()))
        for relation, ids in (related if sense is senses[0] else {}).items():
            more = f" and {len(ids) - _MAX_SHOWN:,} more" if len(ids) > _MAX_SHOWN else ""
            out.print(escape_line(f"  {relation}: {', '.join(map(graph.name, ids[:_MAX_SHOWN]))}{more}"))


def _show_matches(options: LabelsOptions, concepts: "LabelConcepts") -> Report:
    """Show the concept of each label, and write a table that the user can correct."""
    from wsabie.io.vocabulary.knowledge_graphs import write_label_table

    target = options.out
    if target is not None:
        write_label_table(target, concepts)
    counts, concept_ids = concepts.counts, dict(zip(concepts.labels, concepts.concepts, strict=True))
    yield {**_name_output(target), "counts": counts, "missing": concepts.missing, "concepts": concept_ids}
    methods = {name: "known of nothing" if name == "missing" else f"by {name}" for name in counts}
    summary = ", ".join(f"{count:,} {methods[name]}" for name, count in counts.items())
    out.print(f"{options.labels}: {format_count(len(concepts.labels), 'label')}: {summary}")
    if target is not None:
        print_note(f"{target}: correct its ids where they are wrong, and give it as --table")


def _show_labels_under(options: LabelsOptions, graph: "KnowledgeGraph", concepts: "LabelConcepts", name: str) -> Report:
    """Print the labels that a name stands for."""
    expansion, names = concepts.expand(name, levels=options.max_depth, inherit=options.inherit), concepts.labels
    kinds = [{"label": names[label.position], "steps": label.steps} for label in expansion.kinds]
    parts = [{"label": names[label.position], "steps": label.steps, "of": label.via} for label in expansion.parts]
    yield {"name": name, "concept": expansion.concept, "kinds": kinds, "parts": parts}
    concept = graph.name(expansion.concept)
    if not expansion.kinds and not expansion.parts:
        raise InputError(f"no label of {options.labels} is a kind or part of {concept}; give other labels")
    lines = [[names[kind.position], "kind" if kind.steps else "itself", f"{kind.steps}"] for kind in expansion.kinds]
    lines += [[names[part.position], f"part of {graph.name(part.via)}", f"{part.steps}"] for part in expansion.parts]
    gloss = graph.concept(expansion.concept).gloss
    out.print(escape_line(f"{concept} ({expansion.concept}){f': {gloss}' if gloss else ''}"))
    show_table("", ["label", "", "steps"], lines)


def _show_nearby(options: LabelsOptions, graph: "KnowledgeGraph", concepts: "LabelConcepts", hops: str) -> Report:
    """Print or write the concepts within `hops` is-a pairs of some labels, including their own."""
    target = options.out
    if not hops.isdecimal() or len(hops) > len(f"{_MAX_HOPS}"):
        raise InputError(f"{hops!r} is not a number of hops; write one from 0 to {_MAX_HOPS}, such as 2")
    nearby = graph.hierarchy(names=False).find_within([concept for concept in concepts.concepts if concept], int(hops))
    concept_ids = [graph.concept(concept).id for concept in nearby]
    require(bool(concept_ids), f"no is-a pair is known of the labels of {options.labels}; give files that have some")
    if target is not None:
        lines = [f"{concept_id}\t{escape_line(graph.name(concept_id))}\n" for concept_id in concept_ids]
        write_text(target, "".join(lines))
    yield {**_name_output(target), "hops": int(hops), "concepts": concept_ids}
    for concept_id in concept_ids if target is None else ():
        print_row(concept_id, graph.name(concept_id))
    distance = f"at most {format_count(int(hops), 'hop')} from {format_count(len(concepts.labels), 'label')}"
    print_note(f"{format_count(len(concept_ids), 'concept')} {distance}" + (f", in {target}" if target else ""))


def _show_pairs(options: LabelsOptions, graph: "KnowledgeGraph", concepts: "LabelConcepts", relation: str) -> Report:
    """Print or write the pairs of labels that a relation joins."""
    from wsabie.io.formats.pair_list import read_excluded_pairs, write_id_pairs

    target, without = options.out, options.exclude_pairs
    excluded = set() if without is None else read_excluded_pairs(without)
    index_pairs, ids = list(concepts.pairs(relation, inherit=options.inherit)), concepts.ids()
    remaining_pairs = [(i, j) for i, j in index_pairs if frozenset((ids[i], ids[j])) not in excluded]
    pairs = [(concepts.labels[i], concepts.labels[j]) for i, j in remaining_pairs]
    if index_pairs and not remaining_pairs:
        raise InputError(f"{without} leaves out all pairs of labels by {relation}; leave out fewer")
    if not pairs:
        relations, more = ", ".join(_list_relations(graph)), ", and --inherit adds those of more general names"
        fact = f"{relation} joins no two labels of {options.labels}"
        raise InputError(f"{fact}; known are {relations}{'' if options.inherit else more}")
    if target is not None:
        write_id_pairs(target, pairs)
    n_excluded = len(index_pairs) - len(remaining_pairs)
    yield {**_name_output(target), "relation": relation, "pairs": pairs, "left_out": n_excluded}
    for pair in pairs if target is None else ():
        print_row(*pair)
    left_out, target_note = f", {n_excluded:,} left out" if without else "", f", in {target}" if target else ""
    print_note(f"{format_count(len(pairs), 'pair')} of labels by {relation}{left_out}{target_note}")


def _name_output(target: Path | None) -> dict[str, Path]:
    return {} if target is None else {"out": target}


def _list_relations(graph: "KnowledgeGraph") -> list[str]:
    from wsabie.vocabulary.knowledge_graph import INVERSES

    inverses = {stated: name for name, stated in INVERSES.items()}
    return [relation for name in graph.relations for relation in (name, inverses.get(f"^{name}", f"^{name}"))]


class HierarchyCommandOptions(shared.OutputOptions):
    """Options of `wsabie hierarchy`."""

    kind: Literal["from-text"] = argument("from-text: mine running English text.", metavar="KIND")
    src: Path = argument("Plain text, or gzip of it.", metavar="SRC")
    out: Path = option("TSV to write: child, parent, count; --hierarchy reads it.")
    min_count: int = option("Leave out pairs that are said less often.", 1, min=1)
    labels: Path | None = option("Keep these children: a file of one label a line, or a model folder.")


@command(
    "hierarchy from-text articles.txt --out is-a.tsv",
    "hierarchy from-text articles.txt.gz --out is-a.tsv --min-count 3 --labels birds",
)
def hierarchy(options: HierarchyCommandOptions) -> Report:
    """Mine an is-a list from text: "a toad is an amphibian"."""
    from wsabie.io.vocabulary.hierarchy_files import mine_hierarchy, write_hierarchy
    from wsabie.vocabulary.concept_hierarchy import make_lookup_key

    src, target, min_count, labels = options.src, options.out, options.min_count, options.labels
    options.check_outputs(("is-a", target), inputs=(src, labels))
    names = None if labels is None else set(map(make_lookup_key, read_label_file(labels)))
    mined = mine_hierarchy(src, None if names is None else names.__contains__, progress=TerminalProgress())
    pairs = mined.pairs(min_count)
    if not pairs:
        minimum, remedy = ("", "") if min_count == 1 else (f" {min_count} times", ", or a lower --min-count")
        fact = f"{src} never says that something is a kind of something{minimum}"
        raise InputError(f"{fact}; give more English text{remedy}")
    write_hierarchy(target, pairs)
    if mined.max_undercount:
        undercount = f"{mined.max_undercount:,}"
        print_note(f"the rarest pairs were forgotten on the way: counts may be too low by up to {undercount}")
    counts = {"pairs": len(pairs), "children": len({p[0] for p in pairs}), "parents": len({p[1] for p in pairs})}
    yield {"out": target, **counts, "max_undercount": mined.max_undercount}
    children, parents = format_count(counts["children"], "child", "children"), format_count(counts["parents"], "parent")
    out.print(f"{target}: {format_count(len(pairs), 'pair')} of {children}, {parents}")


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
    inherit: bool = option("With --labels: what is said of vehicles is said of cars too.", scope=_NO_MEANINGS)


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
    """Make pairs for a relation of a space, from listeners or from WordNet."""
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
    if not pairs:
        shared = f"{format_count(least, 'common listener')} and a cosine of {cosine:g}"
        raise InputError(f"no two songs of {src} have {shared}; give a lower --min-listeners or --min-cosine")
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
