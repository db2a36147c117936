"""Finished results of a comparison on disk, each written whole, so that an interrupted run continues."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.arrays import Array
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.evaluation.score_evaluation import Evaluation, LabelFigures
from wsabie.models.loader import load
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder
from wsabie.storage.schema_validation import Count, check_schema

KIND = "result"
FILES = r"[0-9a-f]{16}(\.model)?"
"""Names of folders in a store."""
_LABEL_ARRAYS = ("support", "recall", "reciprocal_rank")


@dataclass(frozen=True)
class EvaluationFacts:
    """An evaluation without its arrays, which are tensors of the same names."""

    ks: tuple[Count, ...]
    n_labels: Count
    n_skipped: Count
    tied_positives: Count
    tied_at_cut: dict[str, Count]
    coverage: dict[str, float]
    ceilings: dict[str, float]
    k: Count


@dataclass(frozen=True)
class ResultFacts:
    """A result without its arrays.

    Attributes
    ----------
    identity : dict
        Data, settings and versions of the comparison.
    name : str
        Name of the model.
    facts : dict
        Facts that the comparison adds: seconds, parameters, the reason of an omission.
    evaluations : dict of str to EvaluationFacts
    """

    identity: JsonObject
    name: str
    facts: JsonObject
    evaluations: dict[str, EvaluationFacts]


@dataclass(frozen=True)
class ModelResult:
    """Result of one model: facts, figures by name, and the model itself if it is needed later."""

    facts: JsonObject
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    model: Any = None


@dataclass(frozen=True)
class ResultStore:
    """A folder of finished results.

    Parameters
    ----------
    folder : Path
    with_models : bool
        Save fitted models too, which a report needs.
    identity : dict
        Data, settings and versions of the comparison, JSON-able; results with others are refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ResultStore(Path(folder)).with_identity({"seed": 0})
    ...     store.add("nearest", ModelResult({"seconds": 1.5}))
    ...     print(store.find("nearest").facts, store.find("popularity"))
    {'seconds': 1.5} None
    """

    folder: Path
    with_models: bool = False
    identity: JsonObject = field(default_factory=dict)

    def with_identity(self, identity: Mapping[str, Any]) -> "ResultStore":
        """Return the store for a comparison of these data, settings and versions."""
        return replace(self, identity=_round_trip(identity))

    @property
    def n_results(self) -> int:
        """Number of finished results of any identity."""
        return sum((path / "config.json").is_file() for path in self.folder.glob("*") if "." not in path.name)

    def add(self, name: str, result: ModelResult) -> None:
        """Write a result; it is on the disk when this returns."""
        path = self._find_path(name)
        if self.with_models and result.model is not None:
            result.model.save(path.with_name(path.name + ".model"))
        facts, tensors = JsonObject(), dict[str, Array]()
        for number, (key, evaluation) in enumerate(result.evaluations.items()):
            facts[key], arrays = _split_evaluation(evaluation)
            tensors |= {f"{number}/{part}": array for part, array in arrays.items()}
        config = {"identity": self.identity, "name": name, "facts": result.facts, "evaluations": facts}
        save_model_folder(path, ModelState(KIND, _round_trip(config), tensors))

    def find(self, name: str) -> ModelResult | None:
        """Return the finished result of this name; None if it is missing, or its model is needed and missing.

        Raises
        ------
        InputError
            It was made with other data, settings or versions, or is damaged.
        """
        path = self._find_path(name)
        if not (path / "config.json").is_file():
            return None
        state = open_model_folder(path)
        config = check_schema(ResultFacts, state.config, path / "config.json", f"delete {path}")
        if state.kind != KIND or config.name != name:
            raise InputError(f"{path} holds no result of {name}; delete it, or name another folder")
        self._refuse_other_identity(config.identity)
        model = None
        if self.with_models and "reason" not in config.facts:
            try:
                model = load(path.with_name(path.name + ".model"))
            except ModelFolderError:
                return None
        try:
            evaluations = {
                key: _restore_evaluation(facts, state.select_prefix(str(number), KIND, {}).tensors)
                for number, (key, facts) in enumerate(config.evaluations.items())
            }
        except (KeyError, ValueError) as error:
            raise InputError(f"{path} is damaged ({error}); delete it") from error
        return ModelResult(config.facts, evaluations, model)

    def _find_path(self, name: str) -> Path:
        return self.folder / hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _refuse_other_identity(self, identity: Mapping[str, Any]) -> None:
        names = {*identity, *self.identity}
        different = sorted(name for name in names if identity.get(name) != self.identity.get(name))
        if different:
            fact = f"{self.folder} holds results with other {', '.join(different)}, which cannot be compared"
            remedy = "give the same data and settings, start over (`restart`), or name another folder (`work`)"
            raise InputError(f"{fact}; {remedy}")


def find_or_compute(store: ResultStore | None, name: str, compute: Callable[[], ModelResult]) -> ModelResult:
    """Return the result of this name: from the store, or computed and stored."""
    result = None if store is None else store.find(name)
    if result is None:
        result = compute()
        if store is not None:
            store.add(name, result)
    return result


def compute_value_fingerprint(value: Any) -> str:
    """Return 16 hex digits that tell apart values made of arrays, lists, dicts, dataclasses and scalars.

    Examples
    --------
    >>> (
    ...     compute_value_fingerprint([np.arange(3), "a"]) == compute_value_fingerprint([np.arange(3), "a"]),
    ...     compute_value_fingerprint(["ab"]) == compute_value_fingerprint(["a", "b"]),
    ... )
    (True, False)
    """
    digest = hashlib.sha256()
    _update_digest(digest, value)
    return digest.hexdigest()[:16]


def _update_digest(digest: "hashlib._Hash", value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif value is None or isinstance(value, str | bytes | int | float | np.generic):
        digest.update(f"{type(value).__name__}{value!r},".encode("utf-8", "surrogatepass"))
    elif isinstance(value, Mapping):
        _update_digest(digest, [*value.items()])
    elif hasattr(value, "tocsr"):
        matrix = value.tocsr()
        _update_digest(digest, [matrix.shape, matrix.indptr, matrix.indices, matrix.data])
    elif hasattr(value, "__dict__"):
        _update_digest(digest, vars(value))
    else:
        items = list(value)
        digest.update(f"[{len(items)}".encode())
        for item in items:
            _update_digest(digest, item)


def _round_trip(value: Any) -> Any:
    """Return a value as it comes back from a file."""
    return json.loads(json.dumps(to_json_value(value), default=str))


def _split_evaluation(evaluation: Evaluation) -> tuple[JsonObject, dict[str, Array]]:
    facts = {name: getattr(evaluation, name) for name in EvaluationFacts.__annotations__ if name != "k"}
    arrays = {name: getattr(evaluation.labels, name) for name in _LABEL_ARRAYS}
    per_row = {f"row {name}": values for name, values in evaluation.per_row.items()}
    return {**facts, "k": evaluation.labels.k}, {"rows": evaluation.rows, **arrays, **per_row}


def _restore_evaluation(facts: EvaluationFacts, arrays: Mapping[str, Array]) -> Evaluation:
    per_row = {name.removeprefix("row "): np.array(array) for name, array in arrays.items() if name.startswith("row ")}
    by_k = {name: {int(k): value for k, value in getattr(facts, name).items()} for name in ("tied_at_cut", "coverage")}
    values = {**vars(facts), **by_k}
    labels = LabelFigures(values.pop("k"), *(np.array(arrays[name]) for name in _LABEL_ARRAYS))
    return Evaluation(rows=np.array(arrays["rows"]), per_row=per_row, labels=labels, **values)
