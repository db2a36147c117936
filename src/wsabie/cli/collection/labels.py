"""`wsabie collection labels`: its actions, and the display of their results."""

from collections.abc import Callable, Sequence
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

import typer

from wsabie.cli.collection import Folder, PersonOptions, open_collection_folder
from wsabie.cli.command import NotFor, command, options, refuse_options_for
from wsabie.cli.options import Knowledge, OutputOptions, Table
from wsabie.cli.output import TerminalProgress, escape_line, format_count, out, print_note, show_json, show_table
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.merge_proposals.proposal_search import MergeProposal

LabelAction = Literal["list", "show", "tidy", "merge", "apart", "rename", "parent", "synonym", "edit", "delete", "fill"]


def _only_for(*actions: str) -> NotFor:
    return NotFor(
        **{action: f"what `labels {action}` does not ask" for action in get_args(LabelAction) if action not in actions}
    )


@options
class LabelActionOptions:
    """Options of `wsabie collection labels`."""

    folder: Folder
    action: Annotated[
        LabelAction,
        typer.Argument(
            metavar="WHAT",
            help="list: labels with their counts; show: LABEL, all that is known; tidy: labels that could be one; "
            "merge: A ... B, into B; apart: A B ..., never to be proposed again; rename: OLD NEW; "
            "parent: LABEL PARENT (without PARENT: none); synonym: LABEL OTHER ...; edit: LABEL, its --language, "
            "--wordnet, other names with --remove-name; delete: LABEL ..., with their names; "
            "fill: meanings, parents and synonyms from --knowledge.",
        ),
    ] = "list"
    names: Annotated[
        list[str] | None, typer.Argument(metavar="LABEL", help="Labels; of list, a part of their names.")
    ] = None
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, help="list, tidy: at most so many (default: 20); show: neighbours (10)."),
        _only_for("list", "tidy", "show"),
    ] = None
    order: Annotated[
        Literal["items", "name", "right"] | None,
        typer.Option(help="list: by items (default), by name, or those first of which models are wrong most often."),
        _only_for("list"),
    ] = None
    knowledge: Annotated[Knowledge, _only_for("tidy", "fill")] = None
    table: Annotated[Table, _only_for("fill")] = None
    min_score: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="tidy: score from which a pair is proposed (default: 0.7)."),
        _only_for("tidy"),
    ] = None
    keep_language: Annotated[
        str | None,
        typer.Option(metavar="LANGUAGE", help="tidy: keep labels of this one (default: the most frequent)."),
        _only_for("tidy"),
    ] = None
    merge_above: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="tidy: merge all proposals of this score, as one entry to undo."),
        _only_for("tidy"),
    ] = None
    language: Annotated[
        str | None, typer.Option(help="synonym, edit: language of the names, such as de."), _only_for("synonym", "edit")
    ] = None
    wordnet: Annotated[
        str | None,
        typer.Option(metavar="ID", help="edit: what it means, such as n02084071; '' for nothing."),
        _only_for("edit"),
    ] = None
    remove_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="edit: another name that it has no more."),
        _only_for("edit"),
    ] = None
    with_tags: Annotated[
        bool, typer.Option(help="delete: also what was decided of them, on all items."), _only_for("delete")
    ] = False
    dry_run: Annotated[bool, typer.Option(help="fill: only list what would be written down."), _only_for("fill")] = (
        False
    )
    person: PersonOptions = PersonOptions()
    output: OutputOptions = OutputOptions()

    @property
    def is_read_only(self) -> bool:
        """The action changes nothing."""
        is_proposal = self.action == "tidy" and self.merge_above is None
        return self.action in ("list", "show") or is_proposal or (self.action == "fill" and self.dry_run)


@command("collection labels photos", "collection labels photos merge puppy dog")
def labels(options: LabelActionOptions) -> None:
    """List, show, tidy, merge, rename, nest or delete the labels of a collection."""
    refuse_options_for(options.action, options)
    with open_collection_folder(options.folder, read_only=options.is_read_only) as collection:
        ACTIONS[options.action](collection, options.names or [], options)


