"""Keywords of IPTC-IIM in JPEG files of older programs: dataset 2:25 in a Photoshop resource."""

from collections.abc import Iterator

from wsabie.io.parsers.array_builders import RowError

_IPTC = 0x0404
_CHARACTER_SET, _KEYWORD = (1, 90), (2, 25)
_UTF8 = b"\x1b%G"


def find_iptc_block(resources: bytes) -> bytes | None:
    """Return the IPTC block among Photoshop's resources (APP13 without heads); None if there is none.

    Raises
    ------
    RowError
        A resource is cut off.
    """
    position = 0
    while resources[position : position + 4] in (b"8BIM", b"MeSa", b"AgHg", b"PHUT", b"DCSR"):
        number = int.from_bytes(resources[position + 4 : position + 6], "big")
        position += 6 + (1 + resources[position + 6] + 1) // 2 * 2 if position + 6 < len(resources) else 6
        size = int.from_bytes(resources[position : position + 4], "big")
        position += 4
        if position + size > len(resources):
            raise RowError("unreadable IPTC keywords", "a resource is cut off")
        if number == _IPTC:
            return resources[position : position + size]
        position += (size + 1) // 2 * 2
    return None


def read_iptc_keywords(block: bytes) -> list[str] | None:
    """Return the keywords of an IPTC block in their order; None if it has none.

    They are UTF-8 where the block says so or where all of them are valid UTF-8, otherwise Latin-1. IPTC cuts
    keywords at 64 bytes, so half a character at the end of one is left out.

    Raises
    ------
    RowError
        A dataset is cut off.

    Examples
    --------
    >>> read_iptc_keywords(b"\\x1c\\x02\\x19\\x00\\x03sea" + b"\\x1c\\x02\\x19\\x00\\x04k\\xf6ln")
    ['sea', 'köln']
    """
    datasets = list(_iterate_datasets(block))
    texts = [content.rstrip(b"\0") for number, content in datasets if number == _KEYWORD]
    if not texts:
        return None
    if (_CHARACTER_SET, _UTF8) in datasets:
        return [text.decode("utf-8", "ignore") for text in texts]
    try:
        return [text.decode() for text in texts]
    except UnicodeDecodeError:
        return [text.decode("latin-1") for text in texts]


def _iterate_datasets(block: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    position = 0
    while block[position : position + 1] == b"\x1c":
        head = block[position + 1 : position + 5]
        position += 5
        size = int.from_bytes(head[2:], "big")
        if size & 0x8000:  # the length of the length
            digits = size & 0x7FFF
            size = int.from_bytes(block[position : position + min(digits, 8)], "big")
            position += digits
        if len(head) < 4 or position + size > len(block):
            raise RowError("unreadable IPTC keywords", "a dataset is cut off")
        yield (head[0], head[1]), block[position : position + size]
        position += size
