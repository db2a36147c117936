"""Proposals to merge labels, kept on disk while people go through them.

To compare all labels takes seconds. The pairs that were found are written down with what speaks for them; what is
proposed is put together from them and from the labels as they are now, so that what was merged, renamed or kept apart
since is seen at once. New labels are seen when somebody looks again.

    FOLDER/.wsabie/proposals.json
"""

import json
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import func, select

from wsabie.base.errors import InputError, WsabieError
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.evidence import Evidence, Pair
from wsabie.catalogue.few import Few
from wsabie.catalogue.journal import last_entry, now
from wsabie.catalogue.remembered import Remembered
from wsabie.catalogue.tables import journal
from wsabie.catalogue.tidying import LEAST, Proposal, Reason, Tidied, labels_now, merged_into, proposals, proposed
from wsabie.labels.knowledge import Knowledge
from wsabie.sources.knowledge import read_knowledge
from wsabie.storage.atomic import UnwritableError, write_text

MOST = 5_000
"""Proposals that are kept, the surest."""

_FILE = "proposals.json"
_LARGEST = 64 << 20


class Kept(NamedTuple):
    """What was found when somebody looked.

    Attributes
    ----------
    made : str
        When.
    entry : int
        The last one of the journal that was seen.
    model : int or None
        That was in use.
    labels, found : int
        Labels that were compared, and proposals that were found.
    not_asked : dict of str to str
    knowledge : list of str
        Files that were asked, absolute.
    keep : str
        Language whose labels are kept.
    links : list of (int, int, Reason)
        Pairs of labels, by their numbers.
    """

    made: str
    entry: int
    model: int | None
    labels: int
    found: int
    not_asked: dict[str, str]
    knowledge: list[str]
    keep: str
    links: list[tuple[int, int, Reason]]


class Current(NamedTuple):
    """Proposals as they stand; entries of the journal since somebody looked; whether another model is in use."""

    kept: Kept | None
    since: int
    other_model: bool
    proposals: list[Proposal]


def look(
    collection: Collection,
    *,
    knowledge: Sequence[Path] | None = None,
    least: float = LEAST,
    keep: str = "",
    progress: Progress = SILENT,
) -> Tidied:
    """Compare all labels and keep what is proposed; all of it is also the answer.

    Parameters
    ----------
    collection : Collection
    knowledge : sequence of Path or None
        Files that know of words; None: those that were asked when somebody looked before.
    least, keep
        As `tidying.proposals` takes them.
    progress : Progress

    Raises
    ------
    InputError
        A file of knowledge that was given cannot be read, or `least` is no share.
    """
    if not 0 <= least <= 1:
        raise InputError(f"a score of {least:g} cannot be; give one from 0 to 1, such as {LEAST:g}")
    before = _kept(collection)
    paths = knowledge if knowledge is not None else [Path(path) for path in before.knowledge] if before else []
    known, why_not = _knowledge(paths, given=knowledge is not None)
    with reading(collection.engine) as connection:
        entry, model = last_entry(connection), model_in_use(connection)
    found = proposals(collection, knowledge=known, k=None, least=least, keep=keep, progress=progress)
    found = found._replace(not_asked=found.not_asked | why_not)
    links = [link for proposal in found.proposals[:MOST] for link in _links(proposal)]
    names = [str(path.resolve()) for path in paths]
    with suppress(UnwritableError) if collection.read_only else nullcontext():
        _write(collection, Kept(now(), entry, model, found.labels, found.found, found.not_asked, names, keep, links))
    return found


def current(collection: Collection) -> Current:
    """What is proposed now; nothing where nobody has looked yet."""
    kept = _kept(collection)
    if kept is None:
        return Current(None, 0, False, [])
    with reading(collection.engine) as connection:
        since = connection.execute(select(func.count()).where(journal.c.id > kept.entry)).scalar() or 0
        other_model = model_in_use(connection) not in (None, kept.model)
        labels, place, apart = _labels(connection)
        became = merged_into(connection)
    links: dict[Pair, Reason] = {}
    for one, other, reason in kept.links:
        places = {place.get(became.get(number, number)) for number in (one, other)}
        pair = tuple(sorted(at for at in places if at is not None))
        if len(pair) == 2:
            links.setdefault(pair, reason)  # the surest come first
    return Current(kept, since, other_model, proposed(labels, links, apart, kept.keep))


_labels, _reads = Remembered(labels_now), Few[Kept](2)


def _links(proposal: Proposal) -> list[tuple[int, int, Reason]]:
    numbers = {label.name: label.id for label in (proposal.into, *proposal.labels)}
    return [(numbers[reason.one], numbers[reason.other], reason) for reason in proposal.why]


def _knowledge(paths: Sequence[Path], *, given: bool) -> tuple[Knowledge | None, dict[str, str]]:
    """What files know; of files that were given another time, why they cannot be asked any more."""
    if not paths:
        return None, {}
    try:
        return read_knowledge(*paths), {}
    except WsabieError as error:
        if given:
            raise
        return None, {"knowledge": str(error)}


def _write(collection: Collection, kept: Kept) -> None:
    write_text(collection.place / _FILE, json.dumps({"schema": 1} | kept._asdict(), ensure_ascii=False) + "\n")


def _kept(collection: Collection) -> Kept | None:
    """What is on disk; nothing where that is damaged or of another version."""
    path = collection.place / _FILE
    try:
        stat = path.stat()
        if stat.st_size > _LARGEST:
            return None
        return _reads.get((path, stat.st_mtime_ns, stat.st_ino), lambda: _read(path))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(path: Path) -> Kept:
    told: Any = json.loads(path.read_bytes())
    if not isinstance(told, dict) or told.pop("schema") != 1:
        raise ValueError
    told["links"] = [(int(one), int(other), _reason(*reason)) for one, other, reason in told["links"]]
    return Kept(**told)


def _reason(one: str, other: str, score: float, evidence: list[Any]) -> Reason:
    return Reason(
        one, other, float(score), [Evidence(str(kind), float(weight), str(told)) for kind, weight, told in evidence]
    )
