"""A fitted space of many kinds of things: where they are, what is near to what, and how it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from wsabie.base.arrays import Float32, Int64
from wsabie.base.lists import excluded_lists
from wsabie.base.machine import available_cores, versions
from wsabie.base.plain import plain
from wsabie.base.sparse import to_csr
from wsabie.base.validation import require, whole_number
from wsabie.evaluation.evaluate import Evaluation
from wsabie.labels.hierarchy import Hierarchy
from wsabie.models.judging import evaluate_judged
from wsabie.models.known import KindConfig, KnownKind, kind_from, kind_parts, space_from
from wsabie.models.loading import load_one_of
from wsabie.models.relations import Kind, Relation, refuse_twins
from wsabie.models.told import judged, known_matrix
from wsabie.space.shared import SharedSpace
from wsabie.storage.folder import Parts, save_folder
from wsabie.storage.schema import check_parameters, read_config
from wsabie.training.stats import EpochStats, kept_epoch

if TYPE_CHECKING:
    from wsabie.search.exact import ExactIndex


@dataclass(frozen=True)
class SpaceConfig:
    """The config of a folder of a space."""

    parameters: dict[str, Any]
    kinds: dict[str, KindConfig]
    relations: list[tuple[str, str, str]]
    settings: dict[str, Any]
    history: list[EpochStats]


class KnownSpace(BaseEstimator):  # type: ignore[misc]
    """Base of `Space`, which trains it.

    Attributes
    ----------
    kinds_ : dict of str to KnownKind
        Names (`things`) and points of every kind.
    relations_ : list of (name, query kind, target kind)
    history_ : list of EpochStats
    settings_ : dict
    space_ : SharedSpace
    """

    kind: ClassVar[str] = "space"
    threads: int | None
    kinds_: dict[str, KnownKind]
    relations_: list[tuple[str, str, str]]
    history_: list[EpochStats]
    settings_: dict[str, Any]
    space_: SharedSpace

    def things(self, kind: str) -> list[str]:
        """Names of the known things of a kind, in the order of their numbers."""
        return list(self.known(kind).things)

    def points(self, kind: str, things: Any = None) -> Float32:
        """Points of things, (n, dim) float32.

        Parameters
        ----------
        kind : str
        things : list of names or numbers, sparse matrix or array (n, n_features), or None
            Known things, or features of any; None: all known things.
        """
        known = self.known(kind)
        if things is None:
            return known.points_of(self.space_, None)
        if _are_rows(things):
            return known.points_of(self.space_, known.inputs(things))
        return np.ascontiguousarray(known.points_of(self.space_, None)[known.ids(things)])

    def rank(
        self, query: str, target: str, things: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None
    ) -> tuple[Int64, Float32]:
        """The k best things of a kind for things of another, or of the same one.

        Parameters
        ----------
        query, target : str
            Kinds; no relation between them needs to have been learned.
        things : list of names or numbers, or rows of features
            As for `points`. A known thing is no candidate for itself.
        k : int
        exclude : sparse matrix (n, n_targets) or None
            Non-zeros are no candidates.
        candidates : list of names or numbers, or None
            Only these.

        Returns
        -------
        ids : (n, k) int64, best first, equal scores by number; -1 where there are fewer than k candidates
        scores : (n, k) float32, -inf where ids is -1

        Raises
        ------
        InputError
            An unknown kind or thing, another width of features, or k below 1.
        """
        from scipy.sparse import csr_matrix

        k = whole_number(k, "k")
        points, known = self.points(query, things), self.known(target)
        if query == target and not _are_rows(things):
            ids = np.arange(len(points)) if things is None else known.ids(things)
            if exclude is not None:
                excluded_lists(exclude, len(ids), len(known.things))  # refuses another shape
            own = csr_matrix((np.ones(len(ids), np.int8), ids, np.arange(len(ids) + 1)), (len(ids), len(known.things)))
            exclude = own if exclude is None else (to_csr(exclude, "exclude") != 0).astype(np.int8) + own
        chosen = None if candidates is None else known.ids(candidates)
        index: ExactIndex = self._index(target)
        return index.top_k(points, k, exclude=exclude, candidates=chosen, threads=self.threads)

    def annotate(
        self, query: str, target: str, things: Any, k: int = 10, **options: Any
    ) -> list[list[tuple[str, float]]]:
        """As `rank`, by name: for each thing the best (name, score), best first."""
        known = self.known(target)
        ids, scores = self.rank(query, target, things, min(whole_number(k, "k"), max(len(known.things), 1)), **options)
        return [
            list(zip(known.things.names(row[row >= 0]), own[row >= 0].tolist(), strict=True))
            for row, own in zip(ids, scores, strict=True)
        ]

    def similar(self, kind: str, thing: str | int, k: int = 10) -> list[tuple[str, float]]:
        """The k things of its kind that are nearest to a known thing by cosine, with their cosines."""
        from wsabie.search.neighbours import neighbours_of_labels

        known = self.known(kind)
        k = min(whole_number(k, "k"), max(len(known.things) - 1, 1))
        ids, cosines = neighbours_of_labels(known.points_of(self.space_, None), known.ids(thing), k)
        found = [(int(i), float(c)) for i, c in zip(ids[0], cosines[0], strict=True) if i >= 0]
        return list(zip(known.things.names([i for i, _ in found]), [c for _, c in found], strict=True))

    def evaluate(
        self,
        relations: Sequence[Relation],
        ks: Sequence[int] = (1, 5, 10),
        *,
        trained: Sequence[Relation] = (),
        hierarchy: Hierarchy | None = None,
    ) -> dict[str, Evaluation]:
        """Every relation's figures on pairs that training did not see: p@k, recall@k, MAP and the rest.

        Things whose features are given (`Kind("track", X)`) are ranked among themselves, others among all known ones;
        pairs with a thing that is not known are left out.

        Parameters
        ----------
        relations : sequence of Relation
        ks : sequence of int
        trained : sequence of Relation
            By the same names, pairs of known things that are no candidates: those of training.
        hierarchy : Hierarchy or None
            What is a kind of what, for psib@k and hp@k of the relations whose targets it knows.

        Raises
        ------
        InputError
            An unknown kind, two relations of one name, one without a pair of known things, or a hierarchy that knows
            no target at all.
        """
        self._check_fitted()
        refuse_twins(relations)
        threads = self.threads or available_cores()
        known = {one.name: known_matrix(one, self.kinds_) for one in trained}
        sides = {one.name: judged(one, self.kinds_, trained=known.get(one.name)) for one in relations}
        kin = {one.name: self._kinship(one, hierarchy) for one in relations}
        require(
            hierarchy is None or any(kin.values()),
            f"the hierarchy names nothing that is looked for by {', '.join(sides)}; give an is-a list over such things",
        )
        return {name: evaluate_judged(side, self.space_, threads, ks, kin[name]) for name, side in sides.items()}

    def _kinship(self, relation: Relation, hierarchy: Hierarchy | None) -> dict[str, Any]:
        """What a hierarchy says of the things that a relation looks for; nothing where it does not know them."""
        if hierarchy is None:
            return {}
        end = relation.target
        given = end.names() if isinstance(end, Kind) and end.X is not None else self.known(relation.target_kind).things
        names = list(given)
        hops = hierarchy.hops(names)
        return {"hops": hops, "similar": hierarchy.similar(names)} if hops.known().any() else {}

    def known(self, name: str) -> KnownKind:
        self._check_fitted()
        require(name in self.kinds_, f"the space knows no kind {name!r}; it knows {', '.join(self.kinds_)}")
        return self.kinds_[name]

    def _index(self, kind: str) -> "ExactIndex":
        """The known things of a kind made ready for searches, once for a fitted space."""
        from wsabie.search.exact import ExactIndex

        searched: tuple[Any, dict[str, ExactIndex]] | None = self.__dict__.get("_searched")
        if searched is None or searched[0] is not self.space_:
            searched = self.space_, {}
            self._searched = searched
        if kind not in searched[1]:
            points = self.kinds_[kind].points_of(self.space_, None)
            searched[1][kind] = ExactIndex(points, similarity=self.space_.similarity)
        return searched[1][kind]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_searched"}

    def _check_fitted(self) -> None:
        if not hasattr(self, "space_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this Space is not fitted yet; call fit(relations) first")

    # ---- storage

    def facts(self) -> dict[str, Any]:
        """Sizes and figures that tell what the space is, JSON-able; "validation" is that of the kept epoch, empty of a
        space that was trained on since."""
        self._check_fitted()
        kept = kept_epoch(self.history_)
        return {
            "kind": self.kind,
            "dimensions": self.space_.dim,
            "similarity": self.space_.similarity,
            "kinds": {name: len(kind.things) for name, kind in self.kinds_.items()},
            "relations": [name for name, _, _ in self.relations_],
            "bytes_of_points": self.space_.nbytes,
            "epochs": len(self.history_),
            "validation": {} if kept is None else kept.validation_metrics,
        }

    def to_parts(self) -> Parts:
        """What the space is made of: JSON-able config and named arrays."""
        self._check_fitted()
        tensors = {f"tables/{name}": table[:, : self.space_.dim] for name, table in self.space_.tables.items()}
        kinds = {}
        for name, kind in self.kinds_.items():
            kinds[name], arrays = kind_parts(kind)
            tensors |= {f"kinds/{key}": array for key, array in arrays.items()}
        parameters = plain({**self.get_params(), "dim": self.space_.dim, "similarity": self.space_.similarity})
        config = {
            "parameters": parameters,
            "kinds": kinds,
            "relations": [list(one) for one in self.relations_],
            "settings": self.settings_,
            "history": [stats.as_dict() for stats in self.history_],
            "versions": versions(),
        }
        return Parts(self.kind, config, tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The space that `to_parts` described."""
        fields = read_config(SpaceConfig, parts.config)
        check_parameters(cls, fields.parameters)
        model = cls(**fields.parameters)
        model.check_parameters()
        own = parts.under("kinds", "", {}).tensors
        model.kinds_ = {name: kind_from(name, one, own) for name, one in fields.kinds.items()}
        model.space_ = space_from(parts.tensors, model.dim, model.similarity, model.kinds_.values())
        missing = {kind for _, *ends in fields.relations for kind in ends} - model.kinds_.keys()
        if missing:
            raise ValueError(f"its relations name the kinds {', '.join(sorted(missing))}, which there are not")
        model.relations_, model.settings_, model.history_ = fields.relations, fields.settings, fields.history
        return model

    def save(self, path: str | Path) -> None:
        """Write the folder, atomically."""
        save_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved space."""
        model: Self = load_one_of(path, {cls.kind: cls.from_parts})
        return model


def _are_rows(things: Any) -> bool:
    """Whether these are features, and not names or numbers."""
    return hasattr(things, "tocsr") or getattr(things, "ndim", 1) == 2
