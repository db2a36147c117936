"""Reader of torch files of the legacy kind (before 1.6), which runs no pickle.

Such a file holds five pickles (magic number, protocol, machine, state, keys of storages) and then the storages: for
each key the number of its elements, 8 bytes little-endian, and the elements. The state refers to storages by key, and
tensors are views of them by offset, shape and strides, so that their elements may lie in any order.

Opcodes are decoded by `pickletools`, which executes nothing. Those that the states of networks consist of are
followed here; of globals four names are known, and nothing is imported. All else is refused.
"""

import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001

_ORDERED_DICT = "collections OrderedDict"
_TENSOR = "torch._utils _rebuild_tensor_v2"
_DTYPES: dict[str, np.dtype[Any]] = {"torch FloatStorage": np.dtype("<f4"), "torch LongStorage": np.dtype("<i8")}
_GLOBALS = (_ORDERED_DICT, _TENSOR, *_DTYPES)
_COUNT = struct.Struct("<q")


class TorchFileError(ValueError):
    """Error of a file that is no torch file of this kind, or holds more than named tensors."""


class Storage(NamedTuple):
    """Storage that a pickle refers to."""

    key: str
    dtype: np.dtype[Any]
    n_elements: int


class TensorView(NamedTuple):
    """Tensor as a view of a storage; offset and strides count elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Global(NamedTuple):
    """Name of a class or function, which is never looked up."""

    name: str


class _Mark:
    """Begin of the items that an opcode takes."""


def read_torch_file(path: Path) -> dict[str, NDArray[Any]]:
    """Read the tensors of a state by name, each contiguous.

    Raises
    ------
    TorchFileError
        The file is of another kind, is damaged, or has an opcode or a global name that states do not need.
    """
    with path.open("rb") as file:
        if read_pickle(file) != MAGIC or read_pickle(file) != PROTOCOL:
            raise TorchFileError(f"{path} is no torch file of the legacy kind")
        machine, state, keys = (read_pickle(file) for _ in range(3))
        if not isinstance(machine, dict) or machine.get("little_endian") is not True:
            raise TorchFileError(f"{path} comes from a big-endian machine")
        if not isinstance(state, dict) or not all(isinstance(view, TensorView) for view in state.values()):
            raise TorchFileError(f"{path} holds more than tensors by name")
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise TorchFileError(f"{path} has no list of storages")
        storages = {view.storage.key: view.storage for view in state.values()}
        contents = {key: _read_storage(file, storages.get(key), key) for key in keys}
    return {name: _copy_view(view, contents, name) for name, view in state.items()}


def _read_storage(file: IO[bytes], storage: Storage | None, key: str) -> NDArray[Any]:
    if storage is None:
        raise TorchFileError(f"no tensor lies in the storage {key!r}")  # its elements have no known size
    head = file.read(_COUNT.size)
    if len(head) < _COUNT.size or _COUNT.unpack(head)[0] != storage.n_elements:
        raise TorchFileError(f"the storage {key!r} does not begin with its {storage.n_elements} elements")
    content = file.read(storage.n_elements * storage.dtype.itemsize)
    if len(content) != storage.n_elements * storage.dtype.itemsize:
        raise TorchFileError(f"the file ends within the storage {key!r}")
    return np.frombuffer(content, storage.dtype)


def _copy_view(view: TensorView, contents: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Copy the elements of a view in the order of its axes; refuse one that leaves its storage."""
    storage, offset, shape, strides = view
    if storage.key not in contents or contents[storage.key].nbytes != storage.n_elements * storage.dtype.itemsize:
        raise TorchFileError(f"the storage of {name!r} is missing, or has another size")
    if len(shape) != len(strides) or min((offset, *shape, *strides)) < 0:
        raise TorchFileError(f"the tensor {name!r} has shape {shape} and strides {strides}")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if 0 not in shape and last >= storage.n_elements:
        raise TorchFileError(f"the tensor {name!r} reaches beyond its storage")
    if 0 in shape:
        return np.zeros(shape, storage.dtype)
    steps = tuple(stride * storage.dtype.itemsize for stride in strides)
    elements = contents[storage.key].view(storage.dtype)[offset:]
    return np.lib.stride_tricks.as_strided(elements, shape, steps, writeable=False).copy()


