"""A space with the feature extractors that turn files of its kinds into rows."""

from dataclasses import dataclass, field
from typing import Any, Self, Unpack

from scipy.sparse import csr_matrix

from wsabie.core.arrays import Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.core.validation import check_positive_integer
from wsabie.features.base.feature_extractor import FeatureExtractor, NestedConfig
from wsabie.features.base.sampling import RunOptions
from wsabie.features.extractor_registry import restore_extractor
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.records import FeatureTable, Source
from wsabie.models.base.label_model import LabelScores
from wsabie.models.entity_space.space import Space
from wsabie.search.exact_index import find_top_k
from wsabie.storage.model_folder import ModelState, SavedModel
from wsabie.storage.schema_validation import read_config


@dataclass(frozen=True)
class ColumnsConfig:
    """The part of a folder's config about the columns of a kind."""

    feature_names: list[str] | None = None
    extractor_fingerprint: str | None = None


@dataclass(frozen=True)
class SpaceAnnotatorConfig:
    """The config of a folder of a space with its features."""

    space: JsonObject
    columns: dict[str, ColumnsConfig]
    facts: JsonObject
    extractors: dict[str, NestedConfig]


@dataclass
class SpaceAnnotator(SavedModel):
    """A fitted space and the features of its kinds.

    Attributes
    ----------
    space : Space
    extractors : dict of str to FeatureExtractor
        Extractors of the kinds that consist of pictures, sounds or documents.
    columns : dict of str to dict
        "feature_names" and "extractor_fingerprint" of the kinds with data, if the rows have them.
    facts : dict
        Training data, JSON-able.
    """

    kind = "space-annotator"
    space: Space
    extractors: dict[str, FeatureExtractor] = field(default_factory=dict)
    columns: dict[str, JsonObject] = field(default_factory=dict)
    facts: JsonObject = field(default_factory=dict)

    def rows(self, kind: str, source: Source, **options: Unpack[RunOptions]) -> AlignedTable:
        """Return items of a kind with its features; values of columns that it lacks are counted.

        Parameters
        ----------
        kind : str
        source : ItemSource or FeatureTable
        executor, progress, rejects
            See `FeatureExtractor.transform`.

        Returns
        -------
        AlignedTable

        Raises
        ------
        InputError
            The kind has no features, or other ones.
        """
        entities = self.space.find_entities(kind)
        require(entities.n_features > 0, f"entities of the kind {kind!r} are known by their names alone; give names")
        if not isinstance(source, FeatureTable):
            if kind not in self.extractors:
                raise InputError(f"the kind {kind!r} was trained on rows of features, and {source.path} holds "
                                 f"{source.modality}; give rows")  # fmt: skip
            source = self.extractors[kind].transform(source, **options)
        columns = self.columns.get(kind, {})
        names, fingerprint = columns.get("feature_names"), columns.get("extractor_fingerprint")
        return align_table(source, None, names, entities.n_features, fingerprint)

    def text(self, kind: str, text: str) -> Matrix:
        """Return the features of a text or a word, for a kind of documents.

        Parameters
        ----------
        kind : str
        text : str

        Returns
        -------
        csr_matrix, (1, n_features) float32

        Raises
        ------
        InputError
            Items of the kind are not documents, or no word of the text is known.
        """
        extractor = self.extractors.get(kind)
        if extractor is None or str(extractor.modality) != "documents":
            raise InputError(f"entities of the kind {kind!r} are not documents; give a kind that is made of text")
        columns, values = extractor.transform_one(text.encode())
        require(len(columns) > 0, f"no word of {text!r} is in the vocabulary; give another text")
        return csr_matrix((values, columns, [0, len(columns)]), (1, extractor.n_features_))

    def words_near(self, kind: str, text: str, k: int = 10) -> LabelScores:
        """Return the words nearest to a word or a text by cosine, with their cosines.

        A word counts as a document of one word.

        Parameters
        ----------
        kind : str
        text : str
        k : int, default 10

        Returns
        -------
        list of (word, cosine)
            Nearest first, without the words of the text.

        Raises
        ------
        InputError
            Items of the kind are not documents, its words are hashed, or no word of the text is known.
        """
        row = self.text(kind, text)
        words: Any = getattr(self.extractors[kind], "words_", None)
        if words is None:
            fact = f"the words of the kind {kind!r} are hashed, so that they have no names"
            raise InputError(f"{fact}; train without hashing")
        space = self.space.space_
        table = space.tables[self.space.find_entities(kind).table][:, : space.dim]
        k = min(check_positive_integer(k, "k"), len(words) - row.nnz)
        ids, cosines = find_top_k(self.space.compute_points(kind, row), table, k + row.nnz, similarity="cosine")
        near = [(int(j), float(c)) for j, c in zip(ids[0], cosines[0], strict=True) if j not in row.indices][:k]
        return [(words.get_word(j), cosine) for j, cosine in near]

    def to_state(self) -> ModelState:
        """Return JSON-able config and named arrays, the inner parts nested.

        Returns
        -------
        ModelState
        """
        space = self.space.to_state()
        config: JsonObject = {"space": space.config, "columns": self.columns, "facts": self.facts, "extractors": {}}
        tensors = space.add_prefix("space")
        for name, extractor in self.extractors.items():
            extractor_state = extractor.to_state()
            config["extractors"][name] = {"kind": extractor_state.kind, "config": extractor_state.config}
            tensors |= extractor_state.add_prefix(f"extractors/{name}")
        return ModelState(self.kind, config, tensors)

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        fields = read_config(SpaceAnnotatorConfig, state.config)
        space = Space.from_state(state.select_prefix("space", Space.kind, fields.space))
        extractors = {
            name: restore_extractor(state.select_prefix(f"extractors/{name}", extractor.kind, extractor.config))
            for name, extractor in fields.extractors.items()
        }
        if unknown := extractors.keys() - space.kinds_.keys():
            raise ValueError(
                f"it extracts features of the kinds {', '.join(sorted(unknown))}, which its space does not know"
            )
        return cls(space, extractors, state.config["columns"], fields.facts)
