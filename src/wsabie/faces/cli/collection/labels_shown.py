"""`wsabie collection labels`: what it does, and how it is shown."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.faces.cli.collection.group import person
from wsabie.faces.cli.terminal import TerminalProgress, note, one_line, out, plural, show_json, show_table

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection
    from wsabie.catalogue.tidying import Proposal


def list_command(
    collection: "Collection", names: Sequence[str], _: str | None, json: bool, k: int = 20, order: Any = "items"
) -> None:
    """Print labels with what is known of them."""
    from wsabie.catalogue.vocabulary import listed

    found = listed(collection, containing=" ".join(names), order=order, k=k)
    if json:
        rows = [label._asdict() | {"accuracy": label.accuracy} for label in found.labels]
        show_json({"schema": 1, "found": found.found, "labels": rows})
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
        for label in found.labels
    ]
    title = f"{collection.folder}: {plural(found.found, 'label')}"
    title += f", {len(lines):,} shown" if len(lines) < found.found else ""
    show_table(title, ["label", "items", "rejected", "suggestions right", "language", "below", "also"], lines)


def show_command(collection: "Collection", names: Sequence[str], _: str | None, json: bool, k: int = 10) -> None:
    """Print all that is known of a label."""
    from wsabie.catalogue.one_label import near, whole

    number = _number_of(collection, names)
    found, neighbours = whole(collection, number), near(collection, number, k)
    label, held_out = found.label, found.held_out
    if json:
        known = {name: [one._asdict() for one in getattr(found, name)] for name in ("names", "above", "below", "apart")}
        limits = held_out and held_out._asdict() | {"limits": [one._asdict() for one in held_out.limits]}
        told = label._asdict() | known | {"accuracy": label.accuracy, "waiting": found.waiting, "held_out": limits}
        show_json({"schema": 1} | told | {"near": [one.label._asdict() | {"cosine": one.cosine} for one in neighbours]})
        return
    decided = "" if label.accuracy is None else f"{label.accuracy:.0%} of {label.suggested:,} by people"
    judged = (
        f"{held_out.right:,} of {held_out.suggested:,} on held-out items" if held_out and held_out.suggested else ""
    )
    rows = {
        "language": label.language,
        "meaning": label.wordnet,
        "also": ", ".join(f"{one.name} ({one.language})" if one.language else one.name for one in found.names),
        "above": ", ".join(one.name for one in found.above),
        "below": ", ".join(one.name for one in found.below),
        "kept apart from": ", ".join(one.name for one in found.apart),
        "items": f"{label.items:,}, {label.rejected:,} rejected, {found.waiting:,} suggested",
        "suggestions right": ", ".join(filter(None, (decided, judged))),
        "near": ", ".join(f"{one.label.name} {one.cosine:.2f}" for one in neighbours),
    }
    show_table(label.name, ["", ""], [[what, told] for what, told in rows.items() if told])


def edit_command(
    collection: "Collection",
    names: Sequence[str],
    by: str | None,
    json: bool,
    language: str | None = None,
    wordnet: str | None = None,
    drop: Sequence[str] = (),
) -> None:
    """Change what a label is: its language, its meaning, its other names."""
    from wsabie.catalogue.editing import edit

    if language is None and wordnet is None and not drop:
        raise InputError("say what is to change: --language, --wordnet, or a name to --drop")
    number = _number_of(collection, names)
    entry = edit(collection, number, person(by), language=language, wordnet=wordnet, remove=drop)
    if json:
        show_json({"schema": 1, "done": "edit", "labels": list(names), "entry": entry})
        return
    note(f"{names[0]} was so already" if entry is None else f"{names[0]} is changed; `labels DIR show` tells how")


def tidy_command(
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
    """Print labels that could be one, or merge the surest of them."""
    from wsabie.catalogue.proposing import look
    from wsabie.catalogue.tidying import LEAST, merge_proposals, proposals
    from wsabie.sources.knowledge import read_knowledge

    if names:
        raise InputError(f"tidy looks at all labels; leave {names[0]!r} out")
    progress = TerminalProgress()
    if merge_above is not None:
        known = read_knowledge(*knowledge) if knowledge else None
        found = proposals(collection, knowledge=known, k=None, least=merge_above, keep=keep, progress=progress)
        done = merge_proposals(collection, found.proposals, person(by))
        if json:
            show_json({"schema": 1, **done._asdict()})
            return
        note(f"merged {plural(done.merged, 'label')} into {done.into:,}; {plural(done.moved, 'annotation')} moved")
        return
    found = look(
        collection, knowledge=knowledge or (), least=LEAST if least is None else least, keep=keep, progress=progress
    )
    found = found._replace(proposals=found.proposals[:k])
    if json:
        told = [_told(proposal) for proposal in found.proposals]
        counts = {"labels": found.labels, "found": found.found, "not_asked": found.not_asked}
        show_json({"schema": 1, **counts, "proposals": told})
        return
    for what, why in found.not_asked.items():
        note(f"not asked: {what} ({why})")
    for number, proposal in enumerate(found.proposals, 1):
        _show(number, proposal)
    out.print(f"{plural(found.found, 'proposal')} of {found.labels:,} labels, {len(found.proposals):,} shown")
    if found.proposals:
        note(f"next: wsabie collection labels {quote(str(collection.folder))} merge A B, or apart A B")


def fill_command(
    collection: "Collection",
    names: Sequence[str],
    by: str | None,
    json: bool,
    knowledge: Sequence[Path] | None = None,
    table: Path | None = None,
    dry_run: bool = False,
) -> None:
    """Write down what is known of labels, or print what would be."""
    from wsabie.catalogue.filling import fill, planned
    from wsabie.sources.knowledge import read_knowledge, read_label_table

    if names:
        raise InputError(f"fill looks at all labels; leave {names[0]!r} out")
    if not knowledge:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    known, by_hand = read_knowledge(*knowledge), None if table is None else read_label_table(table)
    if dry_run:
        would = planned(collection, known, table=by_hand)
        if json:
            show_json({"schema": 1, "would": [one._asdict() for one in would]})
            return
        lines = [[one.label, one.wordnet, one.language, one.parent, ", ".join(one.synonyms)] for one in would]
        title = f"{collection.folder}: {plural(len(would), 'label')} would get"
        show_table(title, ["label", "meaning", "language", "below", "also"], lines)
        return
    done = fill(collection, known, person(by), table=by_hand)
    if json:
        show_json({"schema": 1, **done._asdict()})
        return
    note(
        f"of {plural(done.labels, 'label')}: {plural(done.meanings, 'meaning')}, {plural(done.languages, 'language')}, "
        f"{plural(done.parents, 'parent')}, {plural(done.synonyms, 'synonym')}; {done.unknown:,} are not known"
    )


def change_command(
    what: str, collection: "Collection", names: Sequence[str], by: str | None, json: bool, **given: Any
) -> None:
    """Merge, rename, put below, name, keep apart, or delete."""
    change = _CHANGES[what]
    if not change.least <= len(names) <= change.most:
        raise InputError(f"`labels DIR {what}` takes {change.usage}; {len(names)} are given")
    said, told = change.do(collection, names, person(by), **given)
    if json:
        show_json({"schema": 1, "done": what, "labels": list(names), **told})
        return
    note(said)


Done = tuple[str, dict[str, Any]]
"""What is said of a change, and what is told of it besides."""


def _merge(collection: "Collection", names: Sequence[str], by: str) -> Done:
    from wsabie.catalogue import editing, vocabulary

    *gone, into = vocabulary.numbers_of(collection, names)
    done = editing.merge(collection, gone, into, by)
    said = f"merged into {done.into}: {plural(done.moved, 'annotation')} moved, {done.together:,} were there already"
    return said, done._asdict()


def _keep_apart(collection: "Collection", names: Sequence[str], by: str) -> Done:
    from wsabie.catalogue import editing, vocabulary

    done = editing.keep_apart(collection, vocabulary.numbers_of(collection, names), by)
    return f"kept apart: {', '.join(names)}", done._asdict()


def _delete(collection: "Collection", names: Sequence[str], by: str, with_tags: bool = False) -> Done:
    from wsabie.catalogue import editing, vocabulary

    done = editing.delete(collection, vocabulary.numbers_of(collection, names), by, with_tags=with_tags)
    moved = f"; {plural(done.children, 'label')} below moved up" if done.children else ""
    back = f"to take it back: wsabie collection undo {quote(str(collection.folder))} {done.entry}"
    return f"deleted {', '.join(done.labels)} with {plural(done.tags, 'tag')}{moved}; {back}", done._asdict()


def _rename(collection: "Collection", names: Sequence[str], by: str) -> Done:
    from wsabie.catalogue.editing import rename

    old, new = names
    rename(collection, old, new, by)
    return f"{old} is called {new} now; the old name still finds it", {}


def _set_parent(collection: "Collection", names: Sequence[str], by: str) -> Done:
    from wsabie.catalogue.editing import set_parent

    label, parent = names[0], names[1] if len(names) > 1 else None
    set_parent(collection, label, parent, by)
    return f"{label} is below {parent or 'nothing'} now", {}


def _add_synonyms(collection: "Collection", names: Sequence[str], by: str, language: str = "") -> Done:
    from wsabie.catalogue.editing import add_synonyms

    label, *others = names
    add_synonyms(collection, label, others, by, language)
    return f"{label} is also called {', '.join(others)}", {}


class _Change(NamedTuple):
    """What is done, how many names it takes, and how they are written."""

    do: Callable[..., Done]
    usage: str
    least: int
    most: int = 1_000


_CHANGES = {
    "merge": _Change(_merge, "A ... B", 2),
    "apart": _Change(_keep_apart, "A B ...", 2),
    "rename": _Change(_rename, "OLD NEW", 2, 2),
    "delete": _Change(_delete, "LABEL ...", 1),
    "parent": _Change(_set_parent, "LABEL [PARENT]", 1, 2),
    "synonym": _Change(_add_synonyms, "LABEL OTHER ...", 2),
}
ACTIONS: dict[str, Callable[..., None]] = {
    "list": list_command,
    "show": show_command,
    "tidy": tidy_command,
    "edit": edit_command,
    "fill": fill_command,
    **{what: partial(change_command, what) for what in _CHANGES},
}
"""What `labels` does: each is given the collection, names of labels, who asks, whether as JSON, and its options."""


def _number_of(collection: "Collection", names: Sequence[str]) -> int:
    from wsabie.catalogue.vocabulary import numbers_of

    if len(names) != 1:
        raise InputError(f"give one label; {len(names)} are given")
    return numbers_of(collection, names)[0]


def _show(number: int, proposal: "Proposal") -> None:
    others = ", ".join(f"{label.name} ({label.items:,})" for label in proposal.labels)
    score = round(1000 * proposal.score) // 10 / 100  # down: --merge-above takes what is shown
    out.print(one_line(f"{number:>3}. {score:.2f}  {others} -> {proposal.into.name} ({proposal.into.items:,})"))
    for reason in proposal.why:
        between = f"{reason.one}, {reason.other}: " if len(proposal.why) > 1 else ""
        against = [("but " if one.weight < 0 else "") + one.told for one in reason.evidence]
        out.print(one_line(f"           {between}{'; '.join(against)}"))


def _told(proposal: "Proposal") -> dict[str, Any]:
    why = [reason._asdict() | {"evidence": [one._asdict() for one in reason.evidence]} for reason in proposal.why]
    return {
        "score": proposal.score,
        "into": proposal.into._asdict(),
        "labels": [label._asdict() for label in proposal.labels],
        "why": why,
    }
