"""Model folders: what goes in comes out bit for bit, damage of any kind is named, and nobody's files are lost."""

import hashlib
import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError, ModelFolderError
from wsabie.storage import atomic_files, model_folder
from wsabie.storage.model_folder import (
    ModelState,
    is_model_folder,
    map_tensor,
    measure_folder_bytes,
    open_model_folder,
    read_content_checksum,
    read_folder_kind,
    refuse_foreign_files,
    save_model_folder,
)

DTYPES = ["f8", "f4", "f2", "i8", "i4", "u8", "u4", "u2", "i1", "u1", "?"]


def parts(seed: int = 0, n: int = 50) -> ModelState:
    rng = np.random.default_rng(seed)
    tensors = {"W": rng.random((n, 3), np.float32), "a/b": rng.integers(0, 9, n)}
    return ModelState("test", {"names": ["dog", "犬"], "x": 0.1, "none": None}, tensors)


def assert_equal(state: ModelState, expected: ModelState) -> None:
    assert (state.kind, state.config, set(state.tensors)) == (expected.kind, expected.config, set(expected.tensors))
    for name, array in expected.tensors.items():
        assert state.tensors[name].dtype == array.dtype
        assert np.array_equal(state.tensors[name], array)


def tensor_files(path: Path) -> list[Path]:
    return sorted((path / "tensors").iterdir())


def rewrite_config(path: Path, change: Any) -> None:
    """Change the config as its own writer would, checksum included."""
    pointer = json.loads((path / "config.json").read_text())
    del pointer["sha256"]
    change(pointer)
    model_folder.write_json_with_checksum(path / "config.json", pointer)


# ---- round trip


def test_the_mark_of_a_folder_changes_with_its_content_alone(tmp_path: Path) -> None:
    assert read_content_checksum(tmp_path / "m") == ""
    save_model_folder(tmp_path / "m", parts())
    mark = read_content_checksum(tmp_path / "m")
    assert mark == json.loads((tmp_path / "m/config.json").read_bytes())["sha256"]
    save_model_folder(tmp_path / "m", parts())
    assert read_content_checksum(tmp_path / "m") == mark
    save_model_folder(tmp_path / "m", ModelState("another", {}, {}))
    assert read_content_checksum(tmp_path / "m") != mark


def test_loaded_is_saved_and_mapped_read_only(tmp_path: Path) -> None:
    save_model_folder(tmp_path / "m", parts())
    state = open_model_folder(tmp_path / "m")
    assert_equal(state, parts())
    assert isinstance(state.tensors["W"], np.memmap)
    assert not state.tensors["W"].flags.writeable
    assert is_model_folder(tmp_path / "m")
    assert read_folder_kind(tmp_path / "m") == "test"
    assert measure_folder_bytes(tmp_path / "m") == sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())


@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 4), min_size=0, max_size=3),
    st.sampled_from(["C", "F", "strided", "big-endian"]),
)
def test_any_array_comes_back(tmp_path_factory: Any, dtype: str, shape: list[int], layout: str) -> None:
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    given_array = array
    if layout == "F":
        given_array = np.asfortranarray(array)
    elif layout == "strided":
        given_array = np.repeat(array[..., None], 2, -1)[..., 0]
    elif layout == "big-endian":
        given_array = array.astype(array.dtype.newbyteorder(">"))
    path = tmp_path_factory.mktemp("m")
    save_model_folder(path, ModelState("test", {}, {"t": given_array}))
    tensor = open_model_folder(path).tensors["t"]
    assert tensor.dtype == array.dtype
    assert np.array_equal(tensor.reshape(array.shape), array)


