"""Annotation and search of large collections by joint embeddings trained with the WARP ranking loss.

The names below are the public shelf; each is loaded when it is first used, so that `import wsabie` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsabie.base.errors import InputError, WsabieError
    from wsabie.evaluation.evaluate import evaluate_scores
    from wsabie.evaluation.leave_one_out import hold_out_labels
    from wsabie.evaluation.quadruplet_splits import split_quadruplets
    from wsabie.evaluation.splits import split
    from wsabie.features.kernel_pca import KernelPca
    from wsabie.features.registry import describer
    from wsabie.features.visual_terms import VisualTerms
    from wsabie.labels.hierarchy import Hierarchy
    from wsabie.labels.knowledge import Knowledge
    from wsabie.labels.matching import match_labels
    from wsabie.labels.quadruplets import Quadruplets
    from wsabie.labels.vectors import Vectors
    from wsabie.models.annotator import Annotator
    from wsabie.models.approximate import ApproximateNeighbours
    from wsabie.models.batch_annotator import BatchAnnotator
    from wsabie.models.conse import Conse
    from wsabie.models.devise import Devise
    from wsabie.models.encoded import Encoded
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.export import export
    from wsabie.models.full_rank import FullRank
    from wsabie.models.linear import LinearRanker
    from wsabie.models.nearest import NearestNeighbours
    from wsabie.models.one_vs_rest import OneVsRest
    from wsabie.models.parts import Parts
    from wsabie.models.popularity import Popularity
    from wsabie.models.presets import objects_and_parts, opt_auc, pamir, vse_ens
    from wsabie.models.registry import load
    from wsabie.models.relations import Kind, Relation
    from wsabie.models.softmax import Softmax
    from wsabie.models.space import Space
    from wsabie.models.wsabie import Wsabie
    from wsabie.search.asked import Queries
    from wsabie.search.exact import top_k
    from wsabie.search.label_pairs import LabelPairs
    from wsabie.search.related import KnownRelated
    from wsabie.sources.is_a import read_hierarchy
    from wsabie.sources.knowledge import read_knowledge
    from wsabie.sources.open import open_source
    from wsabie.sources.records import Rows
    from wsabie.sources.sharded import open_shards
    from wsabie.sources.vectors import read_vectors
    from wsabie.studies.augmented_search import AugmentedSearch

__version__ = "0.1.0"

_SHELF = {
    "Wsabie": "wsabie.models.wsabie",
    "Ensemble": "wsabie.models.ensemble",
    "Space": "wsabie.models.space",
    "Parts": "wsabie.models.parts",
    "Kind": "wsabie.models.relations",
    "Relation": "wsabie.models.relations",
    "Devise": "wsabie.models.devise",
    "Conse": "wsabie.models.conse",
    "Softmax": "wsabie.models.softmax",
    "LinearRanker": "wsabie.models.linear",
    "FullRank": "wsabie.models.full_rank",
    "vse_ens": "wsabie.models.presets",
    "objects_and_parts": "wsabie.models.presets",
    "opt_auc": "wsabie.models.presets",
    "pamir": "wsabie.models.presets",
    "Annotator": "wsabie.models.annotator",
    "BatchAnnotator": "wsabie.models.batch_annotator",
    "NearestNeighbours": "wsabie.models.nearest",
    "ApproximateNeighbours": "wsabie.models.approximate",
    "OneVsRest": "wsabie.models.one_vs_rest",
    "Popularity": "wsabie.models.popularity",
    "load": "wsabie.models.registry",
    "export": "wsabie.models.export",
    "VisualTerms": "wsabie.features.visual_terms",
    "KernelPca": "wsabie.features.kernel_pca",
    "describer": "wsabie.features.registry",
    "open_source": "wsabie.sources.open",
    "open_shards": "wsabie.sources.sharded",
    "Rows": "wsabie.sources.records",
    "split": "wsabie.evaluation.splits",
    "split_quadruplets": "wsabie.evaluation.quadruplet_splits",
    "Quadruplets": "wsabie.labels.quadruplets",
    "hold_out_labels": "wsabie.evaluation.leave_one_out",
    "evaluate_scores": "wsabie.evaluation.evaluate",
    "Hierarchy": "wsabie.labels.hierarchy",
    "read_hierarchy": "wsabie.sources.is_a",
    "Knowledge": "wsabie.labels.knowledge",
    "read_knowledge": "wsabie.sources.knowledge",
    "match_labels": "wsabie.labels.matching",
    "Vectors": "wsabie.labels.vectors",
    "read_vectors": "wsabie.sources.vectors",
    "top_k": "wsabie.search.exact",
    "LabelPairs": "wsabie.search.label_pairs",
    "AugmentedSearch": "wsabie.studies.augmented_search",
    "Encoded": "wsabie.models.encoded",
    "Queries": "wsabie.search.asked",
    "KnownRelated": "wsabie.search.related",
    "WsabieError": "wsabie.base.errors",
    "InputError": "wsabie.base.errors",
}

__all__ = [
    "Wsabie",
    "Ensemble",
    "Space",
    "Parts",
    "Kind",
    "Relation",
    "Devise",
    "Conse",
    "Softmax",
    "LinearRanker",
    "FullRank",
    "vse_ens",
    "objects_and_parts",
    "opt_auc",
    "pamir",
    "Annotator",
    "BatchAnnotator",
    "NearestNeighbours",
    "ApproximateNeighbours",
    "OneVsRest",
    "Popularity",
    "load",
    "export",
    "VisualTerms",
    "KernelPca",
    "describer",
    "open_source",
    "open_shards",
    "Rows",
    "split",
    "split_quadruplets",
    "Quadruplets",
    "hold_out_labels",
    "evaluate_scores",
    "Hierarchy",
    "read_hierarchy",
    "Knowledge",
    "read_knowledge",
    "match_labels",
    "Vectors",
    "read_vectors",
    "top_k",
    "LabelPairs",
    "AugmentedSearch",
    "Encoded",
    "Queries",
    "KnownRelated",
    "WsabieError",
    "InputError",
    "__version__",
]


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name not in _SHELF:
            raise AttributeError(f"module 'wsabie' has no attribute {name!r}")
        return getattr(import_module(_SHELF[name]), name)


def __dir__() -> list[str]:
    return __all__
