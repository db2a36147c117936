"""Concepts of emoji: one for all skin tones, genders, hair, directions and presentations."""

ZWJ = 0x200D
_PRESENTATION = 0xFE0F
_SKIN = range(0x1F3FB, 0x1F400)
_SIGNS = {0x2640, 0x2642, 0x27A1, *range(0x1F9B0, 0x1F9B4)}  # female, male, to the right, four kinds of hair

_ADULT, _CHILD = 0x1F9D1, 0x1F9D2
_SAME_PERSON = {
    0x1F468: _ADULT, 0x1F469: _ADULT,  # man, woman
    0x1F466: _CHILD, 0x1F467: _CHILD,  # boy, girl
    0x1F474: 0x1F9D3, 0x1F475: 0x1F9D3,  # old man, old woman
    0x1F934: 0x1FAC5, 0x1F478: 0x1FAC5,  # prince, princess: person with crown
    0x1F57A: 0x1F483,  # man dancing: woman dancing
    0x1FAC3: 0x1F930, 0x1FAC4: 0x1F930,  # pregnant man and person: pregnant woman
    0x1F385: 0x1F936,  # Santa Claus: Mrs. Claus
    0x1F46C: 0x1F46B, 0x1F46D: 0x1F46B,  # men, women: woman and man holding hands
}  # fmt: skip
_SAME_SEQUENCE = {
    (_ADULT, ZWJ, 0x1F384): (0x1F936,),  # Mx Claus
    (_ADULT, ZWJ, 0x1F91D, ZWJ, _ADULT): (0x1F46B,),  # people holding hands
    (_ADULT, ZWJ, 0x2764, ZWJ, _ADULT): (0x1F491,),  # couple with heart
    (_ADULT, ZWJ, 0x2764, ZWJ, 0x1F48B, ZWJ, _ADULT): (0x1F48F,),  # kiss
    (0x1FAF1, ZWJ, 0x1FAF2): (0x1F91D,),  # handshake of two skin tones
}
_FAMILY = (0x1F46A,)
_SWATCH = (0x1F3FB,)  # a skin tone by itself


def concept(sequence: str) -> tuple[int, ...]:
    """Code points of the base sequence that all variants of an emoji share.

    Examples
    --------
    >>> concept("👩🏽‍🌾") == concept("👨‍🌾") == concept("🧑🏿‍🌾")
    True
    """
    code_points = [_SAME_PERSON.get(c, c) for c in map(ord, sequence) if c != _PRESENTATION and c not in _SKIN]
    if not code_points:
        return _SWATCH
    base = _without_signs(code_points)
    if _is_family(base):
        return _FAMILY
    return _SAME_SEQUENCE.get(base, base)


def hexadecimal(points: tuple[int, ...]) -> str:
    """Code points as they are written in file names: "1f9d1-200d-1f33e"."""
    return "-".join(f"{point:x}" for point in points)


def _without_signs(points: list[int]) -> tuple[int, ...]:
    """Drop signs that are joined to something; a sign alone is an emoji of its own."""
    code_points: list[int] = []
    for point in points:
        if point in _SIGNS and code_points and code_points[-1] == ZWJ:
            code_points.pop()
        else:
            code_points.append(point)
    return tuple(code_points)


def _is_family(points: tuple[int, ...]) -> bool:
    joined = len(points) > 1 and all(point == ZWJ for point in points[1::2])
    return joined and all(point in (_ADULT, _CHILD) for point in points[::2])
