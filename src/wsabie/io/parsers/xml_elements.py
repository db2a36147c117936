"""XML from untrusted files: elements only.

A document type is refused before any entity could be declared, and with it entities that expand for ever.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from wsabie.core.errors import InputError

_DEEPEST = 200
_MAX_ELEMENTS = 300_000  # of elements; each takes some 300 bytes of memory and 5 microseconds


@dataclass(slots=True)
class XmlElement:
    """Element: qualified name ("uri name" or "name"), attributes, text, children, and position.

    `begin` and `end` are the first byte of its start tag and the first behind its end tag, in UTF-8 content.
    """

    name: str
    attributes: dict[str, str]
    text: str = ""
    children: list["XmlElement"] = field(default_factory=list)
    begin: int = 0
    end: int = 0

    @property
    def local_name(self) -> str:
        """Return the name without its namespace."""
        return self.name.rpartition(" ")[2]

    def walk(self) -> Iterator["XmlElement"]:
        """Yield this element and everything below, in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))


def parse_xml(content: bytes, where: Path | str) -> XmlElement:
    """Return the root element of an XML document.

    Raises
    ------
    InputError
        Not well-formed, nested deeper than 200, of more than 300,000 elements, or with a document type declaration.

    Examples
    --------
    >>> [e.attributes["name"] for e in parse_xml(b"<labels><label name='sky'/></labels>", "a.xml").children]
    ['sky']
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    builder = _Builder(where, content, parser)
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
    def __init__(self, where: Path | str, content: bytes, parser: expat.XMLParserType) -> None:
        self.where, self.content, self.parser = where, content, parser
        self.root = XmlElement("", {})
        self.open: list[XmlElement] = []
        self.texts: list[list[str]] = []  # of the open elements, joined once: pieces without number stay cheap
        self.n_elements = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        element = XmlElement(name, attributes, begin=self.parser.CurrentByteIndex)
        self.n_elements += 1
        if len(self.open) >= _DEEPEST:
            raise InputError(f"{self.where} nests elements deeper than {_DEEPEST}; it is not a file of this kind")
        if self.n_elements > _MAX_ELEMENTS:
            raise InputError(f"{self.where} holds more than {_MAX_ELEMENTS:,} elements; it is not a file of this kind")
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.texts.append([])

    def end(self, name: str) -> None:
        element = self.open.pop()
        element.text = "".join(self.texts.pop())
        position = self.parser.CurrentByteIndex  # of the end tag, or behind <a/>
        is_self_closing = self.content[position - 2 : position] == b"/>" and not element.children and not element.text
        element.end = position if is_self_closing else self.content.find(b">", position) + 1

    def characters(self, text: str) -> None:
        self.texts[-1].append(text)

    def refuse(self, *_: object) -> None:
        raise InputError(
            f"{self.where} has a document type declaration, which could expand without end; remove the <!DOCTYPE ...>"
        )
