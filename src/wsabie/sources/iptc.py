"""Keywords of IPTC-IIM, as older programs write into JPEG files: dataset 2:25 in a block of Photoshop's resources."""

from collections.abc import Iterator

from wsabie.sources.build import BadRow

_IPTC = 0x0404
_CHARACTER_SET, _KEYWORD = (1, 90), (2, 25)
_UTF8 = b"\x1b%G"


def iptc_block(resources: bytes) -> bytes | None:
    """The IPTC block among Photoshop's resources (the APP13 segments without their heads); None if there is none.

    Raises
    ------
    BadRow
        A resource is cut off.
    """
    at = 0
    while resources[at : at + 4] in (b"8BIM", b"MeSa", b"AgHg", b"PHUT", b"DCSR"):
        number = int.from_bytes(resources[at + 4 : at + 6], "big")
        at += 6 + (1 + resources[at + 6] + 1) // 2 * 2 if at + 6 < len(resources) else 6
        size = int.from_bytes(resources[at : at + 4], "big")
        at += 4
        if at + size > len(resources):
            raise BadRow("unreadable IPTC keywords", "a resource is cut off")
        if number == _IPTC:
            return resources[at : at + size]
        at += (size + 1) // 2 * 2
    return None


def iptc_keywords(block: bytes) -> list[str] | None:
    """The keywords of an IPTC block in their order; None if it has none.

    They are UTF-8 where the block says so or where all of them are valid UTF-8, otherwise Latin-1. IPTC cuts keywords
    at 64 bytes, so half a character at the end of one is left out.

    Raises
    ------
    BadRow
        A dataset is cut off.

    Examples
    --------
    >>> iptc_keywords(b"\\x1c\\x02\\x19\\x00\\x03sea" + b"\\x1c\\x02\\x19\\x00\\x04k\\xf6ln")
    ['sea', 'köln']
    """
    held = list(_datasets(block))
    texts = [content.rstrip(b"\0") for number, content in held if number == _KEYWORD]
    if not texts:
        return None
    if (_CHARACTER_SET, _UTF8) in held:
        return [text.decode("utf-8", "ignore") for text in texts]
    try:
        return [text.decode() for text in texts]
    except UnicodeDecodeError:
        return [text.decode("latin-1") for text in texts]


def _datasets(block: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    at = 0
    while block[at : at + 1] == b"\x1c":
        head = block[at + 1 : at + 5]
        at += 5
        size = int.from_bytes(head[2:], "big")
        if size & 0x8000:  # the length of the length
            digits = size & 0x7FFF
            size = int.from_bytes(block[at : at + min(digits, 8)], "big")
            at += digits
        if len(head) < 4 or at + size > len(block):
            raise BadRow("unreadable IPTC keywords", "a dataset is cut off")
        yield (head[0], head[1]), block[at : at + size]
        at += size
