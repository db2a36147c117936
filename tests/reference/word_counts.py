"""The slow twin of `words`, in plain Python, as the written specification."""

import re

_64 = 2**64 - 1


def find_words(text: bytes) -> list[bytes]:
    """All words of a folded text, in order.

    Examples
    --------
    >>> find_words("a café, a_1!".encode())
    [b'a', b'caf\\xc3\\xa9', b'a_1']
    """
    return re.findall(rb"[0-9A-Za-z_\x80-\xff]+", text)


def hash_word(word: bytes) -> int:
    """FNV-1a of 64 bits with the finish of MurmurHash3.

    Examples
    --------
    >>> hex(hash_word(b""))
    '0xefd01f60ba992926'
    """
    mixed = 0xCBF29CE484222325
    for byte in word:
        mixed = (mixed ^ byte) * 0x100000001B3 & _64
    mixed = (mixed ^ mixed >> 33) * 0xFF51AFD7ED558CCD & _64
    mixed = (mixed ^ mixed >> 33) * 0xC4CEB9FE1A85EC53 & _64
    return mixed ^ mixed >> 33
