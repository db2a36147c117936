"""What a filter means in the database: numbers of items that one part of it gives, and conditions for the others."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, exists, not_, or_, select, union_all

from wsabie.base.errors import InputError
from wsabie.catalogue.tables import annotations, items, suggestions, views

if TYPE_CHECKING:
    from wsabie.catalogue.items import Filter

Condition = ColumnElement[bool]
Numbers = Select[tuple[Any]]

_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d)?)?)?)?)?")
_MOST_WORDS, _LONGEST = 20, 4_000
_MOST_NUMBERS = 1_000


class Meaning(NamedTuple):
    """A filter with numbers in place of names.

    Attributes
    ----------
    wanted : Filter
    label, model : int or None
        The label that is asked for, and the model in use.
    dialect : str
        "sqlite" or "postgresql".
    common : float or None
        From which probability on suggestions are right as often as `no_tag_fits` says, whatever their label.
    """

    wanted: "Filter"
    label: int | None
    model: int | None
    dialect: str
    common: float | None = None


class Part(NamedTuple):
    """One thing that a filter asks.

    Attributes
    ----------
    numbers : Select or None
        The items that have it, read from an index; None: there is none that gives them.
    condition : ColumnElement
        Whether a row of `items` has it, so written that no index is tempted by it.
    rest : ColumnElement or None
        What `numbers` left open.
    scattered : bool
        Whether they lie all over any order, so that a walk soon finds some.
    searched : bool
        Whether `numbers` looks at all items, so that to ask twice takes twice the time.
    """

    numbers: Numbers | None
    condition: Condition
    rest: Condition | None = None
    scattered: bool = False
    searched: bool = False


def parts(meant: Meaning) -> list[Part]:
    """All that a filter asks, but for the state of items.

    Raises
    ------
    InputError
        A time is none, or there are too many words or numbers.
    """
    wanted, found = meant.wanted, []
    if meant.label is not None:
        found.append(_suggested(meant) if wanted.label_state == "suggested" else _decided(meant))
    elif wanted.label_state == "suggested":
        found.append(Part(None, _something_waits(meant)))
    if wanted.no_tag_fits is not None:
        found.append(_without_fitting(meant))
    if wanted.unlabelled or wanted.no_tag_fits is not None:
        a = annotations.c
        found.append(Part(None, not_(exists().where(a.item_id == items.c.id, a.state == "accepted"))))
    if wanted.root is not None:
        found.append(Part(None, items.c.root_id == wanted.root))
    if wanted.folder:
        found.append(_below(wanted, wanted.folder.strip("/")[:_LONGEST]))
    if wanted.taken_from is not None or wanted.taken_to is not None:
        found.append(_taken(wanted))
    if wanted.words is not None and wanted.words.split():
        found.append(_words(meant, wanted.words.split()))
    if wanted.numbers is not None:
        found.append(_numbers(wanted.numbers))
    return found


def state_of(meant: Meaning) -> Condition:
    """Whether a row of `items` is in the state that is asked for."""
    return items.c.state == meant.wanted.state


def state_of_few(meant: Meaning) -> Condition:
    """The same where the rows are known, so written that no index of all rows is tempted by it."""
    return items.c.state.concat("") == meant.wanted.state


def suggested_rows(meant: Meaning, s: Any) -> list[Condition]:
    """Which rows of `suggestions`, whose columns are given, suggest the label as surely as is asked for."""
    found: list[Condition] = [s.model_id == meant.model, s.label_id == meant.label]
    if meant.wanted.min_probability is not None:
        found.append(s.probability >= meant.wanted.min_probability)
    if meant.wanted.max_probability is not None:
        found.append(s.probability <= meant.wanted.max_probability)
    return found


def views_of(meant: Meaning, v: Any) -> list[Condition]:
    """Which rows of `views`, whose columns are given, are of the model in use and as unsure as is asked for."""
    found: list[Condition] = [v.model_id == meant.model]
    if meant.wanted.no_tag_fits is not None:
        found.append(or_(*_unsure(meant, v)))
    return found


def _unsure(meant: Meaning, v: Any) -> list[Condition]:
    """What has to hold of a row, and of one that an older version wrote."""
    older = v.surest.is_(None) if meant.common is None else and_(v.surest.is_(None), v.best < meant.common)
    return [v.surest < meant.wanted.no_tag_fits, older]


def _decided(meant: Meaning) -> Part:
    a, state = annotations.c, meant.wanted.label_state
    numbers = select(a.item_id).where(a.label_id == meant.label, a.state == state)
    same = exists().where(a.item_id == items.c.id, a.label_id == meant.label, a.state == state)
    return Part(numbers, same)


def _suggested(meant: Meaning) -> Part:
    """Suggestions that wait: nothing is decided of them as a whole."""
    a, other = annotations.c, suggestions.alias("waiting").c  # the order may come from the table itself
    decided = exists().where(a.item_id == items.c.id, a.label_id == meant.label, a.region == "")
    there = exists().where(other.item_id == items.c.id, *suggested_rows(meant, other))
    numbers = select(suggestions.c.item_id).where(*suggested_rows(meant, suggestions.c))
    return Part(numbers, and_(there, not_(decided)), not_(decided))


def _something_waits(meant: Meaning) -> Condition:
    """Whether any suggestion waits."""
    a, s = annotations.c, suggestions.alias("open").c
    decided = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
    return exists().where(s.model_id == meant.model, s.item_id == items.c.id, not_(decided))


def _without_fitting(meant: Meaning) -> Part:
    """Items of which no suggestion was sure enough."""
    other = views.alias("unsure").c  # the order may come from the table itself
    there = exists().where(other.item_id == items.c.id, *views_of(meant, other))
    by_one = union_all(
        *(select(views.c.item_id).where(views.c.model_id == meant.model, one) for one in _unsure(meant, views.c))
    )
    return Part(select(by_one.subquery().c.item_id), there, scattered=True)  # each by its own index


def _below(wanted: "Filter", folder: str) -> Part:
    first, last = folder + "/", folder + "0"  # the character after the slash
    numbers = select(items.c.id).where(items.c.state == wanted.state, items.c.path >= first, items.c.path < last)
    path = items.c.path.concat("")
    return Part(numbers, and_(path >= first, path < last))


def _taken(wanted: "Filter") -> Part:
    limits = []
    for column in (items.c.taken, items.c.taken.concat("")):
        both: list[Condition] = [column.is_not(None)]
        if wanted.taken_from is not None:
            both.append(column >= _time(wanted.taken_from))
        if wanted.taken_to is not None:
            both.append(column < _time(wanted.taken_to) + "~")  # after all that begin so
        limits.append(and_(*both))
    return Part(select(items.c.id).where(items.c.state == wanted.state, limits[0]), limits[1])


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise InputError(f"{text[:40]!r} is no time; write it such as 2024-05 or 2024-05-01T12:00")
    return text


def _words(meant: Meaning, words: list[str]) -> Part:
    if len(words) > _MOST_WORDS or sum(map(len, words)) > _LONGEST:
        raise InputError(f"these are too many words; give up to {_MOST_WORDS}")
    patterns = ["%" + re.sub(r"([%_\\])", r"\\\1", word) + "%" for word in words]
    alike = items.c.path.like if meant.dialect == "sqlite" else items.c.path.ilike  # LIKE is ILIKE there
    said = and_(*(alike(pattern, escape="\\") for pattern in patterns))
    return Part(select(items.c.id).where(state_of(meant), said), said, searched=True)


def _numbers(numbers: tuple[int, ...]) -> Part:
    if len(numbers) > _MOST_NUMBERS or any(not 0 < n < 2**63 for n in numbers):
        raise InputError(f"items are asked for by up to {_MOST_NUMBERS:,} numbers from 1 on; ask for fewer at once")
    return Part(select(items.c.id).where(items.c.id.in_(numbers)), items.c.id.in_(numbers))
