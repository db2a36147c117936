"""Finished results of a comparison on disk, so that a run that is stopped goes on; no result is ever half written."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.plain import plain
from wsabie.evaluation.evaluate import Evaluation, LabelFigures
from wsabie.models.registry import load
from wsabie.storage.folder import Parts, load_folder, save_folder
from wsabie.storage.schema import Count, check_schema

KIND = "result"
FILES = r"[0-9a-f]{16}(\.model)?"
"""Names of folders in a store."""


@dataclass(frozen=True)
class EvaluationFacts:
    """An evaluation without its arrays, which are tensors of the same names."""

    ks: list[Count]
    n_labels: Count
    n_skipped: Count
    tied_at_cut: list[Count]
    tied_positives: Count
    coverage: list[float]
    ceilings: dict[str, float]
    k: Count


@dataclass(frozen=True)
class ResultFacts:
    """A result without its arrays.

    Attributes
    ----------
    identity : dict
        Data, settings and versions that it was made with.
    name : str
        What it is the result of.
    facts : dict
        What the comparison adds: seconds, parameters, why a model was skipped.
    evaluations : dict of str to EvaluationFacts
    """

    identity: dict[str, Any]
    name: str
    facts: dict[str, Any]
    evaluations: dict[str, EvaluationFacts]


@dataclass(frozen=True)
class Result:
    """Result of one model: facts, figures by name, and the model itself where it is wanted later."""

    facts: dict[str, Any]
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    model: Any = None


@dataclass(frozen=True)
class ResultStore:
    """A folder of finished results.

    Parameters
    ----------
    folder : Path
    with_models : bool
        Keep fitted models too, which a report needs.
    identity : dict
        Data, settings and versions of the comparison, JSON-able; results with others are refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ResultStore(Path(folder)).with_identity({"seed": 0})
    ...     store.add("nearest", Result({"seconds": 1.5}))
    ...     print(store.find("nearest").facts, store.find("popularity"))
    {'seconds': 1.5} None
    """

    folder: Path
    with_models: bool = False
    identity: dict[str, Any] = field(default_factory=dict)

    def with_identity(self, identity: Mapping[str, Any]) -> "ResultStore":
        """The store for a comparison of these data, settings and versions."""
        return replace(self, identity=_as_json(identity))

    @property
    def n_results(self) -> int:
        """Finished results of any identity."""
        return sum((path / "config.json").is_file() for path in self.folder.glob("*") if "." not in path.name)

    def add(self, name: str, result: Result) -> None:
        """Write a result; it is on the disk when this returns."""
        place = self._place(name)
        if self.with_models and result.model is not None:
            result.model.save(place.with_name(place.name + ".model"))
        facts: dict[str, EvaluationFacts] = {}
        tensors: dict[str, Any] = {}
        for number, (key, one) in enumerate(result.evaluations.items()):
            facts[key], arrays = _evaluation_parts(one)
            tensors |= {f"{number}/{part}": array for part, array in arrays.items()}
        config = _as_json(asdict(ResultFacts(self.identity, name, result.facts, facts)))
        save_folder(place, Parts(KIND, config, tensors))

    def find(self, name: str) -> Result | None:
        """Return the finished result of this name; None if there is none, or its model is wanted and was not kept.

        Raises
        ------
        InputError
            It was made with other data, settings or versions, or is damaged.
        """
        place = self._place(name)
        if not (place / "config.json").is_file():
            return None
        parts = load_folder(place)
        config = check_schema(ResultFacts, parts.config, place / "config.json", f"delete {place}")
        if parts.kind != KIND or config.name != name:
            raise InputError(f"{place} holds no result of {name}; delete it, or name another folder")
        self._refuse_others(config.identity)
        model = None
        if self.with_models and "reason" not in config.facts:
            try:
                model = load(place.with_name(place.name + ".model"))
            except ModelFolderError:
                return None
        try:
            evaluations = {
                key: _evaluation(one, parts.under(str(number), KIND, {}).tensors)
                for number, (key, one) in enumerate(config.evaluations.items())
            }
        except (KeyError, ValueError) as error:
            raise InputError(f"{place} is damaged ({error}); delete it") from error
        return Result(config.facts, evaluations, model)

    def _place(self, name: str) -> Path:
        return self.folder / hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _refuse_others(self, identity: Mapping[str, Any]) -> None:
        names = {*identity, *self.identity}
        different = sorted(name for name in names if identity.get(name) != self.identity.get(name))
        if different:
            raise InputError(
                f"{self.folder} holds results with other {', '.join(different)}, which cannot be compared; give the "
                "same data and settings, begin anew (--anew), or name another folder (--work)"
            )


def digest(value: Any) -> str:
    """Return 16 hex digits that tell apart values made of arrays, lists, dicts, dataclasses and scalars.

    Examples
    --------
    >>> digest([np.arange(3), "a"]) == digest([np.arange(3), "a"]), digest(["ab"]) == digest(["a", "b"])
    (True, False)
    """
    found = hashlib.sha256()
    _add(found, value)
    return found.hexdigest()[:16]


def _add(found: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        found.update(f"{value.dtype}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif value is None or isinstance(value, str | bytes | int | float | np.generic):
        found.update(f"{type(value).__name__}{value!r},".encode("utf-8", "surrogatepass"))
    elif isinstance(value, Mapping):
        _add(found, [*value.items()])
    elif hasattr(value, "tocsr"):
        matrix = value.tocsr()
        _add(found, [matrix.shape, matrix.indptr, matrix.indices, matrix.data])
    elif hasattr(value, "__dict__"):
        _add(found, vars(value))
    else:
        items = list(value)
        found.update(f"[{len(items)}".encode())
        for one in items:
            _add(found, one)


def _as_json(value: Any) -> Any:
    """Return a value as it comes back from a file."""
    return json.loads(json.dumps(plain(value), default=str))


def _evaluation_parts(one: Evaluation) -> tuple[EvaluationFacts, dict[str, Any]]:
    cut, covered = [one.tied_at_cut[k] for k in one.ks], [one.coverage[k] for k in one.ks]
    facts = EvaluationFacts(
        list(one.ks), one.n_labels, one.n_skipped, cut, one.tied_positives, covered, one.ceilings, one.labels.k
    )
    labels = {name: getattr(one.labels, name) for name in ("support", "recall", "reciprocal_rank")}
    return facts, {"rows": one.rows, **labels, **{f"row {name}": values for name, values in one.per_row.items()}}


def _evaluation(facts: EvaluationFacts, arrays: Mapping[str, Any]) -> Evaluation:
    labels = LabelFigures(facts.k, *(np.array(arrays[name]) for name in ("support", "recall", "reciprocal_rank")))
    per_row = {name.removeprefix("row "): np.array(array) for name, array in arrays.items() if name.startswith("row ")}
    return Evaluation(
        ks=tuple(facts.ks),
        n_labels=facts.n_labels,
        rows=np.array(arrays["rows"]),
        n_skipped=facts.n_skipped,
        per_row=per_row,
        tied_at_cut=_by_k(facts.ks, facts.tied_at_cut),
        tied_positives=facts.tied_positives,
        coverage=_by_k(facts.ks, facts.coverage),
        ceilings=facts.ceilings,
        labels=labels,
    )


def _by_k(ks: Sequence[int], values: Sequence[Any]) -> dict[int, Any]:
    return dict(zip(ks, values, strict=True))
