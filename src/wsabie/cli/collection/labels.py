"""`wsabie collection labels`: its actions, and the display of their results."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import JsonObject, Report, Settings, argument, command, only_for, option, refuse_options
from wsabie.cli.output import TerminalProgress, escape_line, format_count, out, print_note, quote_path, show_table
from wsabie.cli.shared_options import Knowledge, Table
from wsabie.core.errors import InputError, require

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.merge_proposals.proposals import MergeProposal

LabelAction = Literal["list", "show", "tidy", "merge", "apart", "rename", "parent", "synonym", "edit", "delete", "fill"]
_only_for, _option = partial(only_for, get_args(LabelAction)), partial(option, kinds=get_args(LabelAction))
_MANY = 1_000
_CHANGES = {
    "merge": ("A ... B", 2, _MANY),
    "apart": ("A B ...", 2, _MANY),
    "rename": ("OLD NEW", 2, 2),
    "delete": ("LABEL ...", 1, _MANY),
    "parent": ("LABEL [PARENT]", 1, 2),
    "synonym": ("LABEL OTHER ...", 2, _MANY),
}
"""Usage of changes, with their smallest and largest number of names."""


class LabelActionOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection labels`."""

    action: LabelAction = argument(
        "list: labels with their counts; show: LABEL, all that is known; tidy: labels that could be one; merge: A ... "
        "B, into B; apart: A B ..., never to be proposed again; rename: OLD NEW; parent: LABEL PARENT (without PARENT: "
        "none); synonym: LABEL OTHER ...; edit: LABEL, its --language, --wordnet, other names with --remove-name; "
        "delete: LABEL ..., with their names; fill: meanings, parents and synonyms from --knowledge.",
        "list",
        metavar="WHAT",
    )
    names: list[str] | None = argument("Labels; of list, a part of their names.", metavar="LABEL")
    k: int | None = _option("list, tidy, show: labels at most (default: 20; neighbours of show: 10).", flag="-k", min=1)
    order: Literal["items", "name", "accuracy"] | None = _option(
        "list: sort by items (default), name or worst accuracy."
    )
    knowledge: Annotated[Knowledge, _only_for("tidy", "fill")] = None
    table: Annotated[Table, _only_for("fill")] = None
    min_score: float | None = _option("tidy: lowest score of a proposal (default: 0.7).", min=0, max=1)
    keep_language: str | None = _option("tidy: language to keep (default: the most frequent).", metavar="LANGUAGE")
    merge_above: float | None = _option("tidy: merge all proposals of this score and above.", min=0, max=1)
    language: str | None = _option("synonym, edit: language of the names, such as de.")
    wordnet: str | None = _option("edit: WordNet synset, such as n02084071; '' for none.", metavar="ID")
    remove_name: list[str] | None = _option("edit: remove this synonym.", metavar="NAME")
    with_tags: bool = _option("delete: also remove the label from all items.")
    dry_run: bool = _option("fill: only list the changes.")

    @property
    def is_read_only(self) -> bool:
        """The action changes nothing."""
        is_proposal = self.action == "tidy" and self.merge_above is None
        return self.action in ("list", "show") or is_proposal or (self.action == "fill" and self.dry_run)


@command("collection labels photos", "collection labels photos merge puppy dog")
def labels(options: LabelActionOptions) -> Report:
    """List, show, tidy, merge, rename, nest or delete labels."""
    refuse_options(options.action, options)
    with options.open(read_only=options.is_read_only) as collection:
        yield from ACTIONS[options.action](collection, options.names or [], options)