def test_tensor_files_are_safetensors_for_everybody(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    save_model_folder(tmp_path, parts())
    entry = json.loads((tmp_path / "config.json").read_text())["tensors"]["W"]
    assert np.array_equal(load_file(tmp_path / entry["file"])["tensor"], parts().tensors["W"])
    assert entry["sha256"] == hashlib.sha256((tmp_path / entry["file"]).read_bytes()).hexdigest()


def test_config_begins_with_the_checksum_of_the_rest(tmp_path: Path) -> None:
    """The folder holds the bytes that the module documents."""
    save_model_folder(tmp_path, parts())
    content = (tmp_path / "config.json").read_bytes()
    digest = hashlib.sha256(content[80:]).hexdigest()
    assert content[:80] == b'{\n "sha256": "' + digest.encode() + b'",'
    assert list(json.loads(content)) == ["sha256", "format", "version", "kind", "config", "tensors"]


def test_a_new_save_replaces_and_leaves_no_litter(tmp_path: Path) -> None:
    save_model_folder(tmp_path, parts(0))
    drafts = [tmp_path / "tensors" / f".{'0' * 32}.safetensors.x1.tmp", tmp_path / ".config.json.y2.tmp"]
    for draft in drafts:
        draft.write_bytes(b"of a save that was killed")
    (tmp_path / "notes.txt").write_text("mine")
    save_model_folder(tmp_path, parts(1))
    assert_equal(open_model_folder(tmp_path), parts(1))
    assert len(tensor_files(tmp_path)) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "notes.txt", "tensors"]


def test_saving_again_rewrites_no_tensor(tmp_path: Path) -> None:
    save_model_folder(tmp_path, parts())
    times_before = [p.stat().st_mtime_ns for p in tensor_files(tmp_path)]
    save_model_folder(tmp_path, parts())
    assert [p.stat().st_mtime_ns for p in tensor_files(tmp_path)] == times_before


def test_a_reader_keeps_its_arrays_while_the_model_is_replaced(tmp_path: Path) -> None:
    save_model_folder(tmp_path, parts(0))
    state = open_model_folder(tmp_path)
    save_model_folder(tmp_path, parts(1))
    assert_equal(state, parts(0))


def test_a_folder_that_is_replaced_while_it_is_opened_is_the_new_one(tmp_path: Path, monkeypatch: Any) -> None:
    save_model_folder(tmp_path, ModelState("a", {}, {"x": np.zeros(3)}))
    load_tensor = model_folder._load_tensor

    def late(*arguments: Any) -> Any:
        monkeypatch.undo()
        save_model_folder(tmp_path, ModelState("a", {}, {"x": np.ones(3)}))
        return load_tensor(*arguments)

    monkeypatch.setattr(model_folder, "_load_tensor", late)
    assert open_model_folder(tmp_path).tensors["x"].tolist() == [1, 1, 1]


def test_a_folder_that_was_another_meanwhile_is_opened_again(tmp_path: Path, monkeypatch: Any) -> None:
    first, second = (ModelState("a", {}, {"x": np.full(3, value)}) for value in (0, 1))
    save_model_folder(tmp_path, first)
    load_tensor = model_folder._load_tensor

    def replace_and_restore(*arguments: Any) -> Any:
        monkeypatch.undo()
        save_model_folder(tmp_path, second)
        try:
            return load_tensor(*arguments)
        finally:
            save_model_folder(tmp_path, first)

    monkeypatch.setattr(model_folder, "_load_tensor", replace_and_restore)
    assert open_model_folder(tmp_path).tensors["x"].tolist() == [0, 0, 0]


def test_two_saves_wait_for_each_other(tmp_path: Path) -> None:
    """Each removes what its own config does not name, which the other has just written."""
    models = [parts(seed) for seed in (0, 1)]

    def save(number: int) -> None:
        for _ in range(30):
            save_model_folder(tmp_path / "m", models[number])

    save_model_folder(tmp_path / "m", models[0])
    with ThreadPoolExecutor(2) as pool:
        saving = [pool.submit(save, number) for number in (0, 1)]
        while not all(future.done() for future in saving):
            open_model_folder(tmp_path / "m")
        for future in saving:
            future.result()
    assert len(tensor_files(tmp_path / "m")) == len(models[0].tensors)


