"""`wsabie labels`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from wsabie.cli import shared_options as shared
from wsabie.cli.framework import Report, argument, command, only_for, option, refuse_options
from wsabie.cli.knowledge_files import load_knowledge, match_label_concepts
from wsabie.cli.output import escape_line, format_count, out, print_note, print_row, show_table
from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.storage.atomic_files import write_text

if TYPE_CHECKING:
    from wsabie.vocabulary.concept_matching import LabelConcepts
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

_MAX_SHOWN, _MAX_HOPS = 8, 99
_Kind = Literal["about", "match", "under", "pairs", "within"]
_option = partial(option, kinds=get_args(_Kind))
_NO_ABOUT = only_for(get_args(_Kind), "match", "under", "pairs", "within")


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
    """Look up labels in WordNet and other knowledge.

    It shows meanings, synsets, kinds and parts.
    """
    kind, name = options.kind, options.name
    if not options.knowledge and not options.pairs:
        raise InputError("this needs a dictionary of labels; add --knowledge FILE, such as /usr/share/wordnet")
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
    from wsabie.vocabulary.name_suggestions import format_unknown_label

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

    if options.out is not None:
        write_label_table(options.out, concepts)
    counts, concept_ids = concepts.counts, dict(zip(concepts.labels, concepts.concepts, strict=True))
    yield {**_name_output(options.out), "counts": counts, "missing": concepts.missing, "concepts": concept_ids}
    methods = {name: "not found" if name == "missing" else f"by {name}" for name in counts}
    summary = ", ".join(f"{count:,} {methods[name]}" for name, count in counts.items())
    out.print(f"{options.labels}: {format_count(len(concepts.labels), 'label')}: {summary}")
    if options.out is not None:
        print_note(f"{options.out}: correct its ids where they are wrong, and give it as --table")


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
