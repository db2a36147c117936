"""`wsabie collection labels`: what it does, and how it is shown."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.terminal import TerminalProgress, note, one_line, out, plural, show_json, show_table

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection
    from wsabie.catalogue.tidying import Proposal

_AT_LEAST = {"merge": 2, "apart": 2, "rename": 2, "parent": 1, "synonym": 2}
_AT_MOST = {"rename": 2, "parent": 2}


def list_command(collection: "Collection", names: Sequence[str], json: bool, k: int = 20, order: Any = "items") -> None:
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


def show_command(collection: "Collection", names: Sequence[str], json: bool, k: int = 10) -> None:
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
    by: str,
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
    entry = edit(collection, number, by, language=language, wordnet=wordnet, remove=drop)
    if json:
        show_json({"schema": 1, "done": "edit", "labels": list(names), "entry": entry})
        return
    note(f"{names[0]} was so already" if entry is None else f"{names[0]} is changed; `labels DIR show` tells how")


def tidy_command(
    collection: "Collection",
    names: Sequence[str],
    by: str,
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
        done = merge_proposals(collection, found.proposals, by)
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
        note(f"next: wsabie collection labels {collection.folder} merge A B, or apart A B")


def fill_command(
    collection: "Collection",
    names: Sequence[str],
    by: str,
    json: bool,
    knowledge: Sequence[Path] | None = None,
    table: Path | None = None,
) -> None:
    """Write down what is known of labels."""
    from wsabie.catalogue.filling import fill
    from wsabie.sources.knowledge import read_knowledge, read_label_table

    if names:
        raise InputError(f"fill looks at all labels; leave {names[0]!r} out")
    if not knowledge:
        raise InputError("--knowledge names the files that know of labels, such as /usr/share/wordnet; add it")
    done = fill(collection, read_knowledge(*knowledge), by, table=None if table is None else read_label_table(table))
    if json:
        show_json({"schema": 1, **done._asdict()})
        return
    note(
        f"of {plural(done.labels, 'label')}: {plural(done.meanings, 'meaning')}, {plural(done.languages, 'language')}, "
        f"{plural(done.parents, 'parent')}, {plural(done.synonyms, 'synonym')}; {done.unknown:,} are not known"
    )


def change_command(
    collection: "Collection", what: str, names: Sequence[str], by: str, json: bool, language: str = ""
) -> None:
    """Merge, rename, put below, name, or keep apart."""
    from wsabie.catalogue import editing, vocabulary

    if not _AT_LEAST[what] <= len(names) <= _AT_MOST.get(what, 1_000):
        usage = {"merge": "A ... B", "apart": "A B ...", "rename": "OLD NEW", "parent": "LABEL [PARENT]"}
        raise InputError(f"`labels DIR {what}` takes {usage.get(what, 'LABEL OTHER ...')}; {len(names)} are given")
    told: dict[str, Any] = {}
    first, *others = names
    if what == "merge":
        *gone, into = vocabulary.numbers_of(collection, names)
        done = editing.merge(collection, gone, into, by)
        told = done._asdict()
        said = f"merged into {done.into}: {done.moved:,} annotations moved, {done.together:,} were there already"
    elif what == "rename":
        editing.rename(collection, first, others[0], by)
        said = f"{first} is called {others[0]} now; the old name still finds it"
    elif what == "parent":
        editing.set_parent(collection, first, others[0] if others else None, by)
        said = f"{first} is below {others[0] if others else 'nothing'} now"
    elif what == "synonym":
        editing.add_synonyms(collection, first, others, by, language)
        said = f"{first} is also called {', '.join(others)}"
    else:
        told = editing.keep_apart(collection, vocabulary.numbers_of(collection, names), by)._asdict()
        said = f"kept apart: {', '.join(names)}"
    if json:
        show_json({"schema": 1, "done": what, "labels": list(names), **told})
        return
    note(said)


def _number_of(collection: "Collection", names: Sequence[str]) -> int:
    from wsabie.catalogue.vocabulary import numbers_of

    if len(names) != 1:
        raise InputError(f"give one label; {len(names)} are given")
    return numbers_of(collection, names)[0]


def _show(number: int, proposal: "Proposal") -> None:
    others = ", ".join(f"{label.name} ({label.items:,})" for label in proposal.labels)
    out.print(
        one_line(f"{number:>3}. {proposal.score:.2f}  {others} -> {proposal.into.name} ({proposal.into.items:,})")
    )
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
