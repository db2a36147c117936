"""`wsabie labels`: meanings of names, concepts of labels, and labels that a name stands for."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.knowledge_files import match_label_concepts
from wsabie.cli.terminal.output import escape_line, format_count, out, print_note, show_json, show_table
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.storage.atomic_files import replace_file

if TYPE_CHECKING:
    from wsabie.vocabulary.concept_matching import ExpandedLabel
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

_MAX_SHOWN, _MAX_HOPS = 8, 99


def run_about(graph: "KnowledgeGraph", name: str, json: bool) -> None:
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


def run_match(graph: "KnowledgeGraph", labels: Path, table: Path | None, target: Path | None, json: bool) -> None:
    """Match each label to a concept, and write a table that the user can correct."""
    from wsabie.io.vocabulary.knowledge_graphs import write_label_table

    concepts = match_label_concepts(graph, labels, table)
    if target is not None:
        write_label_table(target, concepts)
    counts = concepts.counts
    if json:
        written = {} if target is None else {"out": str(target)}
        meanings = dict(zip(concepts.labels, concepts.concepts, strict=True))
        show_json({"schema": 1, **written, "counts": counts, "missing": concepts.missing, "meant": meanings})
        return
    summary = ", ".join(
        f"{count:,} {'known of nothing' if name == 'missing' else f'by {name}'}" for name, count in counts.items()
    )
    out.print(f"{labels}: {format_count(len(concepts.labels), 'label')}: {summary}")
    if target is not None:
        print_note(f"{target}: correct its ids where they are wrong, and give it as --table")


def run_under(
    graph: "KnowledgeGraph", name: str, labels: Path, table: Path | None, levels: int | None, inherit: bool, json: bool
) -> None:
    """Print the labels that a name stands for."""
    concepts = match_label_concepts(graph, labels, table)
    expansion = concepts.expand(name, levels=levels, inherit=inherit)

    def serialize_labels(expanded: "list[ExpandedLabel]", with_whole: bool) -> list[Any]:
        return [
            {"label": concepts.labels[label.place], "steps": label.steps, **({"of": label.via} if with_whole else {})}
            for label in expanded
        ]

    if json:
        kinds, parts = serialize_labels(expansion.kinds, False), serialize_labels(expansion.parts, True)
        show_json({"schema": 1, "name": name, "concept": expansion.concept, "kinds": kinds, "parts": parts})
        return
    if not expansion.kinds and not expansion.parts:
        raise InputError(
            f"no label of {labels} is a kind or part of {graph.name(expansion.concept)}; give other labels"
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


def run_within(
    graph: "KnowledgeGraph", hops: str, labels: Path, table: Path | None, target: Path | None, json: bool
) -> None:
    """Print or write the concepts within `hops` is-a pairs of some labels, including their own."""
    if not hops.isdecimal() or len(hops) > len(f"{_MAX_HOPS}"):
        raise InputError(f"{hops!r} is no number of hops; write one from 0 to {_MAX_HOPS}, such as 2")
    concepts = match_label_concepts(graph, labels, table)
    nearby = graph.hierarchy(names=False).within([concept for concept in concepts.concepts if concept], int(hops))
    concept_ids = [graph.concept(concept).id for concept in nearby]
    if not concept_ids:
        raise InputError(f"no is-a pair is known of the labels of {labels}; give files that have some")
    if target is not None:
        with replace_file(target) as draft:
            draft.write_text(
                "".join(f"{concept_id}\t{escape_line(graph.name(concept_id))}\n" for concept_id in concept_ids),
                encoding="utf-8",
            )
    if json:
        written = {} if target is None else {"out": str(target)}
        show_json({"schema": 1, **written, "hops": int(hops), "concepts": concept_ids})
        return
    for concept_id in concept_ids if target is None else ():
        sys.stdout.write(f"{concept_id}\t{escape_line(graph.name(concept_id))}\n")
    distance = f"at most {format_count(int(hops), 'hop')} from {format_count(len(concepts.labels), 'label')}"
    print_note(f"{format_count(len(concept_ids), 'concept')} {distance}" + (f", in {target}" if target else ""))


def run_pairs(
    graph: "KnowledgeGraph",
    relation: str,
    labels: Path,
    table: Path | None,
    inherit: bool,
    without: Path | None,
    target: Path | None,
    json: bool,
) -> None:
    """Print or write the pairs of labels that a relation joins."""
    from wsabie.io.formats.pair_list import read_excluded_pairs, write_id_pairs

    concepts = match_label_concepts(graph, labels, table)
    excluded = set() if without is None else read_excluded_pairs(without)
    index_pairs = list(concepts.pairs(relation, inherit=inherit))
    ids = concepts.ids()
    kept_pairs = [(i, j) for i, j in index_pairs if frozenset((ids[i], ids[j])) not in excluded]
    pairs = [(concepts.labels[i], concepts.labels[j]) for i, j in kept_pairs]
    if index_pairs and not kept_pairs:
        raise InputError(f"{without} leaves out all pairs of labels by {relation}; leave out fewer")
    if not pairs:
        raise InputError(
            f"{relation} joins no two labels of {labels}; known are {', '.join(_list_relations(graph))}"
            + ("" if inherit else ", and --inherit adds what follows from more general names")
        )
    if target is not None:
        write_id_pairs(target, pairs)
    if json:
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