def read_pickle(file: IO[bytes]) -> Any:
    """Read the next pickle of a file: numbers, texts, lists, dicts and views of tensors.

    Raises
    ------
    TorchFileError
        As `read_torch_file`.
    """
    machine = _PickleMachine()
    try:
        for opcode, argument, _ in pickletools.genops(file):
            if opcode.name == "STOP":
                return machine.pop()
            machine.execute(opcode.name, argument)
    except TorchFileError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # of pickletools, or of a stack that is wrong
        raise TorchFileError(f"the pickle is damaged ({error})") from error
    raise TorchFileError("the pickle has no end")


_LITERALS = ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1")
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_MEMO_WRITES, _MEMO_READS = ("BINPUT", "LONG_BINPUT"), ("BINGET", "LONG_BINGET")
_TUPLE_SIZES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _PickleMachine:
    """Stack and memo of a pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._actions: dict[str, Callable[[], None]] = {
            "MARK": lambda: self._stack.append(_Mark()),
            "EMPTY_DICT": lambda: self._stack.append({}),
            "EMPTY_LIST": lambda: self._stack.append([]),
            "TUPLE": lambda: self._stack.append(tuple(self._pop_items())),
            "APPEND": lambda: self._extend([self.pop()]),
            "APPENDS": lambda: self._extend(self._pop_items()),
            "SETITEM": lambda: self._update([self.pop(), self.pop()][::-1]),
            "SETITEMS": lambda: self._update(self._pop_items()),
            "BINPERSID": lambda: self._stack.append(_build_storage(self.pop())),
            "REDUCE": lambda: self._stack.append(_call(*[self.pop(), self.pop()][::-1])),
            "BUILD": self._drop_attributes,
        }

    def execute(self, name: str, argument: Any) -> None:
        """Follow an opcode; refuse one that is not known."""
        if name in _LITERALS:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _MEMO_WRITES:
            self._memo[argument] = self._stack[-1]
        elif name in _MEMO_READS:
            self._stack.append(self._memo[argument])
        elif name in _TUPLE_SIZES:
            self._stack.append(tuple([self.pop() for _ in range(_TUPLE_SIZES[name])][::-1]))
        elif name == "GLOBAL":
            if argument not in _GLOBALS:
                raise TorchFileError(f"the pickle names {argument!r}, which a state of tensors does not need")
            self._stack.append(_Global(argument))
        elif name in self._actions:
            self._actions[name]()
        elif name != "PROTO":
            raise TorchFileError(f"the pickle has the opcode {name}, which a state of tensors does not need")

    def pop(self) -> Any:
        """Take the top of the stack."""
        return self._stack.pop()

    def _pop_items(self) -> list[Any]:
        """Take all items above the last mark, and the mark."""
        items = []
        while not isinstance(item := self._stack.pop(), _Mark):
            items.append(item)
        return items[::-1]

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TorchFileError("the pickle appends to something other than a list")
        target.extend(items)

    def _update(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise TorchFileError("the pickle sets items of something other than a dict")
        target.update(zip(items[::2], items[1::2], strict=True))

    def _drop_attributes(self) -> None:
        """Drop the attributes of a state dict, the versions of its modules."""
        self.pop()
        if not isinstance(self._stack[-1], dict):
            raise TorchFileError("the pickle gives attributes to something other than a dict")


def _build_storage(reference: Any) -> Storage:
    """Return the storage of ("storage", type, key, device, number of elements, view)."""
    kind, storage_type, key, _, n_elements, view = reference
    if kind != "storage" or not isinstance(key, str) or view is not None or storage_type.name not in _DTYPES:
        raise TorchFileError("the pickle refers to something other than a whole storage of numbers")
    if not isinstance(n_elements, int) or n_elements < 0:
        raise TorchFileError(f"the storage {key!r} has {n_elements!r} elements")
    return Storage(key, _DTYPES[storage_type.name], n_elements)


def _call(function: Any, arguments: Any) -> Any:
    """Return the result of one of the two calls that a state consists of."""
    if function == _Global(_ORDERED_DICT) and arguments == ():
        return {}
    if function == _Global(_TENSOR):
        storage, offset, shape, strides, _, _ = arguments
        numbers = (offset, *shape, *strides)
        if isinstance(storage, Storage) and all(type(number) is int for number in numbers):
            return TensorView(storage, offset, tuple(shape), tuple(strides))
    raise TorchFileError("the pickle calls something other than the building of a dict or of a tensor")
