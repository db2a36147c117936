"""`wsabie labels`: what is known of names, which label means what, which labels a name stands for."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.faces.cli.meanings import matched_labels
from wsabie.faces.cli.terminal import note, one_line, out, plural, show_json, show_table
from wsabie.storage.atomic import replacing

if TYPE_CHECKING:
    from wsabie.labels.knowledge import Knowledge
    from wsabie.labels.matching import Reached

_SHOWN, _MOST_HOPS = 8, 99


def about_command(known: "Knowledge", name: str, json: bool) -> None:
    """Print what a name may mean, and how the first of it is related."""
    from wsabie.labels.names import unknown_label

    senses = [known.concept(concept) for concept in known.senses(name)]
    if not senses:
        raise UnknownLabelError(unknown_label(name, list(known.all_names()), "name"))
    related = {relation: ids for relation in _both_ways(known) if (ids := known.related(senses[0].id, relation))}
    if json:
        listed = [
            {"id": one.id, "names": [*zip(one.names, one.languages, strict=True)], "gloss": one.gloss} for one in senses
        ]
        show_json({"schema": 1, "name": name, "senses": listed, "related": related})
        return
    for one in senses:
        called = [said for said in (", ".join(one.names), one.gloss) if said]
        out.print(one_line("  ".join([one.id, ": ".join(called)]).rstrip()))
        for relation, ids in (related if one is senses[0] else {}).items():
            more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
            out.print(one_line(f"  {relation}: {', '.join(map(known.name, ids[:_SHOWN]))}{more}"))


def match_command(known: "Knowledge", labels: Path, table: Path | None, target: Path | None, json: bool) -> None:
    """Find out which concept each label means, and write that as a table which can be corrected."""
    from wsabie.sources.knowledge import write_label_table

    matched = matched_labels(known, labels, table)
    if target is not None:
        write_label_table(target, matched)
    counts = matched.counts
    if json:
        written = {} if target is None else {"out": str(target)}
        meant = dict(zip(matched.labels, matched.concepts, strict=True))
        show_json({"schema": 1, **written, "counts": counts, "missing": matched.missing, "meant": meant})
        return
    how = ", ".join(f"{n:,} {'known of nothing' if name == 'missing' else f'by {name}'}" for name, n in counts.items())
    out.print(f"{labels}: {plural(len(matched.labels), 'label')}: {how}")
    if target is not None:
        note(f"{target}: correct its ids where they are wrong, and give it as --table")


def under_command(
    known: "Knowledge", name: str, labels: Path, table: Path | None, levels: int | None, inherit: bool, json: bool
) -> None:
    """Print the labels that a name stands for."""
    matched = matched_labels(known, labels, table)
    expansion = matched.expand(name, levels=levels, inherit=inherit)

    def listed(reached: "list[Reached]", via: bool) -> list[Any]:
        return [
            {"label": matched.labels[one.place], "steps": one.steps, **({"of": one.via} if via else {})}
            for one in reached
        ]

    if json:
        parts = listed(expansion.parts, True)
        show_json({"schema": 1, "name": name, "concept": expansion.concept, "kinds": listed(expansion.kinds, False),
                   "parts": parts})  # fmt: skip
        return
    if not expansion.kinds and not expansion.parts:
        raise InputError(
            f"no label of {labels} is a kind or part of {known.name(expansion.concept)}; give other labels"
        )
    lines = [[matched.labels[one.place], "kind" if one.steps else "itself", f"{one.steps}"] for one in expansion.kinds]
    lines += [[matched.labels[one.place], f"part of {known.name(one.via)}", f"{one.steps}"] for one in expansion.parts]
    gloss = known.concept(expansion.concept).gloss
    out.print(one_line(f"{known.name(expansion.concept)} ({expansion.concept}){f': {gloss}' if gloss else ''}"))
    show_table("", ["label", "", "steps"], lines)


def within_command(
    known: "Knowledge", hops: str, labels: Path, table: Path | None, target: Path | None, json: bool
) -> None:
    """Print or write the concepts at most so many is-a pairs away from some labels, these among them."""
    if not hops.isdecimal() or len(hops) > len(f"{_MOST_HOPS}"):
        raise InputError(f"{hops!r} is no number of hops; write one from 0 to {_MOST_HOPS}, such as 2")
    matched = matched_labels(known, labels, table)
    near = known.hierarchy(names=False).within([concept for concept in matched.concepts if concept], int(hops))
    found = [known.concept(concept).id for concept in near]
    if not found:
        raise InputError(f"no is-a pair is known of the labels of {labels}; give files that have some")
    if target is not None:
        with replacing(target) as draft:
            draft.write_text("".join(f"{one}\t{one_line(known.name(one))}\n" for one in found), encoding="utf-8")
    if json:
        written = {} if target is None else {"out": str(target)}
        show_json({"schema": 1, **written, "hops": int(hops), "concepts": found})
        return
    for one in found if target is None else ():
        sys.stdout.write(f"{one}\t{one_line(known.name(one))}\n")
    near_by = f"at most {plural(int(hops), 'hop')} from {plural(len(matched.labels), 'label')}"
    note(f"{plural(len(found), 'concept')} {near_by}" + (f", in {target}" if target else ""))


def pairs_command(
    known: "Knowledge",
    relation: str,
    labels: Path,
    table: Path | None,
    inherit: bool,
    without: Path | None,
    target: Path | None,
    json: bool,
) -> None:
    """Print or write the pairs of labels that a relation joins."""
    from wsabie.sources.pairs import read_left_out, write_pairs

    matched = matched_labels(known, labels, table)
    wrong = set() if without is None else read_left_out(without)
    found = list(matched.pairs(relation, inherit=inherit))
    ids = matched.ids()
    kept = [(one, other) for one, other in found if frozenset((ids[one], ids[other])) not in wrong]
    pairs = [(matched.labels[one], matched.labels[other]) for one, other in kept]
    if found and not kept:
        raise InputError(f"{without} leaves out all pairs of labels by {relation}; leave out fewer")
    if not pairs:
        raise InputError(
            f"{relation} joins no two labels of {labels}; known are {', '.join(_both_ways(known))}"
            + ("" if inherit else ", and --inherit adds what follows from more general names")
        )
    if target is not None:
        write_pairs(target, pairs)
    if json:
        written = {} if target is None else {"out": str(target)}
        show_json({"schema": 1, **written, "relation": relation, "pairs": pairs, "left_out": len(found) - len(kept)})
        return
    for one, other in pairs if target is None else ():
        sys.stdout.write(f"{one_line(one)}\t{one_line(other)}\n")  # as it is: `out` would turn the tab into blanks
    left = f", {len(found) - len(kept):,} left out" if without is not None else ""
    note(f"{plural(len(pairs), 'pair')} of labels by {relation}{left}" + (f", in {target}" if target else ""))


def _both_ways(known: "Knowledge") -> list[str]:
    from wsabie.labels.knowledge import INVERSES

    inverses = {stated: name for name, stated in INVERSES.items()}
    return [way for name in known.relations for way in (name, inverses.get(f"^{name}", f"^{name}"))]
