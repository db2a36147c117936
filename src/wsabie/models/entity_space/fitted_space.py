"""Queries and storage of a fitted space of many kinds of items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from wsabie.core.arrays import Float32
from wsabie.core.errors import require
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.label_lists import build_exclusion_lists
from wsabie.core.machine import collect_versions
from wsabie.core.validation import build_incidence, check_positive_integer, convert_to_csr
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.models.base.label_model import Candidates, Exclusion, FittedModel, LabelScores, Ranking, name_best
from wsabie.models.entity_space.fitted_entities import EntitiesConfig, FittedEntities, find_kind, restore_tables
from wsabie.models.entity_space.relation_data import build_fitted_pair_matrix, build_holdout_pairs, evaluate_relation
from wsabie.models.entity_space.relations import EntityKind, Relation, require_unique_names
from wsabie.search.exact_index import ExactIndex
from wsabie.search.vector_neighbours import find_vector_neighbours
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_parameters, read_config
from wsabie.training.epoch_stats import EpochStats, find_best_epoch
from wsabie.vocabulary.concept_hierarchy import Hierarchy


@dataclass(frozen=True)
class FittedSpaceConfig:
    """The config of a folder of a space."""

    parameters: JsonObject
    kinds: dict[str, EntitiesConfig]
    relations: list[tuple[str, str, str]]
    settings: JsonObject
    history: list[EpochStats]


class FittedSpace(FittedModel):
    """Base of `Space` with queries and storage.

    Attributes
    ----------
    kinds_ : dict of str to FittedEntities
        Names (`entity_names`) and points of every kind.
    relations_ : list of (name, query kind, target kind)
    history_ : list of EpochStats
    settings_ : dict
    space_ : MultiRelationSpace
    """

    kind = "space"
    kinds_: dict[str, FittedEntities]
    relations_: list[tuple[str, str, str]]
    history_: list[EpochStats]
    settings_: JsonObject
    space_: MultiRelationSpace

    def entity_names(self, kind: str) -> list[str]:
        """Return the names of all items of a kind, in the order of their numbers.

        Parameters
        ----------
        kind : str

        Returns
        -------
        list of str

        Raises
        ------
        InputError
            There is no such kind.
        """
        return list(self.find_entities(kind).vocabulary)

    def compute_points(self, kind: str, items: Any = None) -> Float32:
        """Return the points of items.

        Parameters
        ----------
        kind : str
        items : list of names or numbers, sparse matrix or array (n, n_features), or None
            Items of the space, or features of any items; None: all items of the kind.

        Returns
        -------
        (n, dim) float32

        Raises
        ------
        InputError
            An unknown kind or item, or another width of features.
        """
        entities = self.find_entities(kind)
        if items is None:
            return entities.compute_points(self.space_, None)
        if _are_rows(items):
            return entities.compute_points(self.space_, entities.inputs(items))
        return np.ascontiguousarray(entities.compute_points(self.space_, None)[entities.ids(items)])

    def rank(
        self,
        query: str,
        target: str,
        items: Any,
        k: int = 10,
        *,
        exclude: Exclusion = None,
        candidates: Candidates = None,
    ) -> Ranking:
        """Return the k best items of a kind for items of another kind, or of the same one.

        Parameters
        ----------
        query, target : str
            Kinds, with or without a trained relation between them.
        items : list of names or numbers, or rows of features
            See `points`. An item of the space is not a candidate for itself.
        k : int
        exclude : sparse matrix (n, n_targets) or None
            Non-zeros are not candidates.
        candidates : list of names or numbers, or None
            Only these items.

        Returns
        -------
        ids : (n, k) int64, best first, equal scores by number; -1 where there are fewer than k candidates
        scores : (n, k) float32, -inf where ids is -1

        Raises
        ------
        InputError
            An unknown kind or item, another width of features, or k below 1.
        """
        k = check_positive_integer(k, "k")
        points, targets = self.compute_points(query, items), self.find_entities(target)
        if query == target and not _are_rows(items):
            ids = np.arange(len(points)) if items is None else targets.ids(items)
            shape = len(ids), len(targets.vocabulary)
            self_pairs = build_incidence(np.arange(len(ids)), ids, shape, np.int8)
            if exclude is not None:
                build_exclusion_lists(exclude, *shape)  # refuses another shape
                self_pairs += (convert_to_csr(exclude, "exclude") != 0).astype(np.int8)
            exclude = self_pairs
        candidate_ids = None if candidates is None else targets.ids(candidates)
        index: ExactIndex = self._index(target)
        return index.top_k(points, k, exclude=exclude, candidates=candidate_ids, threads=self.threads)

    def annotate(self, query: str, target: str, items: Any, k: int = 10, **options: Any) -> list[LabelScores]:
        """Return the k best items of a kind by name, with their scores, for items of another kind.

        Parameters
        ----------
        query, target, items : see `rank`
        k : int, default 10
        **options
            `exclude` and `candidates` of `rank`.

        Returns
        -------
        list of list of (name, score)
            A list for every item, best first.

        Raises
        ------
        InputError
            As `rank`.
        """
        targets = self.find_entities(target)
        k = min(check_positive_integer(k, "k"), max(len(targets.vocabulary), 1))
        ids, scores = self.rank(query, target, items, k, **options)
        return name_best(targets.vocabulary, ids, scores)

    def find_similar(self, kind: str, entity: str | int, k: int = 10) -> LabelScores:
        """Return the k items of a kind that are nearest to an item by cosine, with their cosines.

        Parameters
        ----------
        kind : str
        entity : str or int
            Name or number of the item.
        k : int, default 10

        Returns
        -------
        list of (name, cosine)
            Nearest first.

        Raises
        ------
        InputError
            An unknown kind or item, or k below 1.
        """
        entities = self.find_entities(kind)
        k = min(check_positive_integer(k, "k"), max(len(entities.vocabulary) - 1, 1))
        ids, cosines = find_vector_neighbours(entities.compute_points(self.space_, None), entities.ids(entity), k)
        return name_best(entities.vocabulary, ids, cosines)[0]

    def evaluate(
        self,
        relations: Sequence[Relation],
        ks: Sequence[int] = (1, 5, 10),
        *,
        trained: Sequence[Relation] = (),
        hierarchy: Hierarchy | None = None,
    ) -> dict[str, Evaluation]:
        """Evaluate every relation on held-out pairs: p@k, recall@k, MAP and more.

        Items with given features (`EntityKind("track", X)`) are ranked among themselves, others among all items of the
        space. Pairs with an unknown item are left out.

        Parameters
        ----------
        relations : sequence of Relation
        ks : sequence of int
        trained : sequence of Relation
            Relations of the same names with training pairs, which are not candidates.
        hierarchy : Hierarchy or None
            Is-a relations, for psib@k and hp@k of the relations whose targets it knows.

        Returns
        -------
        dict of str to Evaluation
            By the name of the relation.

        Raises
        ------
        InputError
            An unknown kind, two relations of one name, a relation without a pair of known items, or a hierarchy that
            knows no target.
        """
        self._check_fitted()
        require_unique_names(relations)
        threads = self._n_threads
        trained_pairs = {relation.name: build_fitted_pair_matrix(relation, self.kinds_) for relation in trained}
        sides = {
            relation.name: build_holdout_pairs(relation, self.kinds_, trained=trained_pairs.get(relation.name))
            for relation in relations
        }
        options = {relation.name: self._match_hierarchy(relation, hierarchy) for relation in relations}
        problem = f"the hierarchy names no target of {', '.join(sides)}; give an is-a list over these"
        require(hierarchy is None or any(options.values()), problem)
        return {name: evaluate_relation(side, self.space_, threads, ks, options[name]) for name, side in sides.items()}

    def _match_hierarchy(self, relation: Relation, hierarchy: Hierarchy | None) -> dict[str, Any]:
        """Return the hierarchy's distances between the targets of a relation; empty if it knows none of them."""
        if hierarchy is None:
            return {}
        end = relation.target
        if isinstance(end, EntityKind) and end.X is not None:
            names = list(end.names())
        else:
            names = self.entity_names(relation.target_kind)
        hops = hierarchy.find_distances(names)
        return {"hops": hops, "similar": hierarchy.find_siblings(names)} if hops.is_known().any() else {}

    def find_entities(self, name: str) -> FittedEntities:
        """Return the items of a kind.

        Parameters
        ----------
        name : str

        Returns
        -------
        FittedEntities

        Raises
        ------
        InputError
            There is no such kind.
        """
        self._check_fitted()
        return find_kind(name, self.kinds_)

    def _index(self, kind: str) -> ExactIndex:
        """Return the search index of a kind, built once for a fitted space."""
        indices = self._build_once("_searched", self.kinds_, dict[str, ExactIndex])
        if kind not in indices:
            points = self.kinds_[kind].compute_points(self.space_, None)
            indices[kind] = ExactIndex(points, similarity=self.space_.similarity)
        return indices[kind]

    def _check_fitted(self) -> None:
        if not hasattr(self, "space_"):
            raise NotFittedError("this Space is not fitted yet; call fit(relations) first")

    # ---- storage

    def facts(self) -> JsonObject:
        """Return sizes and figures of the space, JSON-able.

        "validation" has the figures of the best epoch; it is empty after further training.

        Returns
        -------
        dict
        """
        self._check_fitted()
        best_epoch = find_best_epoch(self.history_)
        return {
            "kind": self.kind,
            "dimensions": self.space_.dim,
            "similarity": self.space_.similarity,
            "kinds": {name: len(kind.vocabulary) for name, kind in self.kinds_.items()},
            "relations": [name for name, _, _ in self.relations_],
            "bytes_of_points": self.space_.nbytes,
            "epochs": len(self.history_),
            "validation": {} if best_epoch is None else best_epoch.validation_metrics,
        }

    def to_state(self) -> ModelState:
        self._check_fitted()
        tensors = {f"tables/{name}": table[:, : self.space_.dim] for name, table in self.space_.tables.items()}
        kinds = {}
        for name, kind in self.kinds_.items():
            kinds[name], arrays = kind.dump()
            tensors |= {f"kinds/{key}": array for key, array in arrays.items()}
        parameters = to_json_value({**self.get_params(), "dim": self.space_.dim, "similarity": self.space_.similarity})
        config = {
            "parameters": parameters,
            "kinds": kinds,
            "relations": [list(relation) for relation in self.relations_],
            "settings": self.settings_,
            "history": [stats.as_dict() for stats in self.history_],
            "versions": collect_versions(),
        }
        return ModelState(self.kind, config, tensors)

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        fields = read_config(FittedSpaceConfig, state.config)
        check_parameters(cls, fields.parameters)
        model = cls(**fields.parameters)
        model.check_parameters()
        arrays = state.select_prefix("kinds", "", {}).tensors
        model.kinds_ = {name: FittedEntities.restore(name, kind, arrays) for name, kind in fields.kinds.items()}
        model.space_ = restore_tables(state.tensors, model.dim, model.similarity, model.kinds_.values())
        missing = {kind for _, *ends in fields.relations for kind in ends} - model.kinds_.keys()
        if missing:
            raise ValueError(f"its relations name the kinds {', '.join(sorted(missing))}, which there are not")
        model.relations_, model.settings_, model.history_ = fields.relations, fields.settings, fields.history
        return model


def _are_rows(items: object) -> bool:
    """Return True for features, False for names or numbers."""
    return hasattr(items, "tocsr") or getattr(items, "ndim", 1) == 2
