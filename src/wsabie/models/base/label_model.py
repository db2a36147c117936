"""Base of models with named labels: input checks, label names and numbers, annotation by name."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from wsabie.core.arrays import Array, Float32, Int64, Matrix, count_rows
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.machine import collect_versions, resolve_threads
from wsabie.core.validation import check_features, check_positive_integer
from wsabie.models.base.feature_matrix import FeatureMatrix
from wsabie.models.base.hyperparameters import check_types
from wsabie.models.base.label_matrix import Labels, build_signed_label_matrix
from wsabie.search.vector_neighbours import find_vector_neighbours
from wsabie.storage.model_folder import ModelState, SavedModel
from wsabie.storage.schema_validation import PositiveCount, check_parameters, read_config
from wsabie.vocabulary.label_names import Vocabulary, VocabularyEdits

T = TypeVar("T")
Candidates: TypeAlias = Sequence[str | int] | None
"""The only labels that are ranked, by names or numbers; None: all."""
Exclusion: TypeAlias = Matrix | None
"""(n, n_labels): non-zeros are not candidates of a row."""
Ranking: TypeAlias = tuple[Int64, Float32]
"""Label numbers of each row, best first, and their scores."""
LabelScores: TypeAlias = list[tuple[str, float]]
"""Labels with their scores, best first."""


@dataclass(frozen=True)
class LabelModelConfig:
    """The part of a folder's config that every kind of model has."""

    parameters: JsonObject
    label_names: list[str]
    n_features: PositiveCount
    label_edits: VocabularyEdits | None = None
    feature_names_in: list[str] | None = None


class FittedModel(SavedModel, BaseEstimator):  # type: ignore[misc]
    """Base of models with caches of their fitted state, which are neither saved nor copied."""

    _caches: tuple[str, ...] = ("_searched",)
    """Attributes that hold them."""
    _own_limits: tuple[str, ...] = ()
    """Parameters that `check_parameters` of the class checks, and `check_types` does not."""

    threads: int | None
    """Parameter of some models; None: all cores."""

    @property
    def _n_threads(self) -> int:
        return resolve_threads(self.threads)

    def _build_once(self, name: str, source: object, build: Callable[[], T], settings: object = None) -> T:
        """Return what `build` returns, and keep it while `source` is the same object and `settings` are equal."""
        cached: tuple[object, object, T] | None = self.__dict__.get(name)
        if cached is None or cached[0] is not source or cached[1] != settings:
            cached = source, settings, build()
            setattr(self, name, cached)
        return cached[2]

    def _replace_state(self, fitted: Self) -> None:
        """Take over the state of a fitted copy and drop caches of the old state."""
        for name in self._caches:
            fitted.__dict__.pop(name, None)
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted.__dict__)

    def __getstate__(self) -> dict[str, object]:
        state: dict[str, object] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._caches}


def name_best(vocabulary: Vocabulary, ids: Int64, scores: Float32) -> list[LabelScores]:
    """Return the (name, score) of the labels of each row; a label -1 is none."""
    return [
        list(zip(vocabulary.names(row[row >= 0]), row_scores[row >= 0].tolist(), strict=True))
        for row, row_scores in zip(ids, scores, strict=True)
    ]


