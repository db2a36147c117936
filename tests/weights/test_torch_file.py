"""Torch files: strided tensors are read as they are meant, and everything but tensors is refused."""

import contextlib
import io
import pickle
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).resolve().parents[2] / "weights"))

from torch_states import DICT, MARK, PROTO, StateTensor, encode_file, encode_state, encode_tensor, encode_text

from conversion.torch_file import TorchFileError, read_pickle, read_torch_file

SIX = np.arange(6, dtype=np.float32)


def write_state(path: Path, tensors: list[StateTensor], storages: dict[str, np.ndarray], **options: bool) -> Path:
    path.write_bytes(encode_file(encode_state(tensors), storages, **options))
    return path


def test_strides_and_offsets_are_honoured(tmp_path):
    tensors = [
        StateTensor("rows", "7", 6, 0, (2, 3), (3, 1)),
        StateTensor("columns", "7", 6, 0, (2, 3), (1, 2)),
        StateTensor("tail", "7", 6, 4, (2,), (1,)),
        StateTensor("repeated", "7", 6, 1, (2, 2), (0, 3)),
        StateTensor("count", "8", 1, 0, (), (), "LongStorage"),
        StateTensor("empty", "7", 6, 0, (0, 3), (3, 1)),
    ]
    path = write_state(tmp_path / "a.pth", tensors, {"7": SIX, "8": np.array([12], np.int64)})
    state = read_torch_file(path)
    assert {name: array.tolist() for name, array in state.items()} == {
        "rows": [[0, 1, 2], [3, 4, 5]],
        "columns": [[0, 2, 4], [1, 3, 5]],
        "tail": [4, 5],
        "repeated": [[1, 4], [1, 4]],
        "count": 12,
        "empty": [],
    }
    assert all(array.flags.c_contiguous for array in state.values())
    assert state["rows"].dtype == np.float32


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (StateTensor("a", "7", 6, 0, (2, 3), (3, 2)), "beyond its storage"),
        (StateTensor("a", "7", 6, 5, (2,), (1,)), "beyond its storage"),
        (StateTensor("a", "7", 6, -1, (2,), (1,)), "has shape"),
        (StateTensor("a", "7", 6, 5, (2,), (-1,)), "has shape"),
        (StateTensor("a", "7", 6, 0, (2, 3), (1,)), "has shape"),
        (StateTensor("a", "7", 5, 0, (2,), (1,)), "does not begin with its 5 elements"),
        (StateTensor("a", "6", 6, 0, (2,), (1,)), "no tensor lies in the storage '7'"),
        (StateTensor("a", "7", 6, 0, (2,), (1,), "HalfStorage"), "'torch HalfStorage'"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(tensor, message, tmp_path):
    with pytest.raises(TorchFileError, match=message):
        read_torch_file(write_state(tmp_path / "a.pth", [tensor], {"7": SIX}))


def test_two_sizes_of_a_storage_are_refused(tmp_path):
    tensors = [StateTensor("a", "7", 9, 0, (9,), (1,)), StateTensor("b", "7", 6, 0, (6,), (1,))]
    with pytest.raises(TorchFileError, match="the storage of 'a' is missing, or has another size"):
        read_torch_file(write_state(tmp_path / "a.pth", tensors, {"7": SIX}))


def test_other_files_are_refused(tmp_path):
    tensor = StateTensor("a", "7", 6, 0, (6,), (1,))
    path = write_state(tmp_path / "a.pth", [tensor], {"7": SIX}, little_endian=False)
    with pytest.raises(TorchFileError, match="big-endian"):
        read_torch_file(path)
    whole = encode_file(encode_state([tensor]), {"7": SIX})
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(TorchFileError):
            read_torch_file(path)
    path.write_bytes(encode_file(PROTO + DICT + MARK + encode_text("a") + encode_text("b") + b"u.", {}))
    with pytest.raises(TorchFileError, match="more than tensors"):
        read_torch_file(path)


class Attack:
    """Object whose pickle calls a function when it is loaded."""

    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Attack(), protocol=2), "names '(__builtin__|builtins) print'"),
        (pickle.dumps(Attack(), protocol=4), "opcode"),
        (pickle.dumps(1.5, protocol=2), "opcode BINFLOAT"),
        (pickle.dumps({1, 2}, protocol=4), "opcode"),
        (b"cos\nsystem\n.", "names 'os system'"),
        (b"ios\nsystem\n.", "opcode INST"),
        (b"\xff.", "damaged"),
        (b"R.", "damaged"),
        (b"h\x05.", "damaged"),
        (b"", "damaged"),
        (PROTO + DICT + DICT + b"R.", "calls something other"),
        (PROTO + b"ccollections\nOrderedDict\n(K\x01tR.", "calls something other"),
        (PROTO + encode_tensor(StateTensor("a", "7", 6, 0, (2,), (1,))).replace(b"storage", b"modules"), "refers to"),
    ],
)
def test_opcodes_and_names_of_other_pickles_are_refused(content, message, tmp_path, capsys):
    (tmp_path / "a").write_bytes(content)
    with (tmp_path / "a").open("rb") as file, pytest.raises(TorchFileError, match=message):
        read_pickle(file)
    assert capsys.readouterr().out == ""


def test_plain_values_are_those_of_pickle(tmp_path):
    value = {"a": [1, 300, 70_000, -5, 1 << 70], "b": (), "c": (True, False, None), "d": OrderedDict(x=(1, 2, 3, 4))}
    (tmp_path / "a").write_bytes(pickle.dumps(value, protocol=2))
    with (tmp_path / "a").open("rb") as file:
        assert read_pickle(file) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error(content):
    with contextlib.suppress(TorchFileError):
        read_pickle(io.BytesIO(PROTO + content))
