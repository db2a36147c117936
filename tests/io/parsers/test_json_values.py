"""JSON read element by element says what `json` says of the whole."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.parsers import json_values
from wsabie.io.parsers.json_values import iterate_elements

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
REQUESTED = ("a", "b")


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json") / "a.json"


@given(
    lists=st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(VALUES, max_size=5)),
    more=st.dictionaries(st.sampled_from(["d", "é"]), VALUES),
    block=st.sampled_from([1, 2, 7, 1000]),
    indent=st.sampled_from([None, 1]),
    ascii=st.booleans(),
)
def test_elements_equal_those_of_a_whole_read(scratch: Path, lists, more, block: int, indent, ascii: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_values, "_BLOCK", block)
        scratch.write_text(json.dumps(more | lists, indent=indent, ensure_ascii=ascii), encoding="utf-8")
        elements = list(iterate_elements(scratch, REQUESTED))
    assert elements == [(name, value) for name, values in lists.items() if name in REQUESTED for value in values]


@example(b'{"a": [1], "c": [2]}')
@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:a1 ', max_size=30).map(str.encode))
def test_any_bytes_give_elements_or_one_sentence(scratch: Path, result_or_sentence, content: bytes) -> None:
    scratch.write_bytes(content)
    elements = result_or_sentence(lambda: list(iterate_elements(scratch, REQUESTED)))
    if elements is not None:
        document = json.loads(content)
        assert {name for name, _ in elements} == {name for name in REQUESTED if document.get(name)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "'\\[' in place of"),
        ('{"a": [1, 2', "a broken value|its end"),
        ('{"a": [1,, 2]}', "a broken value"),
        ('{"a": 7}', "'a' of .* is not a list"),
        ('{"a": []} {}', "more than one object"),
        ("{1: []}", "a member without a name"),
        ('{"a": [' + "[" * 100_000, "nested too deeply"),
        ("", "its end"),
    ],
)
def test_broken_files_give_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        list(iterate_elements(tmp_path / "a.json", REQUESTED))
    assert "\n" not in str(caught.value)


def test_endless_element_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "MAX_VALUE_LENGTH", 1000)
    monkeypatch.setattr(json_values, "_BLOCK", 100)
    (tmp_path / "a.json").write_text('{"a": ["' + "x" * 9000 + '"]}')
    with pytest.raises(InputError, match="or one of more than"):
        list(iterate_elements(tmp_path / "a.json", REQUESTED))


def test_gzip_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"a": [1]}'))
    assert list(iterate_elements(tmp_path / "a.json.gz", REQUESTED)) == [("a", 1)]
