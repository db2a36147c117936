"""IAPR TC-12: descriptions in English, and the labels of segmented regions (SAIAPR TC-12).

    annotations_complete_eng/01/1000.eng     <DOC> with TITLE, DESCRIPTION, NOTES, LOCATION, DATE and IMAGE
    saiapr_tc-12/01/labels.txt               picture, region, code: a line for each region
    saiapr_tc-12/wlist.txt                   code TAB name

Descriptions: the labels of a picture are the words of its DESCRIPTION and the places of its LOCATION ("quilotoa" and
"ecuador"), in small letters; articles, prepositions and the like are left out. When LEAR's dictionary
`iaprtc12_dictionary.txt` lies in the folder or the one around it, its words are the labels, and no others. TITLE and
NOTES tell stories around the picture and are not used. Regions: the labels are their names, each once.

The id of a picture is its place, such as `01/1000`. When pictures are in the folder (`images/01/1000.jpg`, or
`01/images/1000.jpg` beside regions) they are the collection; otherwise they are known by their ids (see `id_labels`).
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.code_names import read_code_names
from wsabie.sources.flags import read_names
from wsabie.sources.id_labels import IdLabels
from wsabie.sources.records import ItemList, Rows
from wsabie.sources.safe_xml import parse_xml
from wsabie.sources.text import numbered_lines, open_bytes, reading, shown
from wsabie.storage.rejects import Rejects

CODES = "wlist.txt"
DICTIONARY = "iaprtc12_dictionary.txt"
_PLACES = ("*.eng", "[0-9][0-9]/*.eng", "annotations*/[0-9][0-9]/*.eng")
_REGIONS = "[0-9][0-9]/labels.txt"
_LARGEST = 1 << 20
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_BARE_AND = re.compile(rb"&(?!#?\w+;)")
_LEFT_OUT = set(
    """
    a about above across after against all along also among an and another any are around as at be been before behind
    being below beneath beside between both but by can down each for from has have he her him his in inside into is it
    its many more most near next no not of off on one onto or other out outside over several she some that the their
    them there these they this those three through to towards two under up upon very was were what where which while
    who whose with within without
    """.split()  # noqa: SIM905 (a hundred quoted words are no easier to read)
)


def is_iapr(folder: Path) -> bool:
    """Whether a folder holds descriptions or regions."""
    return next(_descriptions(folder), None) is not None or _has_regions(folder)


def read_iapr(folder: Path, *, rejects: Rejects | None = None) -> Rows | ItemList:
    """Read descriptions or regions.

    Parameters
    ----------
    folder : Path
        `iaprtc12`, its `annotations_complete_eng`, or `saiapr_tc-12`.
    rejects : Rejects or None
        Lists files that are no descriptions, malformed lines, and pictures without labels.

    Returns
    -------
    Rows or ItemList

    Raises
    ------
    InputError
        Nothing usable, or names of codes are missing.
    """
    rejects = Rejects() if rejects is None else rejects
    return _read_regions(folder, rejects) if _has_regions(folder) else _read_descriptions(folder, rejects)


def words_of(text: str) -> list[str]:
    """The words of a description in small letters, each once.

    Examples
    --------
    >>> words_of("a dark-skinned boy, leaning on a wall;")
    ['a', 'dark-skinned', 'boy', 'leaning', 'on', 'wall']
    """
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def _has_regions(folder: Path) -> bool:
    return (folder / CODES).is_file() and any(folder.glob(_REGIONS))


def _descriptions(folder: Path) -> Iterator[Path]:
    return (file for place in _PLACES for file in folder.glob(place))


def _read_descriptions(folder: Path, rejects: Rejects) -> Rows | ItemList:
    got, places = IdLabels(folder), dict[str, str]()
    beside = (place / DICTIONARY for place in (folder, folder.absolute().parent))
    dictionary = next((file for file in beside if file.is_file()), None)
    wanted = None if dictionary is None else {name.lower() for name in read_names(dictionary)}
    for file in sorted(_descriptions(folder)):
        where = shown(file.relative_to(folder).as_posix())
        try:
            name, place, labels = _description(file)
            if name in got.ids:
                raise BadRow("duplicate id", name)
            got.add_all(name, [x for x in labels if (x not in _LEFT_OUT if wanted is None else x in wanted)])
            places[name] = place
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)
    require_rows(len(got), folder, rejects, "descriptions")
    return got.as_pictures_or_rows(folder, rejects, places)


def _description(file: Path) -> tuple[str, str, list[str]]:
    """(id, path of the picture, labels) of a file."""
    try:
        root = parse_xml(_as_utf8(file), shown(file))
    except InputError as error:
        raise BadRow("description that is no XML", str(error)) from error
    texts = {element.local_name: element.text.strip() for element in root.children}
    if root.local_name != "DOC" or not texts.get("IMAGE"):
        raise BadRow("description without its picture")
    where = [place.strip().lower() for place in texts.get("LOCATION", "").split(",")]
    path = PurePosixPath(texts["IMAGE"])
    return "/".join(path.with_suffix("").parts[-2:]), texts["IMAGE"], words_of(texts.get("DESCRIPTION", "")) + where


def _as_utf8(file: Path) -> bytes:
    """Most files are in Windows' letters for western Europe and do not say so."""
    with reading(file), open_bytes(file) as stream:
        content = _BARE_AND.sub(b"&amp;", stream.read(_LARGEST + 1))
    if len(content) > _LARGEST:
        raise BadRow("description of more than 1 MiB")
    if content.lstrip().startswith(b"<?xml"):
        return content
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace").encode()
    return content


def _read_regions(folder: Path, rejects: Rejects) -> Rows | ItemList:
    names = read_code_names(folder / CODES)
    got, places = IdLabels(folder), dict[str, str]()
    for file in sorted(folder.glob(_REGIONS)):
        part = file.parent.name
        for number, line in numbered_lines(file):
            if not line.strip():
                continue
            try:
                picture, code = _region(line)
                if code not in names:
                    raise BadRow("code without a name", code)
                got.add(f"{part}/{picture}", names[code])
                places[f"{part}/{picture}"] = f"{part}/images/{picture}.jpg"
            except BadRow as bad:
                rejects.add(f"{shown(file)}:{number}", bad.reason, bad.detail)
    require_rows(len(got), folder, rejects, "regions")
    return got.as_pictures_or_rows(folder, rejects, places)


def _region(line: bytes) -> tuple[str, str]:
    """(picture, code)."""
    cells = line.split()
    if len(cells) != 3 or not all(cell.isdigit() for cell in cells):
        raise BadRow("line that is not picture, region and code", repr(line[:60]))
    return cells[0].decode(), str(int(cells[2]))
