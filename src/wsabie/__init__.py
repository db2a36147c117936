"""Annotation and search of large collections by joint embeddings trained with the WARP ranking loss.

The names below are the public shelf; each is loaded when it is first used, so that `import wsabie` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsabie.core.errors import InputError, WsabieError
    from wsabie.evaluation.quadruplets import split_quadruplets
    from wsabie.evaluation.score_evaluation import evaluate_scores
    from wsabie.evaluation.splits import hold_out_labels, split
    from wsabie.features.extractor_registry import create_extractor
    from wsabie.features.images.visual_words import VisualWords
    from wsabie.features.kernel_pca import KernelPca
    from wsabie.io.recognition import open_source
    from wsabie.io.records import FeatureTable
    from wsabie.io.shards.sharded_table import open_shards
    from wsabie.io.vocabulary.hierarchies import read_hierarchy
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
    from wsabie.io.vocabulary.word_vectors import read_word_vectors
    from wsabie.models.annotators import Annotator
    from wsabie.models.batch_annotator import BatchAnnotator
    from wsabie.models.devise import Devise
    from wsabie.models.embedding_set import EmbeddingSet
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.entity_space.relations import EntityKind, Relation
    from wsabie.models.entity_space.space import Space
    from wsabie.models.exporters.export_formats import export
    from wsabie.models.full_rank import FullRank
    from wsabie.models.linear_ranker import LinearRanker
    from wsabie.models.loader import load
    from wsabie.models.neighbours import ApproximateNeighbours, NearestNeighbours
    from wsabie.models.object_parts.object_parts import ObjectParts
    from wsabie.models.one_vs_rest import OneVsRest
    from wsabie.models.paper_presets import make_objects_and_parts, make_opt_auc, make_pamir, make_vse_ens
    from wsabie.models.popularity import Popularity
    from wsabie.models.softmax import Softmax
    from wsabie.models.word_vectors import Conse
    from wsabie.models.wsabie.estimator import Wsabie
    from wsabie.search.exact_index import find_top_k
    from wsabie.search.label_pairs import LabelPairIndex
    from wsabie.search.query_labels import QueryMatcher
    from wsabie.search.related_labels import HierarchyRelatedLabels
    from wsabie.vocabulary.concept_matching import match_labels
    from wsabie.vocabulary.hierarchy import Hierarchy
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
    from wsabie.vocabulary.label_quadruplets import Quadruplets
    from wsabie.vocabulary.word_vectors import WordVectors
    from wsabie.workflows.augmented_search import AugmentedSearch

__version__ = "0.1.0"

_SHELF = {
    "Wsabie": "wsabie.models.wsabie.estimator",
    "Ensemble": "wsabie.models.ensemble",
    "Space": "wsabie.models.entity_space.space",
    "ObjectParts": "wsabie.models.object_parts.object_parts",
    "EntityKind": "wsabie.models.entity_space.relations",
    "Relation": "wsabie.models.entity_space.relations",
    "Devise": "wsabie.models.devise",
    "Conse": "wsabie.models.word_vectors",
    "Softmax": "wsabie.models.softmax",
    "LinearRanker": "wsabie.models.linear_ranker",
    "FullRank": "wsabie.models.full_rank",
    "make_vse_ens": "wsabie.models.paper_presets",
    "make_objects_and_parts": "wsabie.models.paper_presets",
    "make_opt_auc": "wsabie.models.paper_presets",
    "make_pamir": "wsabie.models.paper_presets",
    "Annotator": "wsabie.models.annotators",
    "BatchAnnotator": "wsabie.models.batch_annotator",
    "NearestNeighbours": "wsabie.models.neighbours",
    "ApproximateNeighbours": "wsabie.models.neighbours",
    "OneVsRest": "wsabie.models.one_vs_rest",
    "Popularity": "wsabie.models.popularity",
    "load": "wsabie.models.loader",
    "export": "wsabie.models.exporters.export_formats",
    "VisualWords": "wsabie.features.images.visual_words",
    "KernelPca": "wsabie.features.kernel_pca",
    "create_extractor": "wsabie.features.extractor_registry",
    "open_source": "wsabie.io.recognition",
    "open_shards": "wsabie.io.shards.sharded_table",
    "FeatureTable": "wsabie.io.records",
    "split": "wsabie.evaluation.splits",
    "split_quadruplets": "wsabie.evaluation.quadruplets",
    "Quadruplets": "wsabie.vocabulary.label_quadruplets",
    "hold_out_labels": "wsabie.evaluation.splits",
    "evaluate_scores": "wsabie.evaluation.score_evaluation",
    "Hierarchy": "wsabie.vocabulary.hierarchy",
    "read_hierarchy": "wsabie.io.vocabulary.hierarchies",
    "KnowledgeGraph": "wsabie.vocabulary.knowledge_graph",
    "read_knowledge_graph": "wsabie.io.vocabulary.knowledge_graphs",
    "match_labels": "wsabie.vocabulary.concept_matching",
    "WordVectors": "wsabie.vocabulary.word_vectors",
    "read_word_vectors": "wsabie.io.vocabulary.word_vectors",
    "find_top_k": "wsabie.search.exact_index",
    "LabelPairIndex": "wsabie.search.label_pairs",
    "AugmentedSearch": "wsabie.workflows.augmented_search",
    "EmbeddingSet": "wsabie.models.embedding_set",
    "QueryMatcher": "wsabie.search.query_labels",
    "HierarchyRelatedLabels": "wsabie.search.related_labels",
    "WsabieError": "wsabie.core.errors",
    "InputError": "wsabie.core.errors",
}

__all__ = [
    "Wsabie",
    "Ensemble",
    "Space",
    "ObjectParts",
    "EntityKind",
    "Relation",
    "Devise",
    "Conse",
    "Softmax",
    "LinearRanker",
    "FullRank",
    "make_vse_ens",
    "make_objects_and_parts",
    "make_opt_auc",
    "make_pamir",
    "Annotator",
    "BatchAnnotator",
    "NearestNeighbours",
    "ApproximateNeighbours",
    "OneVsRest",
    "Popularity",
    "load",
    "export",
    "VisualWords",
    "KernelPca",
    "create_extractor",
    "open_source",
    "open_shards",
    "FeatureTable",
    "split",
    "split_quadruplets",
    "Quadruplets",
    "hold_out_labels",
    "evaluate_scores",
    "Hierarchy",
    "read_hierarchy",
    "KnowledgeGraph",
    "read_knowledge_graph",
    "match_labels",
    "WordVectors",
    "read_word_vectors",
    "find_top_k",
    "LabelPairIndex",
    "AugmentedSearch",
    "EmbeddingSet",
    "QueryMatcher",
    "HierarchyRelatedLabels",
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
