"""Select tags of a collection with all their facts, item by item."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, Select, and_, exists, func, literal, or_, select, true

from wsabie.collection.annotations.decisions import find_model_in_use, make_no_model_error
from wsabie.collection.db.tables import annotations, items, labels, models, roots, suggestions, synonyms, views
from wsabie.collection.interchange.formats.tag_record import Tag
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError

StateFilter = Literal["accepted", "rejected", "suggested", "all"]

_ROWS = 5000
_DEEPEST = 100  # ancestors of a label


@dataclass(frozen=True)
class TagSelection:
    """Selection of the tags to export.

    Attributes
    ----------
    state : {"accepted", "rejected", "suggested", "all"} or None
        None selects the decided tags, or the accepted ones in formats that hold no others.
    labels : sequence of str
        Only these labels; empty selects all.
    folder : str or None
        Only items in or below this folder of their root.
    min_probability : float
        Lowest probability of suggestions.
    """

    state: StateFilter | None = None
    labels: Sequence[str] = ()
    folder: str | None = None
    min_probability: float = 0.0


def select_tags(connection: Connection, choice: TagSelection, *, only_fitting: bool = False) -> Iterator[Tag]:
    """Yield the selected tags item by item; `only_fitting` leaves out rejected ones.

    Raises
    ------
    InputError
        A label is unknown, or the folder holds no items.
    """
    numbers = [label_store.find_label(connection, name) for name in choice.labels]
    where = _in_folder(connection, choice.folder)
    names = _LabelTable(connection)
    parts = []
    states = _list_states(choice.state, only_fitting)
    if states:
        parts.append(_stream_tags(connection, _select_decided(states, numbers, where), names))
    if choice.state in ("suggested", "all"):
        model = find_model_in_use(connection)
        if model is None and choice.state == "suggested":
            raise make_no_model_error(connection)
        query = _select_suggested(model, numbers, where, choice.min_probability)
        parts.append(_stream_tags(connection, query, names))
    return merge(*parts, key=lambda tag: tag.item)


def _list_states(state: StateFilter | None, only_fitting: bool) -> list[str]:
    if state in ("accepted", "rejected"):
        return [state]
    if state == "suggested":
        return []
    return ["accepted"] if only_fitting else ["accepted", "rejected"]


_PLACE = (items.c.id, items.c.width, items.c.height, items.c.path, roots.c.path.label("root"), items.c.hash)


def _select_decided(states: list[str], numbers: list[int], where: Any) -> Select[Any]:
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


def _select_suggested(model: int | None, numbers: list[int], where: Any, min_probability: float) -> Select[Any]:
    s, a = suggestions.c, annotations.c
    has_decision = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
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
        .join(labels, labels.c.id == s.label_id)  # suggestions of merged labels wait for the next inference
        .where(
            where, s.model_id == model, s.probability >= min_probability, ~has_decision, labels.c.merged_into.is_(None)
        )
        .order_by(s.item_id, s.label_id)
    )
    return query.where(s.label_id.in_(numbers)) if numbers else query


def _stream_tags(connection: Connection, query: Select[Any], names: "_LabelTable") -> Iterator[Tag]:
    for row in connection.execute(query, execution_options={"yield_per": _ROWS}):
        number, width, height, path, root, digest, label, *columns = row
        facts = names.get_facts(label)
        frame = (width, height) if width and height else None
        yield Tag(number, frame, path, root, digest, *facts, *columns)


def _in_folder(connection: Connection, folder: str | None) -> Any:
    """Return the condition that an item lies in or below a folder."""
    folder = (folder or "").strip("/")
    if folder in ("", "."):
        return true()
    c = items.c.folder
    where = or_(c == folder, and_(c >= f"{folder}/", c < f"{folder}0"))  # "0" comes after "/"
    if connection.execute(select(items.c.id).where(where).limit(1)).first() is None:
        raise InputError(f"there are no items in the folder {folder!r}; name it as it is called within its root")
    return where


_LabelFacts: TypeAlias = tuple[str, str, str, tuple[str, ...], tuple[tuple[str, str], ...]]


class _LabelTable:
    """Names and relations of labels by id."""

    def __init__(self, connection: Connection) -> None:
        c, s = labels.c, synonyms.c
        query = select(c.id, c.name, c.language, c.wordnet, c.parent_id)
        self._labels = {row[0]: tuple(row[1:]) for row in connection.execute(query)}
        self._synonyms: dict[int, list[tuple[str, str]]] = {}
        for label, name, language in connection.execute(select(s.label_id, s.name, s.language).order_by(s.id)):
            self._synonyms.setdefault(label, []).append((name, language))
        self._facts: dict[int, _LabelFacts] = {}

    def get_facts(self, number: int) -> _LabelFacts:
        """Return the name, language, synset, ancestors and synonyms of a label."""
        if number not in self._facts:
            *columns, parent = self._labels[number]
            path: list[str] = []
            while parent is not None and len(path) < _DEEPEST:
                ancestor, *_, parent = self._labels[parent]
                path.insert(0, ancestor)
            self._facts[number] = (*columns, tuple(path), tuple(self._synonyms.get(number, ())))
        return self._facts[number]
