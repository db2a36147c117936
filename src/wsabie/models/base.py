"""What every model with named labels shares: checked input, names and numbers of labels, annotations by name."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.machine import versions
from wsabie.base.plain import plain
from wsabie.base.validation import check_features, require, whole_number
from wsabie.labels.names import Vocabulary, VocabularyEdits
from wsabie.models.inputs import Inputs, n_rows
from wsabie.models.labelling import label_matrix
from wsabie.models.loading import load_one_of
from wsabie.storage.folder import Parts, save_folder
from wsabie.storage.schema import PositiveCount, check_parameters, read_config


@dataclass(frozen=True)
class FittedConfig:
    """The part of a folder's config that every kind of model has."""

    parameters: dict[str, Any]
    label_names: list[str]
    n_features: PositiveCount
    label_edits: VocabularyEdits | None = None
    feature_names_in: list[str] | None = None


class LabelModel(BaseEstimator):  # type: ignore[misc]
    """Base of models that rank named labels for a row.

    A subclass writes `fit`, `rank`, `scores`, `to_parts` and `from_parts`, and is listed in `wsabie.models.kinds`.

    Attributes
    ----------
    kind : str
        What a folder calls this kind of model.
    vocabulary_ : Vocabulary
        Label names and numbers; a number never changes.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str or None
        The columns of the data frame that the model was fitted to; None: it was fitted to something else.
    """

    kind: ClassVar[str]
    vocabulary_: Vocabulary
    n_features_in_: int
    feature_names_in_: Any = None

    @abstractmethod
    def rank(self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None) -> tuple[Int64, Float32]:
        """The k best labels of each row."""

    @abstractmethod
    def scores(self, X: Any) -> Float32:
        """All scores of a block of rows, (n, n_labels)."""

    def annotate(self, X: Any, k: int = 10, **options: Any) -> list[list[tuple[str, float]]]:
        """The k best labels of each row by name, with their scores, best first; `options` as in `rank`.

        Returns
        -------
        list of list of (name, score)
            A list for every row, shorter than k where there are fewer candidates.

        Raises
        ------
        InputError
            As `rank`.
        """
        self._check_fitted()
        ids, scores = self.rank(X, min(whole_number(k, "k"), len(self.vocabulary_)), **options)
        return [
            list(zip(self.vocabulary_.names(row[row >= 0]), row_scores[row >= 0].tolist(), strict=True))
            for row, row_scores in zip(ids, scores, strict=True)
        ]

    @property
    def label_vectors(self) -> Float32:
        """A vector per label, (n_labels, n) float32, by which labels are near to each other; a view.

        Raises
        ------
        InputError
            This kind of model has none.
        """
        raise InputError(
            f"a model of kind {self.kind} has no vector per label, so that no label is nearer than another; train a "
            "kind that has, such as wsabie or linear-warp"
        )

    def neighbours(self, label: str | int, k: int = 10) -> list[tuple[str, float]]:
        """The k labels nearest to a label by cosine, with their cosines ([W] Table 4).

        Parameters
        ----------
        label : str or int
            Its name, or its number.
        k : int
            More than there are other labels is taken as all of them.

        Returns
        -------
        list of (name, cosine), nearest first

        Raises
        ------
        InputError
            An unknown label; the sentence names the closest ones. Or the model has no vector per label.

        Examples
        --------
        >>> from wsabie.models.wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
        >>> sorted(name for name, cosine in model.neighbours("red", k=2))
        ['blue', 'green']
        """
        from wsabie.search.neighbours import neighbours_of_labels

        self._check_fitted()
        k = min(whole_number(k, "k"), len(self.vocabulary_))
        gone = self.vocabulary_.retired()
        n = min(k + len(gone), len(self.vocabulary_))
        ids, cosines = neighbours_of_labels(self.label_vectors, self._label_ids([label]), n)
        known = np.flatnonzero((ids[0] >= 0) & ~np.isin(ids[0], gone))[:k]  # fewer labels than k leave places empty
        return list(zip(self.vocabulary_.names(ids[0][known]), cosines[0][known].tolist(), strict=True))

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""

    def _check_loaded(self) -> None:
        """Refuse values that no model from a folder has; InputError."""
        self.check_parameters()

    @abstractmethod
    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; large arrays stay memory-mapped."""

    def facts(self) -> dict[str, Any]:
        """Sizes and figures that tell what the model is, JSON-able."""
        self._check_fitted()
        return {"labels": len(self.vocabulary_), "features": self.n_features_in_}

    def save(self, path: str | Path) -> None:
        """Write the model folder, atomically (`wsabie.storage.folder` describes it byte by byte)."""
        self._check_fitted()
        save_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved model."""
        model: Self = load_one_of(path, {cls.kind: cls.from_parts})
        return model

    def _described(self) -> dict[str, Any]:
        """The config that every kind of model has; `_restored` reads it."""
        self._check_fitted()
        return {
            "parameters": plain(self.get_params()),
            "label_names": list(self.vocabulary_),
            **({"label_edits": edits} if (edits := self.vocabulary_.edits()) else {}),
            **({} if self.feature_names_in_ is None else {"feature_names_in": list(self.feature_names_in_)}),
            "n_features": self.n_features_in_,
            "versions": versions(),
        }

    @classmethod
    def _restored(cls, config: dict[str, Any]) -> Self:
        """A model with its parameters, vocabulary and width, for `from_parts` to complete."""
        fields = read_config(FittedConfig, config)
        check_parameters(cls, fields.parameters)
        model = cls(**fields.parameters)
        model._check_loaded()
        names, edits = fields.label_names, fields.label_edits
        model.vocabulary_ = Vocabulary(names) if edits is None else Vocabulary.restored(names, asdict(edits))
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

    def _opened(self, X: Any, Y: Any, label_names: Sequence[str] | None) -> tuple[Inputs, Matrix]:
        """What `fit` begins with: checked rows and their label matrix; sets the vocabulary and the width."""
        inputs = check_features(X)
        rows, width = n_rows(inputs), int(inputs.shape[1] if isinstance(inputs, np.ndarray) else X.shape[1])
        empty = "sample" if rows == 0 else "feature"
        require(
            rows > 0 and width > 0,
            f"Found array with 0 {empty}(s) (shape=({rows}, {width})) while a minimum of 1 is required.",
        )
        vocabulary = Vocabulary(() if label_names is None else label_names)
        targets = label_matrix(Y, rows, vocabulary, grow=True, named=label_names is not None)
        require(bool((targets.data > 0).any()), "no row has a label; give at least one (row, label) pair")
        self.vocabulary_, self.n_features_in_ = vocabulary, width
        self.feature_names_in_ = columns_of(X)
        return inputs, targets

    def _checked(self, X: Any, what: str = "X") -> Inputs:
        """Rows for a fitted model."""
        self._check_fitted()
        inputs = check_features(X, n_features=self.n_features_in_, what=what, who=type(self).__name__)
        names, known = columns_of(X), self.feature_names_in_
        if names is not None and known is not None and (at := np.flatnonzero(known != names)).size:
            raise InputError(
                f"column {at[0]} of {what} is {names[at[0]]!r}, but {type(self).__name__} was fitted with "
                f"{known[at[0]]!r} there; give the same columns in the same order: {what}[model.feature_names_in_]"
            )
        return inputs

    def _check_fitted(self) -> None:
        if not hasattr(self, "vocabulary_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} model is not fitted yet; call fit(X, Y) first")

    def _truth(self, Y: Any, rows: int) -> Matrix:
        """Label matrix of rows to be judged, (rows, n_labels); labels that the model lacks are left out."""
        known = self.vocabulary_.copy()
        return label_matrix(Y, rows, known, grow=True, named=not known.numbered)[:, : len(self.vocabulary_)]

    def _label_ids(self, labels: Sequence[str | int]) -> Int64:
        """Label numbers from names or numbers."""
        if isinstance(labels, str):
            raise InputError(f"the labels are the text {labels!r}; give a list of names")
        listed = hasattr(labels, "__len__") and not hasattr(labels, "tocsr") and getattr(labels, "ndim", 1) != 0
        require(listed, f"the labels are {type(labels).__name__}; give a list of names or of numbers")
        named = [label for label in labels if isinstance(label, str)]
        if named and len(named) < len(labels):
            raise InputError("the labels mix names and numbers; give names only, or numbers only")
        if named:
            return self.vocabulary_.ids(named)
        try:
            given = np.asarray(labels)
        except ValueError:  # lists of different lengths
            given = np.asarray(labels, object)
        require(
            given.ndim == 1 and (not given.size or np.issubdtype(given.dtype, np.integer)),
            f"labels are names or whole numbers, not {given.dtype}; give the numbers of a mask by numpy.flatnonzero",
        )
        ids = given.astype(np.int64)
        self.vocabulary_.names(ids)  # refuses numbers out of range
        return ids if not len(self.vocabulary_.retired()) else self._living(ids)

    def _living(self, ids: Int64) -> Int64:
        """What became of labels by number."""
        now: Int64 = self.vocabulary_.now()[ids]
        if (now < 0).any():
            (name,) = self.vocabulary_.names(ids[now < 0][:1])
            raise InputError(f"the label {name!r} was removed; leave it out")
        return now


def columns_of(X: Any) -> Any:
    """The names of a data frame's columns, (n,) array of str, where all are text; None: it is none.

    Examples
    --------
    >>> columns_of(np.eye(2)) is None
    True
    """
    names = list(getattr(X, "columns", ()))
    return np.array(names, object) if names and all(isinstance(name, str) for name in names) else None
