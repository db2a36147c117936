"""Items a page at a time: filtered, sorted, and continued from where the page before ended.

A page begins after the last item of the page before (never after so many items), so that the thousandth page costs
what the first does. There are two ways to one: along the sorted order until enough items pass the filter, which is
quick where many pass, or from one part of the filter to its items, which are then sorted, which is quick where few
pass. Which it is, is found out by counting what the parts give, up to `SORTED`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, func, select

from wsabie.base.errors import InputError
from wsabie.catalogue import book, cursors
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use, no_model
from wsabie.catalogue.narrowing import Meaning, Numbers, Part, parts, state_of, state_of_few
from wsabie.catalogue.ordering import SORTS, Narrowed, among, by_suggestion, phases
from wsabie.catalogue.points import opened_model
from wsabie.catalogue.tables import annotations, items, labels, suggestions, views

LARGEST = 1_000
"""Items of a page, at most."""
SORTED = 20_000
"""Up to so many items that one part of a filter gives are sorted; where all give more, the order is walked."""
COUNTED = 5_000
"""Up to so many are counted too."""

# Made once: to check each number as a part of a query takes longer than the query.
_NUMBERS: BindParameter[Any] = bindparam("numbers", expanding=True)
_ROWS = select(
    items.c.id, items.c.root_id, items.c.path, items.c.hash, items.c.taken, items.c.width, items.c.height,
    items.c.state, items.c.added,
).where(items.c.id.in_(_NUMBERS))  # fmt: skip
_NAMED = (
    select(annotations.c.item_id, labels.c.name)
    .join(labels, labels.c.id == annotations.c.label_id)
    .where(annotations.c.item_id.in_(_NUMBERS), annotations.c.state == "accepted")
    .order_by(labels.c.name)
)
_SEEN = select(views.c.item_id, views.c.best, views.c.doubt).where(
    views.c.model_id == bindparam("model"), views.c.item_id.in_(_NUMBERS)
)


@dataclass(frozen=True)
class Filter:
    """Which items are wanted; all that is said must hold.

    Attributes
    ----------
    state : {"present", "missing", "unreadable"}
    label : str or None
        Its name or a synonym; `label_state` says what is decided of it, or that it is suggested.
    label_state : {"accepted", "rejected", "suggested"}
        Without a label "suggested" asks for items of which any suggestion waits.
    min_probability, max_probability : float or None
        Of the suggested label.
    unlabelled : bool
        Only items without any accepted label.
    no_tag_fits : float or None
        Only those among them of which the model in use, when it looked, had no suggestion that is right this often as
        far as held-out items tell. What an older version looked at goes by its highest probability.
    folder : str or None
        A folder and all below; "": everything.
    root : int or None
        Its number.
    taken_from, taken_to : str or None
        Days or times such as "2024-05" or "2024-05-01T12:00"; `taken_to` holds to its own end.
    words : str or None
        All of them occur in the path, with or without capitals (of A to Z).
    numbers : tuple of int or None
        Only these items, at most 1,000.
    """

    state: Literal["present", "missing", "unreadable"] = "present"
    label: str | None = None
    label_state: Literal["accepted", "rejected", "suggested"] = "accepted"
    min_probability: float | None = None
    max_probability: float | None = None
    unlabelled: bool = False
    folder: str | None = None
    root: int | None = None
    taken_from: str | None = None
    taken_to: str | None = None
    words: str | None = None
    numbers: tuple[int, ...] | None = None
    no_tag_fits: float | None = None


class Shown(NamedTuple):
    """An item of a page.

    Attributes
    ----------
    best, doubt : float or None
        What the model in use thinks of it: its highest probability, and its highest min(p, 1 - p).
    probability : float or None
        Of the label that was asked for, where it is suggested.
    labels : tuple of str
        Accepted ones.
    """

    id: int
    root: int
    path: str
    hash: str | None
    taken: str | None
    width: int | None
    height: int | None
    state: str
    added: str
    best: float | None
    doubt: float | None
    labels: tuple[str, ...]
    probability: float | None = None


class Page(NamedTuple):
    """Some items.

    Attributes
    ----------
    items : tuple of Shown
    next_cursor : str or None
        For the page after; None: this was the last.
    total : int or None
        How many pass the filter; None: many, and they were not counted, or this is not the first page.
    """

    items: tuple[Shown, ...]
    next_cursor: str | None
    total: int | None


def page(
    collection: Collection,
    wanted: Filter | None = None,
    *,
    sort: str = "path",
    descending: bool = False,
    cursor: str | None = None,
    limit: int = 100,
) -> Page:
    """The items after a cursor.

    Parameters
    ----------
    collection : Collection
    wanted : Filter or None
        None: all that are present.
    sort : {"path", "taken", "added", "best", "doubt", "probability"}
        Items that have no such value come last, whichever way it goes. "probability" is that of the suggested label,
        and so is "doubt", min(p, 1 - p), where one is asked for.
    descending : bool
    cursor : str or None
        `next_cursor` of the page before.
    limit : int
        1 to 1,000.

    Raises
    ------
    InputError
        Something in the filter, the order or the cursor cannot be.
    UnknownLabelError
        There is no such label.
    """
    wanted = wanted or Filter()
    common = None if wanted.no_tag_fits is None else opened_model(collection).threshold(wanted.no_tag_fits).common
    if not 1 <= limit <= LARGEST:
        raise InputError(f"a page has 1 to {LARGEST:,} items, not {limit}; choose another limit")
    if sort not in SORTS:
        raise InputError(f"items cannot be sorted by {sort!r}; choose one of {', '.join(SORTS)}")
    named = f"-{sort}" if descending else sort
    after = None if cursor is None else cursors.read(cursor, named)
    with reading(collection.engine) as connection:
        meant = _meaning(connection, wanted, sort)._replace(common=common)
        given = parts(meant)
        narrowed = _narrowed(connection, meant, given, sort)
        rows: list[tuple[int, Any]] = []
        for query in phases(meant, sort, descending, after, narrowed, limit + 1):
            if len(rows) <= limit:
                rows += [(row[0], row[1]) for row in connection.execute(query.limit(limit + 1 - len(rows)))]
        shown = _shown(connection, [row[0] for row in rows[:limit]], meant.model)
        if meant.label is not None and wanted.label_state == "suggested":
            shown = _with_probability(connection, shown, meant)
        total = _total(connection, meant, given, narrowed) if after is None else None
    more = None
    if len(rows) > limit:
        number, value = rows[limit - 1]
        more = cursors.written(cursors.Cursor(named, value, number))
    return Page(shown, more, total)


def _meaning(connection: Connection, wanted: Filter, sort: str) -> Meaning:
    """The filter with numbers in place of names."""
    model = model_in_use(connection)
    open_ones = wanted.label_state == "suggested"
    suggested = wanted.label is not None and open_ones
    if model is None and (open_ones or sort in ("best", "doubt", "probability")):
        raise no_model(connection)
    if not suggested and (sort == "probability" or (wanted.min_probability, wanted.max_probability) != (None, None)):
        raise InputError('probabilities are those of a suggested label; give a label and label_state="suggested"')
    label = None if wanted.label is None else book.found_one(connection, wanted.label)
    return Meaning(wanted, label, model, connection.dialect.name)


def _narrowed(connection: Connection, meant: Meaning, given: Sequence[Part], sort: str) -> Narrowed:
    """The filter, with the items of that part which the fewest have, if these are few enough to be sorted."""
    narrowest: Part | None = None
    numbers: list[int] | None = None
    for part in given:
        walked = part.rest is not None and by_suggestion(meant, sort)
        if part.numbers is not None and not walked and numbers != []:
            fewest = (COUNTED if part.scattered else SORTED) + 1 if numbers is None else len(numbers)
            found = _fewer(connection, part.numbers, fewest, tried=not part.searched)
            if found is not None:
                narrowest, numbers = part, found
    conditions = [part.condition for part in given if part is not narrowest]
    if narrowest is None or numbers is None:
        return Narrowed([state_of(meant), *conditions], None)
    rest = [] if narrowest.rest is None else [narrowest.rest]
    found_so = Narrowed([state_of_few(meant), *conditions, *rest], numbers)
    return found_so if len(numbers) > COUNTED else Narrowed([], _passing(connection, found_so))


def _fewer(connection: Connection, numbers: Numbers, than: int, *, tried: bool) -> list[int] | None:
    """The numbers that a query gives, if these are fewer; to try that first costs a look at its index, and no rows."""
    if tried and connection.execute(numbers.offset(than - 1).limit(1)).first() is not None:
        return None
    found: Any = connection.execute(numbers.limit(than)).scalars().all()
    return list(found) if len(found) < than else None


def _passing(connection: Connection, narrowed: Narrowed) -> list[int]:
    query = among(select(items.c.id).where(*narrowed.conditions), items.c.id, narrowed.numbers)
    return list(connection.execute(query).scalars().all())


def _total(connection: Connection, meant: Meaning, given: Sequence[Part], narrowed: Narrowed) -> int | None:
    """How many there are, where that is known or an index tells."""
    if given:
        return None if narrowed.conditions else len(narrowed.numbers or ())
    return connection.execute(select(func.count()).where(state_of(meant)).select_from(items)).scalar()


def numbered(collection: Collection, numbers: Sequence[int]) -> tuple[Shown, ...]:
    """Items by their numbers, in this order; those that do not exist are left out."""
    with reading(collection.engine) as connection:
        return _shown(connection, numbers, model_in_use(connection))


def _with_probability(connection: Connection, shown: Sequence[Shown], meant: Meaning) -> tuple[Shown, ...]:
    s = suggestions.c
    query = select(s.item_id, s.probability).where(s.model_id == meant.model, s.label_id == meant.label)
    rows = connection.execute(query.where(s.item_id.in_([one.id for one in shown])))
    found = {row[0]: row[1] for row in rows}
    return tuple(one._replace(probability=found.get(one.id)) for one in shown)


def _shown(connection: Connection, numbers: Sequence[int], model: int | None) -> tuple[Shown, ...]:
    """Those that exist."""
    asked = {"numbers": list(numbers), "model": model}
    rows = {row[0]: row for row in connection.execute(_ROWS, asked)}
    named: dict[int, dict[str, None]] = {}
    for item, name in connection.execute(_NAMED, asked):
        named.setdefault(item, {})[name] = None
    seen = connection.execute(_SEEN, asked) if model is not None else ()
    thought: dict[int, tuple[float | None, float | None]] = {row[0]: (row[1], row[2]) for row in seen}
    shown = []
    for n in numbers:
        if n in rows:
            best, doubt = thought.get(n, (None, None))
            shown.append(Shown(*rows[n], best=best, doubt=doubt, labels=tuple(named.get(n, ()))))
    return tuple(shown)
