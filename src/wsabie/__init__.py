"""Annotation and search of large collections by joint embeddings trained with the WARP ranking loss.

`__all__` is the public interface; modules inside the package are internal and change without notice. Each name is
loaded when it is first used, so that `import wsabie` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wsabie.core.version import VERSION

if TYPE_CHECKING:
    from wsabie.core.errors import InputError as InputError
    from wsabie.core.errors import WsabieError as WsabieError
    from wsabie.core.executors import ProcessExecutor as ProcessExecutor
    from wsabie.distributed.ray_executor import RayExecutor as RayExecutor
    from wsabie.evaluation.metrics import compute_propensities as compute_propensities
    from wsabie.evaluation.quadruplets import split_quadruplets as split_quadruplets
    from wsabie.evaluation.score_evaluation import evaluate_scores as evaluate_scores
    from wsabie.evaluation.splits import hold_out_labels as hold_out_labels
    from wsabie.evaluation.splits import split as split
    from wsabie.features.extractor_registry import create_extractor as create_extractor
    from wsabie.features.extractors.visual_words import VisualWords as VisualWords
    from wsabie.features.kernel_pca import KernelPca as KernelPca
    from wsabie.io.datasets.attribute_recognition import read_attributes as read_attributes
    from wsabie.io.formats.parquet_rows import write_parquet_rows as write_parquet_rows
    from wsabie.io.formats.region_items import add_full_images as add_full_images
    from wsabie.io.formats.region_items import find_region_pairs as find_region_pairs
    from wsabie.io.formats.svmlight import write_svmlight_rows as write_svmlight_rows
    from wsabie.io.recognition import open_source as open_source
    from wsabie.io.records import FeatureTable as FeatureTable
    from wsabie.io.records import Item as Item
    from wsabie.io.records import ItemList as ItemList
    from wsabie.io.shards.sharded_table import open_shards as open_shards
    from wsabie.io.tags.image_tags import read_image_tags as read_image_tags
    from wsabie.io.tags.tag_writer import write_embedded as write_embedded
    from wsabie.io.tags.tag_writer import write_sidecar as write_sidecar
    from wsabie.io.vocabulary.hierarchies import read_hierarchy as read_hierarchy
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph as read_knowledge_graph
    from wsabie.io.vocabulary.word_vectors import read_word_vectors as read_word_vectors
    from wsabie.models.annotators import Annotator as Annotator
    from wsabie.models.batch_annotator import BatchAnnotator as BatchAnnotator
    from wsabie.models.devise import Devise as Devise
    from wsabie.models.embedding_set import EmbeddingSet as EmbeddingSet
    from wsabie.models.ensemble import Ensemble as Ensemble
    from wsabie.models.entity_space.relations import EntityKind as EntityKind
    from wsabie.models.entity_space.relations import Relation as Relation
    from wsabie.models.entity_space.space import Space as Space
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator as SpaceAnnotator
    from wsabie.models.explanations import explain_picture as explain_picture
    from wsabie.models.exporters.export_formats import export as export
    from wsabie.models.full_rank import FullRank as FullRank
    from wsabie.models.index_files import index_labels as index_labels
    from wsabie.models.linear_ranker import LinearRanker as LinearRanker
    from wsabie.models.loader import load as load
    from wsabie.models.nearest_mean import NearestMean as NearestMean
    from wsabie.models.neighbours import (
        ApproximateNeighbours as ApproximateNeighbours,
    )
    from wsabie.models.neighbours import (
        NearestNeighbours as NearestNeighbours,
    )
    from wsabie.models.object_parts.object_parts import ObjectParts as ObjectParts
    from wsabie.models.one_vs_rest import OneVsRest as OneVsRest
    from wsabie.models.paper_presets import (
        make_objects_and_parts as make_objects_and_parts,
    )
    from wsabie.models.paper_presets import (
        make_opt_auc as make_opt_auc,
    )
    from wsabie.models.paper_presets import (
        make_pamir as make_pamir,
    )
    from wsabie.models.paper_presets import (
        make_vse_ens as make_vse_ens,
    )
    from wsabie.models.popularity import Popularity as Popularity
    from wsabie.models.ridge import Ridge as Ridge
    from wsabie.models.softmax import Softmax as Softmax
    from wsabie.models.stacking.auto_ranker import AutoRanker as AutoRanker
    from wsabie.models.stacking.fusion import Fusion as Fusion
    from wsabie.models.word_vectors import Conse as Conse
    from wsabie.models.wsabie.estimator import Wsabie as Wsabie
    from wsabie.samples import get_sample_path as get_sample_path
    from wsabie.search.exact_index import find_top_k as find_top_k
    from wsabie.search.label_pairs import LabelPairIndex as LabelPairIndex
    from wsabie.search.query_labels import HierarchyRelatedLabels as HierarchyRelatedLabels
    from wsabie.search.query_labels import QueryMatcher as QueryMatcher
    from wsabie.storage.rejects import Rejects as Rejects
    from wsabie.vocabulary.concept_matching import match_labels as match_labels
    from wsabie.vocabulary.hierarchy import Hierarchy as Hierarchy
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph as KnowledgeGraph
    from wsabie.vocabulary.label_quadruplets import Quadruplets as Quadruplets
    from wsabie.vocabulary.word_vectors import WordVectors as WordVectors
    from wsabie.workflows.augmented_search import AugmentedSearch as AugmentedSearch

__version__ = VERSION

_NAMES = {
    "wsabie.models.wsabie.estimator": "Wsabie",
    "wsabie.models.loader": "load",
    "wsabie.models.annotators": "Annotator",
    "wsabie.models.batch_annotator": "BatchAnnotator",
    "wsabie.models.stacking.auto_ranker": "AutoRanker",
    "wsabie.models.stacking.fusion": "Fusion",
    "wsabie.models.ensemble": "Ensemble",
    "wsabie.models.entity_space.space": "Space",
    "wsabie.models.entity_space.relations": "EntityKind Relation",
    "wsabie.models.entity_space.space_annotator": "SpaceAnnotator",
    "wsabie.models.object_parts.object_parts": "ObjectParts",
    "wsabie.models.devise": "Devise",
    "wsabie.models.word_vectors": "Conse",
    "wsabie.models.softmax": "Softmax",
    "wsabie.models.linear_ranker": "LinearRanker",
    "wsabie.models.full_rank": "FullRank",
    "wsabie.models.paper_presets": "make_vse_ens make_objects_and_parts make_opt_auc make_pamir",
    "wsabie.models.neighbours": "NearestNeighbours ApproximateNeighbours",
    "wsabie.models.nearest_mean": "NearestMean",
    "wsabie.models.ridge": "Ridge",
    "wsabie.models.one_vs_rest": "OneVsRest",
    "wsabie.models.popularity": "Popularity",
    "wsabie.models.explanations": "explain_picture",
    "wsabie.models.index_files": "index_labels",
    "wsabie.models.exporters.export_formats": "export",
    "wsabie.features.extractors.visual_words": "VisualWords",
    "wsabie.features.kernel_pca": "KernelPca",
    "wsabie.features.extractor_registry": "create_extractor",
    "wsabie.io.recognition": "open_source",
    "wsabie.io.records": "FeatureTable Item ItemList",
    "wsabie.storage.rejects": "Rejects",
    "wsabie.samples": "get_sample_path",
    "wsabie.io.shards.sharded_table": "open_shards",
    "wsabie.io.formats.parquet_rows": "write_parquet_rows",
    "wsabie.io.formats.svmlight": "write_svmlight_rows",
    "wsabie.io.datasets.attribute_recognition": "read_attributes",
    "wsabie.io.formats.region_items": "find_region_pairs add_full_images",
    "wsabie.io.tags.image_tags": "read_image_tags",
    "wsabie.io.tags.tag_writer": "write_sidecar write_embedded",
    "wsabie.evaluation.splits": "split hold_out_labels",
    "wsabie.evaluation.quadruplets": "split_quadruplets",
    "wsabie.evaluation.score_evaluation": "evaluate_scores",
    "wsabie.evaluation.metrics": "compute_propensities",
    "wsabie.vocabulary.label_quadruplets": "Quadruplets",
    "wsabie.vocabulary.hierarchy": "Hierarchy",
    "wsabie.io.vocabulary.hierarchies": "read_hierarchy",
    "wsabie.vocabulary.knowledge_graph": "KnowledgeGraph",
    "wsabie.io.vocabulary.knowledge_graphs": "read_knowledge_graph",
    "wsabie.vocabulary.concept_matching": "match_labels",
    "wsabie.vocabulary.word_vectors": "WordVectors",
    "wsabie.io.vocabulary.word_vectors": "read_word_vectors",
    "wsabie.search.exact_index": "find_top_k",
    "wsabie.search.label_pairs": "LabelPairIndex",
    "wsabie.search.query_labels": "QueryMatcher HierarchyRelatedLabels",
    "wsabie.workflows.augmented_search": "AugmentedSearch",
    "wsabie.models.embedding_set": "EmbeddingSet",
    "wsabie.core.executors": "ProcessExecutor",
    "wsabie.distributed.ray_executor": "RayExecutor",
    "wsabie.core.errors": "WsabieError InputError",
}
"""Public names by the module that defines them."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_MODULES, "__version__"]


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'wsabie' has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
