"""Whatever stands in a folder's files: a model, or one sentence."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wsabie.core.errors import ModelFolderError
from wsabie.storage import model_folder
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["F32", "<f4"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
numbers = st.integers(-2, 2**70) | st.floats() | values


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("any") / "m"
    save_model_folder(path, ModelState("test", {"names": ["dog"]}, {"W": np.ones((2, 3), np.float32)}))
    return path


def refused(path: Path) -> bool:
    """Return True if the folder is refused in one sentence; else it must be readable as a whole."""
    message = ""
    try:
        state = open_model_folder(path)
    except ModelFolderError as error:
        message = str(error)
    else:
        assert all(array.tobytes() for array in state.tensors.values())
        return False
    assert message
    assert "\n" not in message
    return True


@settings(deadline=None)
@given(content=st.one_of(st.binary(max_size=200), st.text('{}[]":, \n0', max_size=60).map(str.encode)))
@example(content=b"[" * 200_000)
@example(content=b'{"format": "wsabie", "version": ' + b"1" * 5000 + b"}")
def test_any_bytes_as_config(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any")
    (path / "config.json").write_bytes(content)
    assert refused(path)


@settings(deadline=None)
@given(
    change=st.dictionaries(st.sampled_from(["kind", "config", "tensors", "version", "format"]), values),
    entry=st.dictionaries(st.sampled_from(["file", "sha256", "dtype", "shape"]), values),
)
@example(change={}, entry={"file": "tensors/" + "x" * 300})
@example(change={}, entry={"file": "\0"})
@example(change={}, entry={"file": "\ud800"})
def test_any_values_in_a_config_with_a_good_checksum(model: Path, change: dict[str, Any], entry: Any) -> None:
    pointer = json.loads((model / "config.json").read_text())
    original = (model / "config.json").read_bytes()
    del pointer["sha256"]
    pointer["tensors"]["W"].update(entry)
    body = json.dumps(pointer | change).encode()[1:]
    try:
        head = f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode()
        (model / "config.json").write_bytes(head + body)
        refused(model)
    finally:
        (model / "config.json").write_bytes(original)
    assert not refused(model)


headers = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["F32", "BOOL"]) | values, "shape": st.lists(numbers, max_size=3) | values,
     "data_offsets": st.lists(numbers, max_size=3) | values}
)  # fmt: skip


@settings(deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=60).map(lambda text: len(text).to_bytes(8, "little") + text),
        st.one_of(values, headers.map(lambda info: {"tensor": info})).map(
            lambda header: len(text := json.dumps(header).encode()).to_bytes(8, "little") + text
        ),
    )
)
@example(content=(100_000).to_bytes(8, "little") + b"[" * 100_000)
def test_any_bytes_as_tensor(model: Path, content: bytes) -> None:
    """With the right checksum, so that the header is what is looked at."""
    original = (model / "config.json").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    file = model / "tensors" / f"{digest[:32]}.safetensors"
    file.write_bytes(content)
    pointer = json.loads(original)
    del pointer["sha256"]
    pointer["tensors"]["W"] |= {"file": f"tensors/{file.name}", "sha256": digest}
    try:
        model_folder.write_json_with_checksum(model / "config.json", pointer)
        assert refused(model)
    finally:
        (model / "config.json").write_bytes(original)
        file.unlink()