def _list(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> Report:
    """Print labels with their counts and names."""
    from wsabie.collection.labels.label_list import list_labels

    order = options.order or "items"
    page = list_labels(collection, containing=" ".join(names), order=order, k=options.k or 20)
    yield {"total": page.total, "labels": [vars(label) | {"accuracy": label.accuracy} for label in page.labels]}
    lines = []
    for label in page.labels:
        accuracy = None if label.accuracy is None else f"{label.accuracy:.0%} of {label.reviewed_suggestions:,}"
        synonyms = ", ".join(label.synonyms[:3]) + (" ..." if len(label.synonyms) > 3 else "")
        lines.append([label.name, label.items, label.rejected, accuracy, label.language, label.parent, synonyms])
    title = f"{collection.folder}: {format_count(page.total, 'label')}"
    title += f", {len(lines):,} shown" if len(lines) < page.total else ""
    show_table(title, ["label", "items", "rejected", "suggestions right", "language", "parent", "synonyms"], lines)


def _show(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> Report:
    """Print the details of a label."""
    from wsabie.collection.overview import find_label_neighbours, read_label_details

    label_id = _find_label_id(collection, names)
    label = read_label_details(collection, label_id)
    neighbours = find_label_neighbours(collection, label_id, options.k or 10)
    near_labels = [vars(near) | {"cosine": cosine} for near, cosine in neighbours]
    yield {**vars(label), "accuracy": label.accuracy, "neighbours": near_labels}
    reviewed, evaluation = label.reviewed_suggestions, label.evaluation
    accuracies = [] if label.accuracy is None else [f"{label.accuracy:.0%} of {reviewed:,} by people"]
    if evaluation and evaluation.suggestions:
        accuracies.append(f"{evaluation.correct:,} of {evaluation.suggestions:,} on held-out items")
    synonyms = [f"{name.name} ({name.language})" if name.language else name.name for name in label.names]
    rows = {
        "language": label.language,
        "meaning": label.wordnet,
        "synonyms": ", ".join(synonyms),
        "ancestors": ", ".join(parent.name for parent in label.ancestors),
        "child labels": ", ".join(child.name for child in label.child_labels),
        "kept apart from": ", ".join(excluded.name for excluded in label.merge_exclusions),
        "items": f"{label.items:,}, {label.rejected:,} rejected, {label.open_suggestions:,} suggested",
        "suggestions right": ", ".join(accuracies),
        "nearest": ", ".join(f"{near.name} {cosine:.2f}" for near, cosine in neighbours),
    }
    show_table(label.name, ["", ""], [[name, value] for name, value in rows.items() if value])


def _edit(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> Report:
    """Change the language, meaning or synonyms of a label."""
    from wsabie.collection.labels.label_edits import edit_label

    language, wordnet, remove = options.language, options.wordnet, options.remove_name or ()
    if language is None and wordnet is None and not remove:
        raise InputError("say what to change: --language, --wordnet, or --remove-name NAME")
    label_id = _find_label_id(collection, names)
    person = options.resolve_author()
    entry = edit_label(collection, label_id, person, language=language, wordnet=wordnet, remove=remove)
    yield {"action": "edit", "labels": list(names), "entry": entry}
    print_note(
        f"{names[0]} is so already; nothing changed"
        if entry is None
        else f"{names[0]} is changed; see `labels DIR show`"
    )


def _tidy(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> Report:
    """Print merge proposals, or merge the best of them."""
    from wsabie.collection.merge_proposals import proposals
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph

    if names:
        raise InputError(f"tidy looks at all labels; leave {names[0]!r} out")
    knowledge = options.knowledge or ()
    settings: Settings = {"language": options.keep_language or "", "progress": TerminalProgress()}
    if options.merge_above is not None:
        graph = read_knowledge_graph(*knowledge) if knowledge else None
        result = proposals.find_proposals(collection, knowledge=graph, min_score=options.merge_above, **settings)
        merges = proposals.apply_proposals(collection, result.proposals, options.resolve_author())
        yield merges._asdict()
        moved = format_count(merges.moved_tags, "annotation")
        print_note(f"merged {format_count(merges.merged_labels, 'label')} into {merges.targets:,}; {moved} moved")
        return
    min_score = proposals.MIN_SCORE if options.min_score is None else options.min_score
    result = proposals.refresh_proposals(collection, knowledge=knowledge, min_score=min_score, **settings)
    result = result._replace(proposals=result.proposals[: options.k or 20])
    fields = ("score", "target", "labels", "reasons")
    entries = [{name: getattr(proposal, name) for name in fields} for proposal in result.proposals]
    counts = {"labels": result.labels, "total": result.total, "unused_sources": result.unused_sources}
    yield {**counts, "proposals": entries}
    for evidence_kind, reason in result.unused_sources.items():
        print_note(f"not used: {evidence_kind} ({reason})")
    for position, proposal in enumerate(result.proposals, 1):
        _show_proposal(position, proposal)
    out.print(f"{format_count(result.total, 'proposal')} of {result.labels:,} labels, {len(result.proposals):,} shown")
    if result.proposals:
        print_note(f"next: wsabie collection labels {quote_path(collection.folder)} merge A B, or apart A B")


def _fill(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> Report:
    """Add meanings, parents and synonyms from knowledge files to labels, or print the plan."""
    from wsabie.collection.labels.label_enrichment import enrich_labels, plan_enrichment
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph, read_label_table

    if names:
        raise InputError(f"fill looks at all labels; leave {names[0]!r} out")
    knowledge, table = options.knowledge or (), options.table
    require(bool(knowledge), "fill needs a dictionary of labels; add --knowledge FILE, such as /usr/share/wordnet")
    graph, concept_table = read_knowledge_graph(*knowledge), None if table is None else read_label_table(table)
    if options.dry_run:
        entries = plan_enrichment(collection, graph, table=concept_table)
        yield {"plan": entries}
        lines = [[e.label, e.wordnet, e.language, e.parent, ", ".join(e.synonyms)] for e in entries]
        title = f"{collection.folder}: {format_count(len(entries), 'label')} would get"
        show_table(title, ["label", "meaning", "language", "parent", "synonyms"], lines)
        return
    result = enrich_labels(collection, graph, options.resolve_author(), table=concept_table)
    yield result._asdict()
    names = ("meaning", "language", "parent", "synonym")
    counts = ", ".join(format_count(getattr(result, f"{name}s"), name) for name in names)
    print_note(f"of {format_count(result.labels, 'label')}: {counts}; {result.unknown:,} unknown")


def _change(action: str, collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> Report:
    """Merge, rename, nest, name, keep apart or delete labels."""
    usage, min_names, max_names = _CHANGES[action]
    require(min_names <= len(names) <= max_names, f"`labels DIR {action}` takes {usage}; {len(names)} are given")
    message, facts = _apply_change(action, collection, names, options)
    yield {"action": action, "labels": list(names), **facts}
    print_note(message)


def _apply_change(
    action: str, collection: "Collection", names: Sequence[str], options: LabelActionOptions
) -> tuple[str, JsonObject]:
    """Change labels; return the message, and facts for JSON."""
    from wsabie.collection.labels import label_edits, label_list, label_merge

    by, (first, *others) = options.resolve_author(), names
    match action:
        case "rename":
            label_edits.edit_label(collection, first, by, name=others[0])
            return f"{first} is called {others[0]} now; the old name still finds it", {}
        case "parent":
            parent = others[0] if others else ""
            label_edits.edit_label(collection, first, by, parent=parent)
            return f"{first} is below {parent or 'nothing'} now", {}
        case "synonym":
            label_edits.edit_label(collection, first, by, add=dict.fromkeys(others, options.language or ""))
            return f"{first} is also called {', '.join(others)}", {}
        case "apart":
            exclusion = label_merge.exclude_merge(collection, label_list.find_label_ids(collection, names), by)
            return f"kept apart: {', '.join(names)}", vars(exclusion)
        case "merge":
            *sources, target = label_list.find_label_ids(collection, names)
            merge = label_merge.merge_labels(collection, sources, target, by)
            moved = f"{format_count(merge.moved_tags, 'annotation')} moved, {merge.duplicates:,} were there already"
            return f"merged into {merge.target}: {moved}", vars(merge)
    return _delete(collection, names, options)


def _delete(collection: "Collection", names: Sequence[str], options: LabelActionOptions) -> tuple[str, JsonObject]:
    from wsabie.collection.labels import label_edits, label_list
    from wsabie.collection.labels.label_store import TaggedLabelError

    label_ids = label_list.find_label_ids(collection, names)
    try:
        result = label_edits.delete_labels(collection, label_ids, options.resolve_author(), with_tags=options.with_tags)
    except TaggedLabelError as error:
        raise InputError(f"{error.fault}; to delete these tags too: --with-tags") from error
    moved = f"; {format_count(result.children, 'label')} below moved up" if result.children else ""
    undo_command = f"to take it back: wsabie collection undo {quote_path(collection.folder)} {result.entry}"
    tags = format_count(result.tags, "tag")
    return f"deleted {', '.join(result.labels)} with {tags}{moved}; {undo_command}", vars(result)


ACTIONS: dict[str, Callable[..., Report]] = {
    "list": _list,
    "show": _show,
    "tidy": _tidy,
    "edit": _edit,
    "fill": _fill,
    **{action: partial(_change, action) for action in _CHANGES},
}
"""Actions of `labels`: functions of the collection, label names and options."""


def _find_label_id(collection: "Collection", names: Sequence[str]) -> int:
    from wsabie.collection.labels.label_list import find_label_ids

    require(len(names) == 1, f"give one label; {len(names)} are given")
    return find_label_ids(collection, names)[0]


def _show_proposal(position: int, proposal: "MergeProposal") -> None:
    sources = ", ".join(f"{label.name} ({label.items:,})" for label in proposal.labels)
    score = round(1000 * proposal.score) // 10 / 100  # down: --merge-above takes what is shown
    target = f"{proposal.target.name} ({proposal.target.items:,})"
    out.print(escape_line(f"{position:>3}. {score:.2f}  {sources} -> {target}"))
    for reason in proposal.reasons:
        pair = f"{reason.first}, {reason.second}: " if len(proposal.reasons) > 1 else ""
        arguments = [("but " if evidence.weight < 0 else "") + evidence.message for evidence in reason.evidence]
        out.print(escape_line(f"           {pair}{'; '.join(arguments)}"))