def test_nested_parts(tmp_path: Path) -> None:
    outer = ModelState("outer", {"inner": parts().config}, {**parts().add_prefix("inner"), "own": np.zeros(2)})
    save_model_folder(tmp_path, outer)
    state = open_model_folder(tmp_path)
    assert_equal(state.select_prefix("inner", "test", state.config["inner"]), parts())


# ---- damage


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_model_folder(tmp_path / "m", parts())
    return tmp_path / "m"


def test_any_flipped_bit_is_noticed(saved: Path) -> None:
    """Every byte of the config, and a spread of bytes of each tensor file, headers included."""
    for file in [saved / "config.json", *tensor_files(saved)]:
        content = file.read_bytes()
        step = 1 if file.name == "config.json" else max(1, len(content) // 60)
        for at in [*range(0, len(content), step), len(content) - 1]:
            damaged = bytearray(content)
            damaged[at] ^= 1 << (at % 8)
            file.write_bytes(damaged)
            with pytest.raises(ModelFolderError):
                open_model_folder(saved)
        file.write_bytes(content)
    assert_equal(open_model_folder(saved), parts())


@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.999])
def test_truncated_files_are_named(saved: Path, keep: float) -> None:
    for file in [saved / "config.json", *tensor_files(saved)]:
        content = file.read_bytes()
        file.write_bytes(content[: int(keep * len(content))])
        with pytest.raises(ModelFolderError, match=rf"{file}.* is damaged.*restore the folder from a copy"):
            open_model_folder(saved)
        file.write_bytes(content)


def test_unverified_loading_still_refuses_a_wrong_size(saved: Path) -> None:
    file = tensor_files(saved)[0]
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ModelFolderError, match="is damaged"):
        open_model_folder(saved, verify=False)


def test_a_missing_tensor_is_named(saved: Path) -> None:
    file = tensor_files(saved)[0]
    file.unlink()
    with pytest.raises(ModelFolderError, match=rf"{file} \(tensor .*\) is missing; restore"):
        open_model_folder(saved)


def lock(patch: pytest.MonkeyPatch, method: str, *files: Path) -> None:
    """Files that a method of Path may not touch: tests may run as a user who may do everything."""
    place: Any = os if method == "open" else Path
    real, access = getattr(place, method), os.access

    def refused(path: Any, *args: Any, **options: Any) -> Any:
        if path in files:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **options)

    patch.setattr(place, method, refused)
    patch.setattr(os, "access", lambda path, mode: path not in files and access(path, mode))


@pytest.mark.parametrize("method", ["open", "stat"])
def test_a_tensor_that_may_not_be_read_is_not_called_damaged(saved: Path, monkeypatch: Any, method: str) -> None:
    """`stat` fails where the folder is closed, `open` where the file is."""
    lock(monkeypatch, method, *tensor_files(saved))
    for verify in (True, False):
        with pytest.raises(
            InputError, match=rf"^cannot read {saved}/tensors/\w*.safetensors: Permission denied; check"
        ):
            open_model_folder(saved, verify=verify)


@pytest.mark.parametrize("method", ["open", "stat"])
@pytest.mark.parametrize("look", [open_model_folder, is_model_folder, read_folder_kind, refuse_foreign_files])
def test_a_config_that_may_not_be_read_is_not_called_damaged(
    saved: Path, monkeypatch: Any, method: str, look: Any
) -> None:
    lock(monkeypatch, method, saved / "config.json")
    with pytest.raises(
        InputError, match=rf"^cannot read {saved}/config.json: Permission denied; check its permissions"
    ):
        look(saved)


