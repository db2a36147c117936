"""What the next training would be: from scratch or on top of the model in use, and why."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from sqlalchemy import Connection

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.examples import changed_since, decisions_since, hashes_of
from wsabie.catalogue.points import opened_model
from wsabie.catalogue.shelf import OpenModel, Shelved, on_shelf, open_model

SMALL = 0.2
"""Share of the decisions that a model from scratch knew: as many may change before there is another from scratch."""
_SMALL_ANYWAY = 20

How = Literal["full", "corrections", "nothing"]


class Plan(NamedTuple):
    """How to learn, why so, and the contents that were decided about since."""

    how: How
    why: str
    changed: frozenset[str] = frozenset()


class Outlook(NamedTuple):
    """How the next training would learn, why so, and how many decisions the model in use does not know."""

    decisions: int
    how: How
    why: str


def outlook(collection: Collection) -> Outlook:
    """What a training would be now; with too few tags it would be refused all the same."""
    parent, lost = parent_of_next(collection, opened_model)
    found = plan(collection, parent, lost)
    with reading(collection.engine) as connection:
        return Outlook(decisions_since(connection, parent.about.learnt_to if parent else 0), found.how, found.why)


def parent_of_next(
    collection: Collection, opening: Callable[[Collection], OpenModel] = open_model
) -> tuple[OpenModel | None, str]:
    """The model in use, and why it cannot be used if it cannot."""
    with reading(collection.engine) as connection:
        number = model_in_use(connection)
    if number is None:
        return None, "there is no model in use yet"
    try:
        return opening(collection), ""
    except InputError as error:
        return None, str(error)


def plan(
    collection: Collection,
    parent: OpenModel | None,
    lost: str,
    *,
    full: bool = False,
    dictionary: str | None = None,
    held_to: float = 0.0,
) -> Plan:
    """From scratch or on top of the model in use, and why.

    Parameters
    ----------
    collection : Collection
    parent, lost : OpenModel or None, str
        As `parent_of_next` gives them.
    full : bool
        From scratch is asked for.
    dictionary : str or None
        How items are to be described; None: as before.
    held_to : float
        The place up to which contents are held out now.
    """
    if full or parent is None:
        return Plan("full", "as asked" if full else lost)
    if dictionary not in (None, parent.dictionary):
        return Plan("full", "items are described in another way than before")
    if held_to > parent.held_to:
        return Plan("full", f"too few tags are left on the items that model {parent.number} never learnt from")
    facts, number = parent.about.facts, parent.number
    most = int(max(_SMALL_ANYWAY, SMALL * facts["decisions_of_full"])) - facts["changed_since_full"]
    shelved = on_shelf(collection)
    with reading(collection.engine) as connection:
        items = changed_since(connection, parent.about.learnt_to, max(most, 0))
        changed = frozenset(hashes_of(connection, items or set()))
        worse = _kept_back(connection, shelved, number)
    if items is not None and not items:
        return Plan("nothing", f"nothing was decided since model {number} learnt; --full trains anyway")
    if worse is not None:
        return Plan(
            "nothing",
            f"nothing was decided since model {worse} learnt, which did worse than model {number} and is not in use; "
            "--full trains from scratch",
        )
    if items is None:
        return Plan("full", "much was decided since the last training from scratch")
    decided = "1 item was" if len(items) == 1 else f"{len(items):,} items were"
    return Plan("corrections", f"{decided} decided about since model {number} learnt", changed)


def _kept_back(connection: Connection, shelved: list[Shelved], parent: int) -> int | None:
    """The model that learnt all there is after the one in use, and was not put into use because it did worse."""
    for one in shelved:
        if one.parent == parent and one.kept_back and not decisions_since(connection, one.learnt_to):
            return one.number
    return None
