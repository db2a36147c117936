"""`wsabie collection labels`: its actions, and the display of their results."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from wsabie.cli.collection.shared_options import resolve_person
from wsabie.cli.terminal.output import (
    TerminalProgress,
    escape_line,
    format_count,
    out,
    print_note,
    show_json,
    show_table,
)
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.merge_proposals.proposal_search import MergeProposal


def run_list(
    collection: "Collection", names: Sequence[str], _: str | None, json: bool, k: int = 20, order: Any = "items"
) -> None:
    """Print labels with their counts and names."""
    from wsabie.collection.labels.label_list import list_labels

    page = list_labels(collection, containing=" ".join(names), order=order, k=k)
    if json:
        rows = [label._asdict() | {"accuracy": label.accuracy} for label in page.labels]
        show_json({"schema": 1, "found": page.found, "labels": rows})
        return
    lines = [
        [
            label.name,
            f"{label.items:,}",
            f"{label.rejected:,}",
            "" if label.accuracy is None else f"{label.accuracy:.0%} of {label.suggested:,}",
            label.language,
            label.parent or "",
            ", ".join(label.synonyms[:3]) + (" ..." if len(label.synonyms) > 3 else ""),
        ]
        for label in page.labels
    ]
    title = f"{collection.folder}: {format_count(page.found, 'label')}"
    title += f", {len(lines):,} shown" if len(lines) < page.found else ""
    show_table(title, ["label", "items", "rejected", "suggestions right", "language", "below", "also"], lines)


def run_show(collection: "Collection", names: Sequence[str], _: str | None, json: bool, k: int = 10) -> None:
    """Print the details of a label."""
    from wsabie.collection.overview.label_details import find_label_neighbours, read_label_details

    label_id = _find_label_id(collection, names)
    details, neighbours = read_label_details(collection, label_id), find_label_neighbours(collection, label_id, k)
    label, held_out = details.label, details.held_out
    if json:
        relations = {
            name: [entry._asdict() for entry in getattr(details, name)] for name in ("names", "above", "below", "apart")
        }
        evaluation = held_out and held_out._asdict() | {"limits": [limit._asdict() for limit in held_out.limits]}
        fields = (
            label._asdict()
            | relations
            | {"accuracy": label.accuracy, "waiting": details.waiting, "held_out": evaluation}
        )
        show_json(
            {"schema": 1} | fields | {"near": [near.label._asdict() | {"cosine": near.cosine} for near in neighbours]}
        )
        return
    decided_accuracy = "" if label.accuracy is None else f"{label.accuracy:.0%} of {label.suggested:,} by people"
    held_out_accuracy = (
        f"{held_out.right:,} of {held_out.suggested:,} on held-out items" if held_out and held_out.suggested else ""
    )
    rows = {
        "language": label.language,
        "meaning": label.wordnet,
        "also": ", ".join(
            f"{synonym.name} ({synonym.language})" if synonym.language else synonym.name for synonym in details.names
        ),
        "above": ", ".join(parent.name for parent in details.above),
        "below": ", ".join(child.name for child in details.below),
        "kept apart from": ", ".join(excluded.name for excluded in details.apart),
        "items": f"{label.items:,}, {label.rejected:,} rejected, {details.waiting:,} suggested",
        "suggestions right": ", ".join(filter(None, (decided_accuracy, held_out_accuracy))),
        "near": ", ".join(f"{near.label.name} {near.cosine:.2f}" for near in neighbours),
    }
    show_table(label.name, ["", ""], [[name, value] for name, value in rows.items() if value])


def run_edit(
    collection: "Collection",
    names: Sequence[str],
    by: str | None,
    json: bool,
    language: str | None = None,
    wordnet: str | None = None,
    drop: Sequence[str] = (),
) -> None:
    """Change the language, meaning or synonyms of a label."""
    from wsabie.collection.labels.label_edits import edit_label

    if language is None and wordnet is None and not drop:
        raise InputError("say what is to change: --language, --wordnet, or a name to --drop")
    label_id = _find_label_id(collection, names)
    entry = edit_label(collection, label_id, resolve_person(by), language=language, wordnet=wordnet, remove=drop)
    if json:
        show_json({"schema": 1, "done": "edit", "labels": list(names), "entry": entry})
        return
    print_note(f"{names[0]} was so already" if entry is None else f"{names[0]} is changed; `labels DIR show` tells how")


def run_tidy(
    collection: "Collection",
    names: Sequence[str],
    by: str | None,
    json: bool,
    k: int = 20,
    knowledge: Sequence[Path] | None = None,
    least: float | None = None,
    keep: str = "",
    merge_above: float | None = None,
) -> None:
    """Print merge proposals, or merge the best of them."""
    from wsabie.collection.merge_proposals.proposal_search import LEAST, apply_proposals, find_proposals
    from wsabie.collection.merge_proposals.proposal_store import refresh_proposals
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph

    if names:
        raise InputError(f"tidy looks at all labels; leave {names[0]!r} out")
    progress = TerminalProgress()
    if merge_above is not None:
        graph = read_knowledge_graph(*knowledge) if knowledge else None
        result = find_proposals(collection, knowledge=graph, k=None, least=merge_above, keep=keep, progress=progress)
        merges = apply_proposals(collection, result.proposals, resolve_person(by))
        if json:
            show_json({"schema": 1, **merges._asdict()})
            return
        print_note(
            f"merged {format_count(merges.merged, 'label')} into {merges.into:,}; "
            f"{format_count(merges.moved, 'annotation')} moved"
        )
        return
    result = refresh_proposals(
        collection, knowledge=knowledge or (), least=LEAST if least is None else least, keep=keep, progress=progress
    )
    result = result._replace(proposals=result.proposals[:k])
    if json:
        entries = [_serialize_proposal(proposal) for proposal in result.proposals]
        counts = {"labels": result.labels, "found": result.found, "not_asked": result.not_asked}
        show_json({"schema": 1, **counts, "proposals": entries})
        return
    for evidence_kind, reason in result.not_asked.items():
        print_note(f"not asked: {evidence_kind} ({reason})")
    for number, proposal in enumerate(result.proposals, 1):
        _show_proposal(number, proposal)
    out.print(f"{format_count(result.found, 'proposal')} of {result.labels:,} labels, {len(result.proposals):,} shown")
    if result.proposals:
        print_note(f"next: wsabie collection labels {quote(str(collection.folder))} merge A B, or apart A B")


def run_fill(
    collection: "Collection",
    names: Sequence[str],
    by: str | None,
    json: bool,
    knowledge: Sequence[Path] | None = None,
    table: Path | None = None,
    dry_run: bool = False,
) -> None:
    """Add meanings, parents and synonyms from knowledge files to labels, or print the plan."""
    from wsabie.collection.labels.label_enrichment import enrich_labels, plan_enrichment
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph, read_label_table

    if names:
        raise InputError(f"fill looks at all labels; leave {names[0]!r} out")
    if not knowledge:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    graph, concept_table = read_knowledge_graph(*knowledge), None if table is None else read_label_table(table)
    if dry_run:
        entries = plan_enrichment(collection, graph, table=concept_table)
        if json:
            show_json({"schema": 1, "would": [entry._asdict() for entry in entries]})
            return
        lines = [
            [entry.label, entry.wordnet, entry.language, entry.parent, ", ".join(entry.synonyms)] for entry in entries
        ]
        title = f"{collection.folder}: {format_count(len(entries), 'label')} would get"
        show_table(title, ["label", "meaning", "language", "below", "also"], lines)
        return
    result = enrich_labels(collection, graph, resolve_person(by), table=concept_table)
    if json:
        show_json({"schema": 1, **result._asdict()})
        return
    print_note(
        f"of {format_count(result.labels, 'label')}: {format_count(result.meanings, 'meaning')}, "
        f"{format_count(result.languages, 'language')}, "
        f"{format_count(result.parents, 'parent')}, {format_count(result.synonyms, 'synonym')}; {result.unknown:,} "
        "are not "
        "known"
    )


def run_change(
    action: str, collection: "Collection", names: Sequence[str], by: str | None, json: bool, **options: Any
) -> None:
    """Merge, rename, nest, name, keep apart or delete labels."""
    change = _CHANGES[action]
    if not change.min_names <= len(names) <= change.max_names:
        raise InputError(f"`labels DIR {action}` takes {change.usage}; {len(names)} are given")
    message, facts = change.apply(collection, names, resolve_person(by), **options)
    if json:
        show_json({"schema": 1, "done": action, "labels": list(names), **facts})
        return
    print_note(message)


ChangeMessage = tuple[str, dict[str, Any]]
"""Message about a change, and its facts for JSON."""


def _merge(collection: "Collection", names: Sequence[str], by: str) -> ChangeMessage:
    from wsabie.collection.labels import label_edits, label_list

    *sources, into = label_list.find_label_numbers(collection, names)
    result = label_edits.merge_labels(collection, sources, into, by)
    message = (
        f"merged into {result.into}: {format_count(result.moved, 'annotation')} moved, {result.together:,} "
        "were there already"
    )
    return message, result._asdict()


def _keep_apart(collection: "Collection", names: Sequence[str], by: str) -> ChangeMessage:
    from wsabie.collection.labels import label_edits, label_list

    result = label_edits.exclude_merge(collection, label_list.find_label_numbers(collection, names), by)
    return f"kept apart: {', '.join(names)}", result._asdict()


def _delete(collection: "Collection", names: Sequence[str], by: str, with_tags: bool = False) -> ChangeMessage:
    from wsabie.collection.labels import label_edits, label_list

    result = label_edits.delete_labels(
        collection, label_list.find_label_numbers(collection, names), by, with_tags=with_tags
    )
    moved = f"; {format_count(result.children, 'label')} below moved up" if result.children else ""
    undo_command = f"to take it back: wsabie collection undo {quote(str(collection.folder))} {result.entry}"
    return (
        f"deleted {', '.join(result.labels)} with {format_count(result.tags, 'tag')}{moved}; {undo_command}",
        result._asdict(),
    )


def _rename(collection: "Collection", names: Sequence[str], by: str) -> ChangeMessage:
    from wsabie.collection.labels.label_edits import rename_label

    old, new = names
    rename_label(collection, old, new, by)
    return f"{old} is called {new} now; the old name still finds it", {}


def _set_parent(collection: "Collection", names: Sequence[str], by: str) -> ChangeMessage:
    from wsabie.collection.labels.label_edits import set_label_parent

    label, parent = names[0], names[1] if len(names) > 1 else None
    set_label_parent(collection, label, parent, by)
    return f"{label} is below {parent or 'nothing'} now", {}


def _add_synonyms(collection: "Collection", names: Sequence[str], by: str, language: str = "") -> ChangeMessage:
    from wsabie.collection.labels.label_edits import add_label_synonyms

    label, *synonyms = names
    add_label_synonyms(collection, label, synonyms, by, language)
    return f"{label} is also called {', '.join(synonyms)}", {}


class _Change(NamedTuple):
    """Change of labels, with its usage and its numbers of names."""

    apply: Callable[..., ChangeMessage]
    usage: str
    min_names: int
    max_names: int = 1_000


_CHANGES = {
    "merge": _Change(_merge, "A ... B", 2),
    "apart": _Change(_keep_apart, "A B ...", 2),
    "rename": _Change(_rename, "OLD NEW", 2, 2),
    "delete": _Change(_delete, "LABEL ...", 1),
    "parent": _Change(_set_parent, "LABEL [PARENT]", 1, 2),
    "synonym": _Change(_add_synonyms, "LABEL OTHER ...", 2),
}
ACTIONS: dict[str, Callable[..., None]] = {
    "list": run_list,
    "show": run_show,
    "tidy": run_tidy,
    "edit": run_edit,
    "fill": run_fill,
    **{action: partial(run_change, action) for action in _CHANGES},
}
"""Actions of `labels`: functions of the collection, label names, author, JSON flag and options."""


def _find_label_id(collection: "Collection", names: Sequence[str]) -> int:
    from wsabie.collection.labels.label_list import find_label_numbers

    if len(names) != 1:
        raise InputError(f"give one label; {len(names)} are given")
    return find_label_numbers(collection, names)[0]


def _show_proposal(number: int, proposal: "MergeProposal") -> None:
    sources = ", ".join(f"{label.name} ({label.items:,})" for label in proposal.labels)
    score = round(1000 * proposal.score) // 10 / 100  # down: --merge-above takes what is shown
    out.print(escape_line(f"{number:>3}. {score:.2f}  {sources} -> {proposal.into.name} ({proposal.into.items:,})"))
    for reason in proposal.why:
        pair = f"{reason.one}, {reason.other}: " if len(proposal.why) > 1 else ""
        arguments = [("but " if evidence.weight < 0 else "") + evidence.told for evidence in reason.evidence]
        out.print(escape_line(f"           {pair}{'; '.join(arguments)}"))


def _serialize_proposal(proposal: "MergeProposal") -> dict[str, Any]:
    why = [
        reason._asdict() | {"evidence": [evidence._asdict() for evidence in reason.evidence]} for reason in proposal.why
    ]
    return {
        "score": proposal.score,
        "into": proposal.into._asdict(),
        "labels": [label._asdict() for label in proposal.labels],
        "why": why,
    }