def test_unreadable_tensors_are_rewritten(saved: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lock(patch, "open", *tensor_files(saved))
        save_model_folder(saved, parts())
    assert_equal(open_model_folder(saved), parts())


def test_old_tensors_that_may_not_be_removed_are_told(saved: Path, monkeypatch: Any) -> None:
    lock(monkeypatch, "unlink", *tensor_files(saved))
    with pytest.raises(InputError, match=rf"cannot write {saved}: Permission denied"):
        save_model_folder(saved, parts(1))
    assert_equal(open_model_folder(saved), parts(1))


def test_another_version_says_what_to_install(saved: Path) -> None:
    rewrite_config(saved, lambda pointer: pointer.update(version=7))
    with pytest.raises(ModelFolderError, match="has format 7 and this program reads format 1; install"):
        open_model_folder(saved)
    assert not is_model_folder(saved)


@pytest.mark.parametrize(
    "change",
    [
        {"tensors": None},
        {"tensors": []},
        {"config": 3},
        {"kind": None},
        {"tensors": {"W": 3}},
        {"tensors": {"W": {}}},
        {"tensors": {"W": {"file": "../../etc/passwd", "sha256": "0"}}},
    ],
)
def test_configs_that_lie_are_refused(saved: Path, change: dict[str, Any]) -> None:
    rewrite_config(saved, lambda pointer: pointer.update(change))
    with pytest.raises(ModelFolderError):
        open_model_folder(saved)


@pytest.mark.parametrize("key", ["shape", "dtype"])
def test_an_entry_that_disagrees_with_its_file_is_refused(saved: Path, key: str) -> None:
    def lie(pointer: Any) -> None:
        pointer["tensors"]["W"][key] = pointer["tensors"]["a/b"][key]

    rewrite_config(saved, lie)
    with pytest.raises(ModelFolderError, match=r"tensor 'W'\) is damaged"):
        open_model_folder(saved)


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b'{"format": "other"}', b"\xff\xfe", b"[" * 100_000, b'{"format": "wsabie", "version": 1}'],
)
def test_foreign_configs_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ModelFolderError, match=str(tmp_path)):
        open_model_folder(tmp_path)
    assert not is_model_folder(tmp_path)


@pytest.mark.parametrize(
    "info",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]},
        {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
        {"dtype": "OBJECT", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": "2", "data_offsets": [0, 4]},
        {"dtype": "F32"},
        3,
    ],
)
def test_hostile_headers_read_nothing(tmp_path: Path, info: Any) -> None:
    text = json.dumps({"tensor": info}).encode()
    (tmp_path / "t").write_bytes(len(text).to_bytes(8, "little") + text + b"12345678")
    with pytest.raises((ValueError, KeyError, TypeError)):
        map_tensor(tmp_path / "t")


def test_a_header_length_of_a_terabyte_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="header length"):
        map_tensor(tmp_path / "t")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"there is no model at .*; give the folder that `train"):
        open_model_folder(tmp_path / "m")
    with pytest.raises(ModelFolderError, match=r"is not a model folder: it has no config.json"):
        open_model_folder(tmp_path)
    assert read_folder_kind(tmp_path) is None
    save_model_folder(tmp_path / "model", ModelState("wsabie", {}, {}))  # as `wsabie tune --out` leaves it
    with pytest.raises(ModelFolderError, match=f"but holds one; give {tmp_path / 'model'}"):
        open_model_folder(tmp_path)


# ---- somebody else's files


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ModelFolderError, match="holds other files; choose an empty or new folder"):
        save_model_folder(tmp_path, parts())
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_another_programs_config_is_not_overwritten(tmp_path: Path) -> None:
    """Many programs keep a `config.json`, and some a folder of `tensors`."""
    (tmp_path / "config.json").write_text('{"architectures": ["Other"]}')
    (tmp_path / "tensors").mkdir()
    (tmp_path / "tensors" / "weights.safetensors").write_text("theirs")
    for _ in range(2):
        with pytest.raises(ModelFolderError, match="holds other files"):
            save_model_folder(tmp_path, parts())
        (tmp_path / "config.json").unlink(missing_ok=True)
    assert (tmp_path / "tensors" / "weights.safetensors").read_text() == "theirs"


def test_a_config_without_our_tensors_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("")
    (tmp_path / "tensors").mkdir()
    with pytest.raises(ModelFolderError, match="holds other files"):
        refuse_foreign_files(tmp_path)


