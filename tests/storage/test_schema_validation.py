"""Files of ours are checked field by field, and the sentence names the field."""

from dataclasses import dataclass, field

import pytest

from wsabie.core.errors import InputError, ModelFolderError
from wsabie.storage.schema_validation import Count, Sha256, parse_json


@dataclass(frozen=True)
class Entry:
    sha256: Sha256
    shape: list[Count]


@dataclass(frozen=True)
class Manifest:
    rows: Count
    entries: dict[str, Entry] = field(default_factory=dict)


def test_a_right_document_is_an_instance() -> None:
    content = b'{"rows": 2, "entries": {"V": {"sha256": "%s", "shape": [2, 3]}}, "later": 1}' % (b"0f" * 32)
    assert parse_json(Manifest, content, "m.json", "make it again") == Manifest(2, {"V": Entry("0f" * 32, [2, 3])})


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "m.json is damaged (Expecting value"),
        (b"[" * 100_000, "m.json is damaged (maximum recursion depth"),
        (b'{"rows": "\xff"}', "m.json is damaged ('utf-8' codec"),
        (b'{"rows": "\\ud800"}', "m.json is damaged"),
        (b"[]", "m.json is damaged: expected object, got array; make it again"),
        (b"{}", "m.json is damaged: object missing required field rows; make it again"),
        (b'{"rows": true}', "m.json is damaged at rows: expected int, got bool; make it again"),
        (b'{"rows": 9007199254740992}', "m.json is damaged at rows: expected int <= 9007199254740991; make it again"),
        (
            b'{"rows": 1, "entries": {"V": {"sha256": "%s", "shape": [2, "x"]}}}' % (b"0f" * 32),
            "m.json is damaged at entries[...].shape[1]: expected int, got str; make it again",
        ),
    ],
)
def test_a_wrong_document_is_refused_with_its_field(content: bytes, fault: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_json(Manifest, content, "m.json", "make it again")
    assert str(refused.value).startswith(fault)
    with pytest.raises(ModelFolderError):
        parse_json(Manifest, content, "m.json", "make it again", ModelFolderError)
