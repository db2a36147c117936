"""Which tags of a collection are meant, and all that is known of them, item by item."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, Select, and_, exists, func, literal, or_, select, true

from wsabie.base.errors import InputError
from wsabie.catalogue import book
from wsabie.catalogue.deciding import model_in_use, no_model
from wsabie.catalogue.formats.record import Tag
from wsabie.catalogue.tables import annotations, items, labels, models, roots, suggestions, synonyms, views

Wanted = Literal["accepted", "rejected", "suggested", "all"]

_ROWS = 5000
_DEEPEST = 100  # labels above a label


@dataclass(frozen=True)
class Choice:
    """Which tags are written.

    Attributes
    ----------
    state : {"accepted", "rejected", "suggested", "all"} or None
        None: what is decided, or what is accepted in formats that know no more.
    labels : sequence of str
        Only these; empty: all.
    folder : str or None
        Only items in this folder of their root, and below it.
    min_probability : float
        Of suggestions, at least.
    """

    state: Wanted | None = None
    labels: Sequence[str] = ()
    folder: str | None = None
    min_probability: float = 0.0


def chosen(connection: Connection, choice: Choice, *, only_fitting: bool = False) -> Iterator[Tag]:
    """The tags that are chosen, item by item; with `only_fitting` none that are rejected.

    Raises
    ------
    InputError
        A label is unknown, or there are no items in the folder.
    """
    numbers = [book.found_one(connection, name) for name in choice.labels]
    where = _in_folder(connection, choice.folder)
    names = _Names(connection)
    parts = []
    states = _states(choice.state, only_fitting)
    if states:
        parts.append(_stream(connection, _decided(states, numbers, where), names))
    if choice.state in ("suggested", "all"):
        model = model_in_use(connection)
        if model is None and choice.state == "suggested":
            raise no_model(connection)
        query = _suggested(model, numbers, where, choice.min_probability)
        parts.append(_stream(connection, query, names))
    return merge(*parts, key=lambda tag: tag.item)


def _states(wanted: Wanted | None, only_fitting: bool) -> list[str]:
    if wanted in ("accepted", "rejected"):
        return [wanted]
    if wanted == "suggested":
        return []
    return ["accepted"] if only_fitting else ["accepted", "rejected"]


_PLACE = (items.c.id, items.c.width, items.c.height, items.c.path, roots.c.path.label("root"), items.c.hash)


def _decided(states: list[str], numbers: list[int], where: Any) -> Select[Any]:
    a = annotations.c
    query = (
        select(
            *_PLACE,
            *(a.label_id, a.region, a.state, a.origin, a.by, a.at),
            *(models.c.folder.label("model"), models.c.made.label("model_made"), a.score, a.probability),
        )
        .select_from(annotations)
        .join(items, items.c.id == a.item_id)
        .join(roots, roots.c.id == items.c.root_id)
        .outerjoin(models, models.c.id == a.model_id)
        .where(where)
        .order_by(a.item_id, a.label_id, a.region)
    )
    query = query.where(a.state == states[0]) if len(states) == 1 else query
    return query.where(a.label_id.in_(numbers)) if numbers else query


def _suggested(model: int | None, numbers: list[int], where: Any, least: float) -> Select[Any]:
    s, a = suggestions.c, annotations.c
    decided = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
    query = (
        select(
            *_PLACE,
            *(s.label_id, literal("").label("region"), literal("suggested").label("state")),
            *(
                literal("model").label("origin"),
                literal("").label("by"),
                func.coalesce(views.c.at, models.c.made).label("at"),
            ),
            *(models.c.folder.label("model"), models.c.made.label("model_made"), s.score, s.probability),
        )
        .select_from(suggestions)
        .join(items, items.c.id == s.item_id)
        .join(roots, roots.c.id == items.c.root_id)
        .join(models, models.c.id == s.model_id)
        .outerjoin(views, and_(views.c.model_id == s.model_id, views.c.item_id == s.item_id))
        .join(labels, labels.c.id == s.label_id)  # of one that was merged since, until the model looks again, nothing
        .where(where, s.model_id == model, s.probability >= least, ~decided, labels.c.merged_into.is_(None))
        .order_by(s.item_id, s.label_id)
    )
    return query.where(s.label_id.in_(numbers)) if numbers else query


def _stream(connection: Connection, query: Select[Any], names: "_Names") -> Iterator[Tag]:
    for row in connection.execute(query, execution_options={"yield_per": _ROWS}):
        number, width, height, path, root, digest, label, *rest = row
        about = names.of(label)
        frame = (width, height) if width and height else None
        yield Tag(number, frame, path, root, digest, *about, *rest)


def _in_folder(connection: Connection, folder: str | None) -> Any:
    """The condition that an item lies in a folder or below it."""
    folder = (folder or "").strip("/")
    if folder in ("", "."):
        return true()
    c = items.c.folder
    where = or_(c == folder, and_(c >= f"{folder}/", c < f"{folder}0"))  # "0" comes after "/"
    if connection.execute(select(items.c.id).where(where).limit(1)).first() is None:
        raise InputError(f"there are no items in the folder {folder!r}; name it as it is called within its root")
    return where


_About: TypeAlias = tuple[str, str, str, tuple[str, ...], tuple[tuple[str, str], ...]]


class _Names:
    """What is known of labels by their numbers."""

    def __init__(self, connection: Connection) -> None:
        c, s = labels.c, synonyms.c
        query = select(c.id, c.name, c.language, c.wordnet, c.parent_id)
        self._labels = {row[0]: tuple(row[1:]) for row in connection.execute(query)}
        self._synonyms: dict[int, list[tuple[str, str]]] = {}
        for label, name, language in connection.execute(select(s.label_id, s.name, s.language).order_by(s.id)):
            self._synonyms.setdefault(label, []).append((name, language))
        self._known: dict[int, _About] = {}

    def of(self, number: int) -> _About:
        """Its name, language, synset, parents and synonyms."""
        if number not in self._known:
            *own, parent = self._labels[number]
            way: list[str] = []
            while parent is not None and len(way) < _DEEPEST:
                above, *_, parent = self._labels[parent]
                way.insert(0, above)
            self._known[number] = (*own, tuple(way), tuple(self._synonyms.get(number, ())))
        return self._known[number]
