"""All records by name."""

from papers.record import PaperRecord
from papers.records import devise, music, object_parts, slides, vse_ens, wsabie_figures, wsabie_tables
from wsabie.core.errors import InputError
from wsabie.vocabulary.name_suggestions import find_closest_names

_PLACES = (wsabie_tables, wsabie_figures, object_parts, slides, music, vse_ens, devise)

RECORDS: dict[str, PaperRecord] = {record.name: record for place in _PLACES for record in place.RECORDS}


def find_record(name: str) -> PaperRecord:
    """The record of that name.

    Raises
    ------
    InputError
        There is none.

    Examples
    --------
    >>> find_record("wsabie-table-5").title
    'Dimensions of the space'
    """
    if name not in RECORDS:
        near = find_closest_names(name, list(RECORDS), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`python -m papers list` shows all"
        raise InputError(f"there is no table called {name!r}; {hint}")
    return RECORDS[name]