class LabelModel(FittedModel):
    """Base of models that rank named labels for a row.

    A subclass implements `fit`, `rank`, `scores`, `_dump_tensors` and `_restore_tensors`;
    `wsabie.models.estimator_specs` lists it.

    Attributes
    ----------
    kind : str
        Name of this kind of model in a folder.
    vocabulary_ : Vocabulary
        Label names and numbers; a number never changes.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str or None
        Columns of the data frame that the model was fitted to; None if it was not a data frame.
    """

    vocabulary_: Vocabulary
    n_features_in_: int
    feature_names_in_: Array | None = None

    @abstractmethod
    def rank(self, X: Matrix, k: int = 10, *, exclude: Exclusion = None, candidates: Candidates = None) -> Ranking:
        """Return the k best labels of each row.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int, default 10
        exclude : sparse matrix (n, n_labels) or None
            Labels that are not candidates for a row (non-zero entries), for instance those it already has.
        candidates : list of label names or numbers, or None
            Only these labels.

        Returns
        -------
        ids : (n, k) int64
            Best first, equal scores by label number; -1 where there are fewer than k candidates.
        scores : (n, k) float32
            -inf where ids is -1.

        Raises
        ------
        InputError
            Another width than the model's, values that are not finite, k below 1, or a candidate that is not a label.
        """

    def scores(self, X: Matrix) -> Float32:
        """Return all scores of a block of rows.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        (n, n_labels) float32

        Raises
        ------
        InputError
            Another number of features than in `fit`, or numbers that are not finite.
        """
        return self._compute_scores(self._check_rows(X))

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        """Return the scores (n, n_labels) float32 of checked rows."""
        raise NotImplementedError

    def annotate(self, X: Matrix, k: int = 10, **options: Any) -> list[LabelScores]:
        """Return the k best labels of each row by name, with their scores.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int, default 10
        **options
            `exclude`, `candidates` and the other options of `rank`.

        Returns
        -------
        list of list of (name, score)
            A list for every row, shorter than k if there are fewer candidates.

        Raises
        ------
        InputError
            As `rank`.
        """
        self._check_fitted()
        ids, scores = self.rank(X, min(check_positive_integer(k, "k"), len(self.vocabulary_)), **options)
        return name_best(self.vocabulary_, ids, scores)

    def predict(self, X: Matrix, k: int | None = None) -> Array:
        """Return the best label of each row, or the k best.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int or None, default None
            Number of labels of a row; None is the best one alone.

        Returns
        -------
        (n,) or (n, k) array
            Names of labels (object), or numbers (int64) if the model was fitted to numbers; None or -1 where there are
            fewer labels.

        Raises
        ------
        InputError
            As `rank`.
        """
        ids, _ = self.rank(X, 1 if k is None else k)
        if not self.vocabulary_.is_numbered:
            names = np.array([*self.vocabulary_, None], object)
            ids = names[ids]  # -1 is None
        return ids[:, 0] if k is None else ids

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return sum(array.nbytes for array in self.to_state().tensors.values())

    @property
    def label_vectors(self) -> Float32:
        """Vectors of the labels, (n_labels, n) float32, a view; near vectors mean similar labels.

        Raises
        ------
        InputError
            This kind of model has none.
        """
        fact = f"a model of kind {self.kind} has no vector per label, so that no label is nearer than another"
        raise InputError(f"{fact}; train a kind that has, such as wsabie or linear-warp")

    def neighbours(self, label: str | int, k: int = 10) -> LabelScores:
        """Return the k labels nearest to a label by cosine, with their cosines (Weston et al. 2010, Table 4).

        Parameters
        ----------
        label : str or int
            Its name, or its number.
        k : int
            At most all other labels are returned.

        Returns
        -------
        list of (name, cosine), nearest first

        Raises
        ------
        InputError
            The label is unknown (the message names the closest ones), or the model has no vector per label.

        Examples
        --------
        >>> from wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
        >>> sorted(name for name, cosine in model.neighbours("red", k=2))
        ['blue', 'green']
        """
        self._check_fitted()
        k = min(check_positive_integer(k, "k"), len(self.vocabulary_))
        retired_ids = self.vocabulary_.retired_ids()
        n = min(k + len(retired_ids), len(self.vocabulary_))
        ids, cosines = find_vector_neighbours(self.label_vectors, self._find_label_ids([label]), n)
        return name_best(self.vocabulary_, np.where(np.isin(ids, retired_ids), -1, ids), cosines)[0][:k]

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        check_types(type(self), self.get_params(deep=False))

    def _check_loaded(self) -> None:
        """Raise InputError for parameters that no model in a folder has."""
        self.check_parameters()

    def to_state(self) -> ModelState:
        self._check_fitted()
        return ModelState(self.kind, self._dump_config(), self._dump_tensors())

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        model = cls._restore_config(state.config)
        model._restore_tensors(state.config, state.tensors)
        return model

    def facts(self) -> JsonObject:
        """Return sizes and figures of the model, JSON-able.

        Returns
        -------
        dict
            "labels" and "features", and further keys by the kind of model.
        """
        self._check_fitted()
        return {"labels": len(self.vocabulary_), "features": self.n_features_in_}

    def _dump_config(self) -> JsonObject:
        """Return the config of the model; a subclass adds to it."""
        return {
            "parameters": to_json_value(self.get_params(deep=False)),
            "label_names": list(self.vocabulary_),
            **({"label_edits": edits} if (edits := self.vocabulary_.edits()) else {}),
            **({} if self.feature_names_in_ is None else {"feature_names_in": list(self.feature_names_in_)}),
            "n_features": self.n_features_in_,
            "versions": collect_versions(),
        }

    def _dump_tensors(self) -> dict[str, Array]:
        """Return the arrays of the model by their names in a folder; a subclass adds to them."""
        return {}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        """Restore what a subclass adds to config and arrays; parameters, vocabulary and width are set."""

    @classmethod
    def _restore_config(cls, config: JsonObject) -> Self:
        """Restore parameters, vocabulary and width."""
        fields = read_config(LabelModelConfig, config)
        check_parameters(cls, fields.parameters)
        model = cls(**fields.parameters)
        model._check_loaded()
        names, edits = fields.label_names, fields.label_edits
        model.vocabulary_ = Vocabulary(names) if edits is None else Vocabulary.restore(names, asdict(edits))
        model.n_features_in_ = fields.n_features
        if fields.feature_names_in is not None:
            if len(fields.feature_names_in) != fields.n_features:
                raise ValueError(
                    f"feature_names_in names {len(fields.feature_names_in)} of {fields.n_features} features"
                )
            model.feature_names_in_ = np.array(fields.feature_names_in, object)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _open_rows(self, X: Matrix, Y: Labels, label_names: Sequence[str] | None) -> tuple[FeatureMatrix, Matrix]:
        """Check rows and labels for `fit`; return both, and set the vocabulary and the width."""
        inputs = check_features(X)
        rows, width = count_rows(inputs), int(inputs.shape[1] if isinstance(inputs, np.ndarray) else X.shape[1])
        empty = "sample" if rows == 0 else "feature"
        problem = f"Found array with 0 {empty}(s) (shape=({rows}, {width})) while a minimum of 1 is required."
        require(rows > 0 and width > 0, problem)
        vocabulary = Vocabulary(() if label_names is None else label_names)
        targets = build_signed_label_matrix(Y, rows, vocabulary, has_names=label_names is not None)
        require(bool((targets.data > 0).any()), "no row has a label; give at least one (row, label) pair")
        self.vocabulary_, self.n_features_in_ = vocabulary, width
        self.feature_names_in_ = read_column_names(X)
        return inputs, targets

    def _check_rows(self, X: Matrix, input_name: str = "X") -> FeatureMatrix:
        """Return checked rows for a fitted model."""
        self._check_fitted()
        rows = check_features(X, n_features=self.n_features_in_, input_name=input_name, model_name=type(self).__name__)
        names, fitted_names = read_column_names(X), self.feature_names_in_
        if names is None or fitted_names is None:
            return rows
        if (mismatches := np.flatnonzero(fitted_names != names)).size:
            raise InputError(
                f"column {mismatches[0]} of {input_name} is {names[mismatches[0]]!r}, but {type(self).__name__} was "
                f"fitted with {fitted_names[mismatches[0]]!r} there; give the same columns in the same order: "
                f"{input_name}[model.feature_names_in_]"
            )
        return rows

    def _copy_schema(self, model: "LabelModel") -> None:
        """Copy the vocabulary, the width and the column names of another model."""
        self.vocabulary_, self.n_features_in_ = model.vocabulary_, model.n_features_in_
        self.feature_names_in_ = model.feature_names_in_

    def _check_fitted(self) -> None:
        if not hasattr(self, "vocabulary_"):
            raise NotFittedError(f"this {type(self).__name__} model is not fitted yet; call fit(X, Y) first")

    def _build_truth(self, Y: Labels, rows: int) -> Matrix:
        """Return the label matrix of evaluated rows, (rows, n_labels), without labels that the model lacks."""
        vocabulary = self.vocabulary_.copy()
        truth = build_signed_label_matrix(Y, rows, vocabulary, has_names=not vocabulary.is_numbered)
        return truth[:, : len(self.vocabulary_)]

    def _find_label_ids(self, labels: Sequence[str | int]) -> Int64:
        """Return label numbers from names or numbers."""
        require(not isinstance(labels, str), f"the labels are the text {labels!r}; give a list of names")
        listed = hasattr(labels, "__len__") and not hasattr(labels, "tocsr") and getattr(labels, "ndim", 1) != 0
        require(listed, f"the labels are {type(labels).__name__}; give a list of names or of numbers")
        names = [label for label in labels if isinstance(label, str)]
        if names and len(names) < len(labels):
            raise InputError("the labels mix names and numbers; give names only, or numbers only")
        if names:
            return self.vocabulary_.ids(names)
        try:
            numbers = np.asarray(labels)
        except ValueError:  # lists of different lengths
            numbers = np.asarray(labels, object)
        require(
            numbers.ndim == 1 and (not numbers.size or np.issubdtype(numbers.dtype, np.integer)),
            f"labels are names or whole numbers, not {numbers.dtype}; give the numbers of a mask by numpy.flatnonzero",
        )
        ids = numbers.astype(np.int64)
        self.vocabulary_.names(ids)  # refuses numbers out of range
        return ids if not len(self.vocabulary_.retired_ids()) else self._follow_merges(ids)

    def _follow_merges(self, ids: Int64) -> Int64:
        """Return the numbers of the labels that merged ones became; InputError if one was removed."""
        current_ids: Int64 = self.vocabulary_.current_ids()[ids]
        if (current_ids < 0).any():
            (name,) = self.vocabulary_.names(ids[current_ids < 0][:1])
            raise InputError(f"the label {name!r} was removed; leave it out")
        return current_ids


class PointTransformer(TransformerMixin):  # type: ignore[misc]
    """Mixin of models that transform rows of any type to float32 points."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def read_column_names(X: object) -> Array | None:
    """Return the column names of a data frame, (n,) array of str; None if it is none or has other names.

    Examples
    --------
    >>> read_column_names(np.eye(2)) is None
    True
    """
    names = list(getattr(X, "columns", ()))
    return np.array(names, object) if names and all(isinstance(name, str) for name in names) else None
