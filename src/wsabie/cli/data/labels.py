"""`wsabie labels`: meanings of names, concepts of labels, and labels that a name stands for."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.command import NotFor, command, options, refuse_options_for
from wsabie.cli.knowledge_files import load_knowledge, match_label_concepts
from wsabie.cli.options import Knowledge, OutputOptions, RelationPairs, Table
from wsabie.cli.output import escape_line, format_count, out, print_note, show_json, show_table
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.vocabulary.concept_matching import ExpandedLabel, LabelConcepts
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

_MAX_SHOWN, _MAX_HOPS = 8, 99
_KINDS = "about", "match", "under", "pairs", "within"


def _only_for(subject: str, *kinds: str) -> NotFor:
    return NotFor(**{kind: subject for kind in _KINDS if kind not in kinds})


_NOT_ABOUT = NotFor(about="which labels there are; it belongs to the others")


@options
class LabelsOptions:
    """Options of `wsabie labels`."""

    kind: Annotated[
        Literal["about", "match", "under", "pairs", "within"],
        typer.Argument(
            metavar="KIND",
            help="about: what a name may mean; match: which synset each label means; under: the labels that a name "
            "stands for; pairs: the labels that a relation joins; within: what is at most NAME hops from labels.",
        ),
    ]
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A name or an id for about and under; a relation for pairs, such as has-part; hops for within.",
        ),
    ] = None
    knowledge: Knowledge = None
    pairs: RelationPairs = None
    labels: Annotated[
        Path | None, typer.Option(help="For all but about: a file of one label a line, or a model folder."), _NOT_ABOUT
    ] = None
    table: Annotated[Table, _NOT_ABOUT] = None
    out: Annotated[
        Path | None,
        typer.Option(
            help="match, pairs, within: TSV to write: label, id, method, name, gloss; label, label; id, name."
        ),
        _only_for("where to write; it belongs to match, pairs and within", "match", "pairs", "within"),
    ] = None
    max_depth: Annotated[
        int | None,
        typer.Option(min=1, help="under: steps down at most."),
        _only_for("what lies under a name; it belongs to under", "under"),
    ] = None
    inherit: Annotated[
        bool,
        typer.Option(help="under, pairs: also parts of what is more general."),
        _only_for("what is more general; it belongs to under and pairs", "under", "pairs"),
    ] = False
    exclude_pairs: Annotated[
        Path | None,
        typer.Option(help="pairs: id TAB id lines of pairs that do not hold, in either order."),
        _only_for("which pairs do not hold; it belongs to pairs", "pairs"),
    ] = None
    output: OutputOptions = OutputOptions()


@command(
    "labels match --knowledge /usr/share/wordnet --labels birds --out concepts.tsv",
    "labels under bird --knowledge /usr/share/wordnet --labels birds",
)
def labels(options: LabelsOptions) -> None:
    """Look up labels in WordNet and other knowledge: meanings, synsets, kinds and parts."""
    kind, name = options.kind, options.name
    if not options.knowledge and not options.pairs:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    refuse_options_for(kind, options)
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
    check_output_paths((written, options.out), inputs=inputs)
    graph = load_knowledge(options.knowledge or (), options.pairs or ())
    if options.labels is None:
        _show_meanings(graph, name or "", options.output.json)
        return
    concepts = match_label_concepts(graph, options.labels, options.table)
    if kind == "match":
        _show_matches(options, concepts)
    elif kind == "within":
        _show_nearby_concepts(options, graph, concepts, name or "")
    elif kind == "pairs":
        _show_pairs(options, graph, concepts, name or "")
    else:
        _show_labels_under(options, graph, concepts, name or "")


def _show_meanings(graph: "KnowledgeGraph", name: str, json: bool) -> None:
    """Print the meanings of a name, and the relations of the first one."""
    from wsabie.vocabulary.label_names import format_unknown_label

    senses = [graph.concept(concept) for concept in graph.senses(name)]
    if not senses:
        raise UnknownLabelError(format_unknown_label(name, list(graph.all_names()), "name"))
    related = {relation: ids for relation in _list_relations(graph) if (ids := graph.related(senses[0].id, relation))}
    if json:
        entries = [
            {"id": sense.id, "names": [*zip(sense.names, sense.languages, strict=True)], "gloss": sense.gloss}
            for sense in senses
        ]
        show_json({"schema": 1, "name": name, "senses": entries, "related": related})
        return
    for sense in senses:
        parts = [text for text in (", ".join(sense.names), sense.gloss) if text]
        out.print(escape_line("  ".join([sense.id, ": ".join(parts)]).rstrip()))
        for relation, ids in (related if sense is senses[0] else {}).items():
            more = f" and {len(ids) - _MAX_SHOWN:,} more" if len(ids) > _MAX_SHOWN else ""
            out.print(escape_line(f"  {relation}: {', '.join(map(graph.name, ids[:_MAX_SHOWN]))}{more}"))


def _show_matches(options: LabelsOptions, concepts: "LabelConcepts") -> None:
    """Show the concept of each label, and write a table that the user can correct."""
    from wsabie.io.vocabulary.knowledge_graphs import write_label_table

    target = options.out
    if target is not None:
        write_label_table(target, concepts)
    counts = concepts.counts
    if options.output.json:
        written = {} if target is None else {"out": str(target)}
        meanings = dict(zip(concepts.labels, concepts.concepts, strict=True))
        show_json({"schema": 1, **written, "counts": counts, "missing": concepts.missing, "concepts": meanings})
        return
    summary = ", ".join(
        f"{count:,} {'known of nothing' if name == 'missing' else f'by {name}'}" for name, count in counts.items()
    )
    out.print(f"{options.labels}: {format_count(len(concepts.labels), 'label')}: {summary}")
    if target is not None:
        print_note(f"{target}: correct its ids where they are wrong, and give it as --table")


def _show_labels_under(options: LabelsOptions, graph: "KnowledgeGraph", concepts: "LabelConcepts", name: str) -> None:
    """Print the labels that a name stands for."""
    expansion = concepts.expand(name, levels=options.max_depth, inherit=options.inherit)

    def serialize_labels(expanded: "list[ExpandedLabel]", with_whole: bool) -> list[Any]:
        return [
            {"label": concepts.labels[label.place], "steps": label.steps, **({"of": label.via} if with_whole else {})}
            for label in expanded
        ]

    if options.output.json:
        kinds, parts = serialize_labels(expansion.kinds, False), serialize_labels(expansion.parts, True)
        show_json({"schema": 1, "name": name, "concept": expansion.concept, "kinds": kinds, "parts": parts})
        return
    if not expansion.kinds and not expansion.parts:
        raise InputError(
            f"no label of {options.labels} is a kind or part of {graph.name(expansion.concept)}; give other labels"
        )
    lines = [
        [concepts.labels[kind.place], "kind" if kind.steps else "itself", f"{kind.steps}"] for kind in expansion.kinds
    ]
    lines += [
        [concepts.labels[part.place], f"part of {graph.name(part.via)}", f"{part.steps}"] for part in expansion.parts
    ]
    gloss = graph.concept(expansion.concept).gloss
    out.print(escape_line(f"{graph.name(expansion.concept)} ({expansion.concept}){f': {gloss}' if gloss else ''}"))
    show_table("", ["label", "", "steps"], lines)


def _show_nearby_concepts(
    options: LabelsOptions, graph: "KnowledgeGraph", concepts: "LabelConcepts", hops: str
) -> None:
    """Print or write the concepts within `hops` is-a pairs of some labels, including their own."""
    target = options.out
    if not hops.isdecimal() or len(hops) > len(f"{_MAX_HOPS}"):
        raise InputError(f"{hops!r} is no number of hops; write one from 0 to {_MAX_HOPS}, such as 2")
    nearby = graph.hierarchy(names=False).within([concept for concept in concepts.concepts if concept], int(hops))
    concept_ids = [graph.concept(concept).id for concept in nearby]
    if not concept_ids:
        raise InputError(f"no is-a pair is known of the labels of {options.labels}; give files that have some")
    if target is not None:
        with replace_file(target) as draft:
            draft.write_text(
                "".join(f"{concept_id}\t{escape_line(graph.name(concept_id))}\n" for concept_id in concept_ids),
                encoding="utf-8",
            )
    if options.output.json:
        written = {} if target is None else {"out": str(target)}
        show_json({"schema": 1, **written, "hops": int(hops), "concepts": concept_ids})
        return
    for concept_id in concept_ids if target is None else ():
        sys.stdout.write(f"{concept_id}\t{escape_line(graph.name(concept_id))}\n")
    distance = f"at most {format_count(int(hops), 'hop')} from {format_count(len(concepts.labels), 'label')}"
    print_note(f"{format_count(len(concept_ids), 'concept')} {distance}" + (f", in {target}" if target else ""))


def _show_pairs(options: LabelsOptions, graph: "KnowledgeGraph", concepts: "LabelConcepts", relation: str) -> None:
    """Print or write the pairs of labels that a relation joins."""
    from wsabie.io.formats.pair_list import read_excluded_pairs, write_id_pairs

    target, without, inherit = options.out, options.exclude_pairs, options.inherit
    excluded = set() if without is None else read_excluded_pairs(without)
    index_pairs = list(concepts.pairs(relation, inherit=inherit))
    ids = concepts.ids()
    kept_pairs = [(i, j) for i, j in index_pairs if frozenset((ids[i], ids[j])) not in excluded]
    pairs = [(concepts.labels[i], concepts.labels[j]) for i, j in kept_pairs]
    if index_pairs and not kept_pairs:
        raise InputError(f"{without} leaves out all pairs of labels by {relation}; leave out fewer")
    if not pairs:
        raise InputError(
            f"{relation} joins no two labels of {options.labels}; known are {', '.join(_list_relations(graph))}"
            + ("" if inherit else ", and --inherit adds what follows from more general names")
        )
    if target is not None:
        write_id_pairs(target, pairs)
    if options.output.json:
        written = {} if target is None else {"out": str(target)}
        show_json(
            {
                "schema": 1,
                **written,
                "relation": relation,
                "pairs": pairs,
                "left_out": len(index_pairs) - len(kept_pairs),
            }
        )
        return
    for first, second in pairs if target is None else ():
        sys.stdout.write(
            f"{escape_line(first)}\t{escape_line(second)}\n"
        )  # as it is: `out` would turn the tab into blanks
    left_out = f", {len(index_pairs) - len(kept_pairs):,} left out" if without is not None else ""
    print_note(
        f"{format_count(len(pairs), 'pair')} of labels by {relation}{left_out}" + (f", in {target}" if target else "")
    )


def _list_relations(graph: "KnowledgeGraph") -> list[str]:
    from wsabie.vocabulary.knowledge_graph import INVERSES

    inverses = {stated: name for name, stated in INVERSES.items()}
    return [relation for name in graph.relations for relation in (name, inverses.get(f"^{name}", f"^{name}"))]