def test_only_tensors_of_ours_are_ever_removed(saved: Path) -> None:
    (saved / "tensors" / "weights.safetensors").write_text("theirs")
    save_model_folder(saved, parts(1))
    assert (saved / "tensors" / "weights.safetensors").read_text() == "theirs"
    assert_equal(open_model_folder(saved), parts(1))


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("mine")
    with pytest.raises(ModelFolderError, match="is a file; give the name of a folder"):
        save_model_folder(tmp_path / "m", parts())
    assert (tmp_path / "m").read_text() == "mine"


def test_what_may_be_saved_into(saved: Path, tmp_path: Path) -> None:
    """An empty folder, what a killed first save left, a damaged model, one of another version."""
    (tmp_path / "empty").mkdir()
    refuse_foreign_files(tmp_path / "empty")
    killed = shutil.copytree(saved, tmp_path / "killed")
    (killed / "config.json").rename(killed / ".config.json.x.tmp")
    save_model_folder(killed, parts(1))
    assert_equal(open_model_folder(killed), parts(1))
    for damage in (
        lambda text: text[:200],
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: "",
        lambda text: "\0" * len(text),
    ):
        config = saved / "config.json"
        config.write_text(damage(config.read_text()))
        save_model_folder(saved, parts(1))
        assert_equal(open_model_folder(saved), parts(1))


# ---- full disk


def small_disk(path: Path) -> bool:
    """Mount 256 KiB of memory there, where that is allowed."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)], capture_output=True, check=False
    )
    return mounted.returncode == 0


def test_a_disk_that_fills_up_leaves_the_old_model_and_no_litter(tmp_path: Path) -> None:
    if not small_disk(tmp_path):
        pytest.skip("file systems cannot be mounted here; the next test simulates the full disk")
    try:
        save_model_folder(tmp_path / "m", parts())
        files_before = sorted(p.name for p in (tmp_path / "m").rglob("*"))
        bigger = ModelState("test", {}, {"fits": np.zeros(20_000), "does not": np.ones(60_000)})
        with pytest.raises(InputError, match="the disk is full; free some space and run the same command again"):
            save_model_folder(tmp_path / "m", bigger)
        assert_equal(open_model_folder(tmp_path / "m"), parts())
        assert sorted(p.name for p in (tmp_path / "m").rglob("*")) == files_before
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_save_that_fails_at_any_file_leaves_the_old_model(saved: Path, monkeypatch: Any, writes: int) -> None:
    files_before, writes_left = sorted(p.name for p in saved.rglob("*")), [writes]

    def flush(path: Path) -> None:
        if path.is_file():
            writes_left[0] -= 1
            if writes_left[0] < 0:
                raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files, "_flush", flush)
    with pytest.raises(InputError, match="the disk is full"):
        save_model_folder(saved, parts(1))
    assert_equal(open_model_folder(saved), parts())
    assert sorted(p.name for p in saved.rglob("*")) == files_before


def test_a_first_save_that_fails_can_be_repeated(tmp_path: Path, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(model_folder, "write_json_with_checksum", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            save_model_folder(tmp_path / "m", parts())
    assert not is_model_folder(tmp_path / "m")
    save_model_folder(tmp_path / "m", parts())
    assert_equal(open_model_folder(tmp_path / "m"), parts())


def test_tensors_that_are_not_mapped_outlive_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapped one would end the process here, by SIGBUS."""
    path = tmp_path / "m"
    weights = np.arange(100_000, dtype=np.float32)
    save_model_folder(path, ModelState("test", {}, {"W": weights}))
    monkeypatch.setenv("WSABIE_MAP", "no")
    tensor = open_model_folder(path).tensors["W"]
    for file in (path / "tensors").iterdir():
        os.truncate(file, 100)
    assert np.array_equal(tensor, weights)
    assert not tensor.flags.writeable
    with pytest.raises(ModelFolderError, match="damaged"):
        open_model_folder(path)
