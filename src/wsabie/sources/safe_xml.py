"""XML from strangers: elements only.

A document type is refused before any entity could be declared, and with it entities that expand for ever.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from wsabie.base.errors import InputError

_DEEPEST = 200


@dataclass
class Element:
    """An element: qualified name ("uri name" or "name"), attributes, its own text, and its children."""

    name: str
    attributes: dict[str, str]
    text: str = ""
    children: list["Element"] = field(default_factory=list)

    @property
    def local_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(" ")[2]

    def walk(self) -> Iterator["Element"]:
        """This element and everything below, in document order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))


def parse_xml(content: bytes, where: str) -> Element:
    """The root element of an XML document.

    Raises
    ------
    InputError
        Not well-formed, nested deeper than 200, or with a document type declaration.

    Examples
    --------
    >>> [e.attributes["name"] for e in parse_xml(b"<labels><label name='sky'/></labels>", "a.xml").children]
    ['sky']
    """
    builder = _Builder(where)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = builder.refuse
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where} is not well-formed XML ({error}); repair or remove it") from error
    return builder.root


class _Builder:
    def __init__(self, where: str) -> None:
        self.where = where
        self.root = Element("", {})
        self.open: list[Element] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes)
        if len(self.open) >= _DEEPEST:
            raise InputError(f"{self.where} nests elements deeper than {_DEEPEST}; it is not a file of this kind")
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, name: str) -> None:
        self.open.pop()

    def characters(self, text: str) -> None:
        self.open[-1].text += text

    def refuse(self, *_: object) -> None:
        raise InputError(
            f"{self.where} has a document type declaration, which could expand without end; remove the <!DOCTYPE ...>"
        )
