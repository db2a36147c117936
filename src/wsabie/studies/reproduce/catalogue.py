"""All records by name."""

from wsabie.base.errors import InputError
from wsabie.labels.names import closest
from wsabie.studies.reproduce.record import Record
from wsabie.studies.reproduce.records import devise, music, parts, slides, vse_ens, wsabie, wsabie_figures

_PLACES = (wsabie, wsabie_figures, parts, slides, music, vse_ens, devise)

RECORDS: dict[str, Record] = {record.name: record for place in _PLACES for record in place.RECORDS}


def record(name: str) -> Record:
    """The record of that name.

    Raises
    ------
    InputError
        There is none.

    Examples
    --------
    >>> record("wsabie-table-5").title
    'Dimensions of the space'
    """
    if name not in RECORDS:
        near = closest(name, list(RECORDS), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`wsabie reproduce list` shows all"
        raise InputError(f"there is no table called {name!r}; {hint}")
    return RECORDS[name]
