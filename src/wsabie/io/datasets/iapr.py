"""IAPR TC-12: descriptions in English, and the labels of segmented regions (SAIAPR TC-12).

    annotations_complete_eng/01/1000.eng     <DOC> with TITLE, DESCRIPTION, NOTES, LOCATION, DATE and IMAGE
    saiapr_tc-12/01/labels.txt               picture, region, code: a line for each region
    saiapr_tc-12/wlist.txt                   code TAB name

Descriptions: the labels of a picture are the words of its DESCRIPTION and the places of its LOCATION ("quilotoa" and
"ecuador"), in small letters; articles, prepositions and the like are left out. When LEAR's dictionary
`iaprtc12_dictionary.txt` lies in the folder or the one around it, its words are the labels, and no others. TITLE and
NOTES tell stories around the picture and are not used. Regions: the labels are their names, each once.

The id of a picture is its path, such as `01/1000`. When pictures are in the folder (`images/01/1000.jpg`, or
`01/images/1000.jpg` beside regions) they are the items; otherwise they are known by their ids (see `id_labels`).
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from wsabie.core.errors import InputError
from wsabie.io.formats.id_labels import IdLabelCollector, read_names
from wsabie.io.parsers.text_files import iterate_numbered_lines, read_head
from wsabie.io.parsers.text_tables import read_code_names
from wsabie.io.parsers.xml_elements import parse_xml
from wsabie.io.records import FeatureTable, ItemList
from wsabie.storage.rejects import Rejects, RowError

CODES = "wlist.txt"
DICTIONARY = "iaprtc12_dictionary.txt"
_PATTERNS = ("*.eng", "[0-9][0-9]/*.eng", "annotations*/[0-9][0-9]/*.eng")
_REGIONS = "[0-9][0-9]/labels.txt"
_MAX_BYTES = 1 << 20
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_BARE_AND = re.compile(rb"&(?!#?\w+;)")
_STOP_WORDS = set(
    """
    a about above across after against all along also among an and another any are around as at be been before behind
    being below beneath beside between both but by can down each for from has have he her him his in inside into is it
    its many more most near next no not of off on one onto or other out outside over several she some that the their
    them there these they this those three through to towards two under up upon very was were what where which while
    who whose with within without
    """.split()  # noqa: SIM905 (a hundred quoted words are no easier to read)
)


def is_iapr(folder: Path) -> bool:
    """Return True if a folder holds descriptions or regions."""
    return next(_find_descriptions(folder), None) is not None or _has_regions(folder)


def read_iapr(folder: Path, *, rejects: Rejects) -> FeatureTable | ItemList:
    """Read descriptions or regions.

    Parameters
    ----------
    folder : Path
        `iaprtc12`, its `annotations_complete_eng`, or `saiapr_tc-12`.
    rejects : Rejects
        Lists files that are not descriptions, malformed lines, and pictures without labels.

    Returns
    -------
    FeatureTable or ItemList

    Raises
    ------
    InputError
        Nothing usable, or names of codes are missing.
    """
    return _read_regions(folder, rejects) if _has_regions(folder) else _read_descriptions(folder, rejects)


def extract_words(text: str) -> list[str]:
    """Return the words of a description in small letters, each once.

    Examples
    --------
    >>> extract_words("a dark-skinned boy, leaning on a wall;")
    ['a', 'dark-skinned', 'boy', 'leaning', 'on', 'wall']
    """
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def _has_regions(folder: Path) -> bool:
    return (folder / CODES).is_file() and any(folder.glob(_REGIONS))


def _find_descriptions(folder: Path) -> Iterator[Path]:
    return (file for pattern in _PATTERNS for file in folder.glob(pattern))


def _read_descriptions(folder: Path, rejects: Rejects) -> FeatureTable | ItemList:
    collector, picture_paths = IdLabelCollector(folder, rejects), dict[str, str]()
    candidates = (parent / DICTIONARY for parent in (folder, folder.absolute().parent))
    dictionary = next((file for file in candidates if file.is_file()), None)
    words = {name.lower() for name in read_names(dictionary)} if dictionary else None
    for file in sorted(_find_descriptions(folder)):
        with rejects.catch(file.relative_to(folder).as_posix()):
            name, picture_path, labels = _read_description(file)
            if name in collector.ids:
                raise RowError("duplicate id", name)
            collector.add_all(name, [w for w in labels if (w not in _STOP_WORDS if words is None else w in words)])
            picture_paths[name] = picture_path
    return collector.build_source(folder, picture_paths, "descriptions")


def _read_description(file: Path) -> tuple[str, str, list[str]]:
    """Return (id, path of the picture, labels) of a file."""
    try:
        root = parse_xml(_read_as_utf8(file), file)
    except InputError as error:
        raise RowError("description that is not XML", str(error)) from error
    texts = {element.local_name: element.text.strip() for element in root.children}
    if root.local_name != "DOC" or not texts.get("IMAGE"):
        raise RowError("description without its picture")
    locations = [location.strip().lower() for location in texts.get("LOCATION", "").split(",")]
    name = "/".join(PurePosixPath(texts["IMAGE"]).with_suffix("").parts[-2:])
    return name, texts["IMAGE"], extract_words(texts.get("DESCRIPTION", "")) + locations


def _read_as_utf8(file: Path) -> bytes:
    """Return a file as UTF-8; most are in Windows' western European encoding and do not say so."""
    content = _BARE_AND.sub(b"&amp;", read_head(file, _MAX_BYTES + 1))
    if len(content) > _MAX_BYTES:
        raise RowError("description of more than 1 MiB")
    if content.lstrip().startswith(b"<?xml"):
        return content
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace").encode()
    return content


def _read_regions(folder: Path, rejects: Rejects) -> FeatureTable | ItemList:
    names = read_code_names(folder / CODES)
    collector, picture_paths = IdLabelCollector(folder, rejects), dict[str, str]()
    for file in sorted(folder.glob(_REGIONS)):
        part = file.parent.name
        for number, line in iterate_numbered_lines(file, skip_blank=True):
            with rejects.catch(file, number):
                picture, code = _parse_region(line)
                if code not in names:
                    raise RowError("code without a name", code)
                collector.add(f"{part}/{picture}", names[code])
                picture_paths[f"{part}/{picture}"] = f"{part}/images/{picture}.jpg"
    return collector.build_source(folder, picture_paths, "regions")


def _parse_region(line: bytes) -> tuple[str, str]:
    """Return (picture, code) of a line."""
    cells = line.split()
    if len(cells) != 3 or not all(cell.isdigit() for cell in cells):
        raise RowError("line that is not picture, region and code", repr(line[:60]))
    return cells[0].decode(), str(int(cells[2]))