def _list(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> None:
    """Print labels with their counts and names."""
    from wsabie.collection.labels.label_list import list_labels

    order = options.order or "items"
    page = list_labels(collection, containing=" ".join(names), order=order, k=options.k or 20)
    if options.output.json:
        rows = [label._asdict() | {"accuracy": label.accuracy} for label in page.labels]
        show_json({"schema": 1, "total": page.n_labels, "labels": rows})
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
    title = f"{collection.folder}: {format_count(page.n_labels, 'label')}"
    title += f", {len(lines):,} shown" if len(lines) < page.n_labels else ""
    show_table(title, ["label", "items", "rejected", "suggestions right", "language", "below", "also"], lines)


def _show(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> None:
    """Print the details of a label."""
    from wsabie.collection.overview.label_details import find_label_neighbours, read_label_details

    label_id = _find_label_id(collection, names)
    details, neighbours = (
        read_label_details(collection, label_id),
        find_label_neighbours(collection, label_id, options.k or 10),
    )
    label, held_out = details.label, details.held_out
    if options.output.json:
        relations = {
            name: [entry._asdict() for entry in getattr(details, name)]
            for name in ("names", "ancestors", "child_labels", "merge_exclusions")
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
        "above": ", ".join(parent.name for parent in details.ancestors),
        "below": ", ".join(child.name for child in details.child_labels),
        "kept apart from": ", ".join(excluded.name for excluded in details.merge_exclusions),
        "items": f"{label.items:,}, {label.rejected:,} rejected, {details.waiting:,} suggested",
        "suggestions right": ", ".join(filter(None, (decided_accuracy, held_out_accuracy))),
        "near": ", ".join(f"{near.label.name} {near.cosine:.2f}" for near in neighbours),
    }
    show_table(label.name, ["", ""], [[name, value] for name, value in rows.items() if value])


def _edit(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> None:
    """Change the language, meaning or synonyms of a label."""
    from wsabie.collection.labels.label_edits import edit_label

    language, wordnet, remove = options.language, options.wordnet, options.remove_name or ()
    if language is None and wordnet is None and not remove:
        raise InputError("say what is to change: --language, --wordnet, or --remove-name NAME")
    label_id = _find_label_id(collection, names)
    person = options.person.resolve()
    entry = edit_label(collection, label_id, person, language=language, wordnet=wordnet, remove=remove)
    if options.output.json:
        show_json({"schema": 1, "action": "edit", "labels": list(names), "entry": entry})
        return
    print_note(f"{names[0]} was so already" if entry is None else f"{names[0]} is changed; `labels DIR show` tells how")


def _tidy(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> None:
    """Print merge proposals, or merge the best of them."""
    from wsabie.collection.merge_proposals.proposal_search import MIN_SCORE, apply_proposals, find_proposals
    from wsabie.collection.merge_proposals.proposal_store import refresh_proposals
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph

    if names:
        raise InputError(f"tidy looks at all labels; leave {names[0]!r} out")
    progress, knowledge, keep = TerminalProgress(), options.knowledge or (), options.keep_language or ""
    if options.merge_above is not None:
        graph = read_knowledge_graph(*knowledge) if knowledge else None
        result = find_proposals(
            collection, knowledge=graph, k=None, min_score=options.merge_above, language=keep, progress=progress
        )
        merges = apply_proposals(collection, result.proposals, options.person.resolve())
        if options.output.json:
            show_json({"schema": 1, **merges._asdict()})
            return
        print_note(
            f"merged {format_count(merges.merged, 'label')} into {merges.targets:,}; "
            f"{format_count(merges.moved, 'annotation')} moved"
        )
        return
    result = refresh_proposals(
        collection,
        knowledge=knowledge,
        min_score=MIN_SCORE if options.min_score is None else options.min_score,
        language=keep,
        progress=progress,
    )
    result = result._replace(proposals=result.proposals[: options.k or 20])
    if options.output.json:
        entries = [_serialize_proposal(proposal) for proposal in result.proposals]
        counts = {"labels": result.labels, "total": result.total, "unused_sources": result.unused_sources}
        show_json({"schema": 1, **counts, "proposals": entries})
        return
    for evidence_kind, reason in result.unused_sources.items():
        print_note(f"not asked: {evidence_kind} ({reason})")
    for number, proposal in enumerate(result.proposals, 1):
        _show_proposal(number, proposal)
    out.print(f"{format_count(result.total, 'proposal')} of {result.labels:,} labels, {len(result.proposals):,} shown")
    if result.proposals:
        print_note(f"next: wsabie collection labels {quote(str(collection.folder))} merge A B, or apart A B")


def _fill(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> None:
    """Add meanings, parents and synonyms from knowledge files to labels, or print the plan."""
    from wsabie.collection.labels.label_enrichment import enrich_labels, plan_enrichment
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph, read_label_table

    if names:
        raise InputError(f"fill looks at all labels; leave {names[0]!r} out")
    knowledge, table = options.knowledge, options.table
    if not knowledge:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    graph, concept_table = read_knowledge_graph(*knowledge), None if table is None else read_label_table(table)
    if options.dry_run:
        entries = plan_enrichment(collection, graph, table=concept_table)
        if options.output.json:
            show_json({"schema": 1, "plan": [entry._asdict() for entry in entries]})
            return
        lines = [
            [entry.label, entry.wordnet, entry.language, entry.parent, ", ".join(entry.synonyms)] for entry in entries
        ]
        title = f"{collection.folder}: {format_count(len(entries), 'label')} would get"
        show_table(title, ["label", "meaning", "language", "below", "also"], lines)
        return
    result = enrich_labels(collection, graph, options.person.resolve(), table=concept_table)
    if options.output.json:
        show_json({"schema": 1, **result._asdict()})
        return
    print_note(
        f"of {format_count(result.labels, 'label')}: {format_count(result.meanings, 'meaning')}, "
        f"{format_count(result.languages, 'language')}, "
        f"{format_count(result.parents, 'parent')}, {format_count(result.synonyms, 'synonym')}; {result.unknown:,} "
        "are not "
        "known"
    )


def _change(action: str, collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> None:
    """Merge, rename, nest, name, keep apart or delete labels."""
    change = _CHANGES[action]
    if not change.min_names <= len(names) <= change.max_names:
        raise InputError(f"`labels DIR {action}` takes {change.usage}; {len(names)} are given")
    message, facts = change.apply(collection, names, options)
    if options.output.json:
        show_json({"schema": 1, "action": action, "labels": list(names), **facts})
        return
    print_note(message)


ChangeMessage = tuple[str, dict[str, Any]]
"""Message about a change, and its facts for JSON."""


def _merge(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> ChangeMessage:
    from wsabie.collection.labels import label_edits, label_list

    *sources, into = label_list.find_label_numbers(collection, names)
    result = label_edits.merge_labels(collection, sources, into, options.person.resolve())
    message = (
        f"merged into {result.into}: {format_count(result.moved, 'annotation')} moved, {result.duplicates:,} "
        "were there already"
    )
    return message, result._asdict()


def _keep_apart(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> ChangeMessage:
    from wsabie.collection.labels import label_edits, label_list

    result = label_edits.exclude_merge(
        collection, label_list.find_label_numbers(collection, names), options.person.resolve()
    )
    return f"kept apart: {', '.join(names)}", result._asdict()


def _delete(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> ChangeMessage:
    from wsabie.collection.labels import label_edits, label_list

    result = label_edits.delete_labels(
        collection,
        label_list.find_label_numbers(collection, names),
        options.person.resolve(),
        with_tags=options.with_tags,
    )
    moved = f"; {format_count(result.children, 'label')} below moved up" if result.children else ""
    undo_command = f"to take it back: wsabie collection undo {quote(str(collection.folder))} {result.entry}"
    return (
        f"deleted {', '.join(result.labels)} with {format_count(result.tags, 'tag')}{moved}; {undo_command}",
        result._asdict(),
    )


def _rename(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> ChangeMessage:
    from wsabie.collection.labels.label_edits import rename_label

    old, new = names
    rename_label(collection, old, new, options.person.resolve())
    return f"{old} is called {new} now; the old name still finds it", {}


def _set_parent(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> ChangeMessage:
    from wsabie.collection.labels.label_edits import set_label_parent

    label, parent = names[0], names[1] if len(names) > 1 else None
    set_label_parent(collection, label, parent, options.person.resolve())
    return f"{label} is below {parent or 'nothing'} now", {}


def _add_synonyms(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> ChangeMessage:
    from wsabie.collection.labels.label_edits import add_label_synonyms

    label, *synonyms = names
    add_label_synonyms(collection, label, synonyms, options.person.resolve(), options.language or "")
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
    "list": _list,
    "show": _show,
    "tidy": _tidy,
    "edit": _edit,
    "fill": _fill,
    **{action: partial(_change, action) for action in _CHANGES},
}
"""Actions of `labels`: functions of the collection, label names and options."""


def _find_label_id(collection: "Collection", names: Sequence[str]) -> int:
    from wsabie.collection.labels.label_list import find_label_numbers

    if len(names) != 1:
        raise InputError(f"give one label; {len(names)} are given")
    return find_label_numbers(collection, names)[0]


def _show_proposal(number: int, proposal: "MergeProposal") -> None:
    sources = ", ".join(f"{label.name} ({label.items:,})" for label in proposal.labels)
    score = round(1000 * proposal.score) // 10 / 100  # down: --merge-above takes what is shown
    out.print(escape_line(f"{number:>3}. {score:.2f}  {sources} -> {proposal.target.name} ({proposal.target.items:,})"))
    for reason in proposal.reasons:
        pair = f"{reason.first}, {reason.second}: " if len(proposal.reasons) > 1 else ""
        arguments = [("but " if evidence.weight < 0 else "") + evidence.message for evidence in reason.evidence]
        out.print(escape_line(f"           {pair}{'; '.join(arguments)}"))


def _serialize_proposal(proposal: "MergeProposal") -> dict[str, Any]:
    reasons = [
        reason._asdict() | {"evidence": [evidence._asdict() for evidence in reason.evidence]}
        for reason in proposal.reasons
    ]
    return {
        "score": proposal.score,
        "target": proposal.target._asdict(),
        "labels": [label._asdict() for label in proposal.labels],
        "reasons": reasons,
    }
