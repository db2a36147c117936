"""A space together with what turns the user's files into things of its kinds: what `wsabie train FILE.toml` saves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require, whole_number
from wsabie.features.describer import Describer, PartConfig
from wsabie.features.registry import describer_from_parts
from wsabie.models.loading import load_one_of
from wsabie.models.space import Space
from wsabie.sources.align import Aligned, align
from wsabie.sources.records import Rows, Source
from wsabie.storage.folder import Parts, save_folder
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import read_config

KIND = "space-annotator"


@dataclass(frozen=True)
class ColumnsConfig:
    """The part of a folder's config about the columns of a kind."""

    feature_names: list[str] | None = None
    dictionary: str | None = None


@dataclass(frozen=True)
class SpaceAnnotatorConfig:
    """The config of a folder of a space with its features."""

    space: dict[str, Any]
    columns: dict[str, ColumnsConfig]
    facts: dict[str, Any]
    terms: dict[str, PartConfig]


@dataclass
class SpaceAnnotator:
    """A fitted space and the features of its kinds.

    Attributes
    ----------
    space : Space
    terms : dict of str to Describer
        What turns pictures, sounds or documents into rows, for the kinds that are made of such.
    columns : dict of str to dict
        Of the kinds with data: "feature_names" and "dictionary", where the rows say them.
    facts : dict
        What was trained on, JSON-able.
    """

    space: Space
    terms: dict[str, Describer] = field(default_factory=dict)
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def rows(
        self,
        kind: str,
        source: Source,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Aligned:
        """Things of a kind in its features; what had no place there is counted.

        Raises
        ------
        InputError
            The kind has no features, or others.
        """
        known = self.space.known(kind)
        if not known.n_features:
            raise InputError(f"things of the kind {kind!r} are known by their names alone; give names")
        if not isinstance(source, Rows):
            if kind not in self.terms:
                raise InputError(f"the kind {kind!r} was trained on rows of features, and {source.path} holds "
                                 f"{source.things}; give rows")  # fmt: skip
            source = self.terms[kind].transform(
                source, executor=executor or Serial(), progress=progress, rejects=rejects
            )
        columns = self.columns.get(kind, {})
        return align(source, None, columns.get("feature_names"), known.n_features, columns.get("dictionary"))

    def text(self, kind: str, text: str) -> Any:
        """Features of a text, (1, n_features): a thing of a kind that is made of documents; a word is one too.

        Raises
        ------
        InputError
            Things of the kind are no documents, or no word of the text is known.
        """
        from scipy.sparse import csr_matrix

        terms = self.terms.get(kind)
        if terms is None or str(terms.things) != "documents":
            raise InputError(f"things of the kind {kind!r} are no documents; give a kind that is made of text")
        columns, values = terms.transform_one(text.encode())
        require(len(columns) > 0, f"no word of {text!r} is in the dictionary; give another text")
        return csr_matrix((values, columns, [0, len(columns)]), (1, terms.n_features_))

    def words_near(self, kind: str, text: str, k: int = 10) -> list[tuple[str, float]]:
        """The words nearest to a word (or to a text) by cosine, with their cosines: a word is a document of one word.

        Raises
        ------
        InputError
            Things of the kind are no documents, its words are hashed, or the text has no word that is known.
        """
        from wsabie.search.exact import top_k

        row = self.text(kind, text)
        words: Any = getattr(self.terms[kind], "words_", None)
        if words is None:
            raise InputError(
                f"the words of the kind {kind!r} are hashed, so that they have no names; train without hashing"
            )
        space = self.space.space_
        table = space.tables[self.space.known(kind).table][:, : space.dim]
        k = min(whole_number(k, "k"), len(words) - row.nnz)
        ids, cosines = top_k(self.space.points(kind, row), table, k + row.nnz, similarity="cosine")
        near = [(int(j), float(c)) for j, c in zip(ids[0], cosines[0], strict=True) if j not in row.indices][:k]
        return [(words.word(j), cosine) for j, cosine in near]

    def to_parts(self) -> Parts:
        """JSON-able config and named arrays, the inner parts nested."""
        space = self.space.to_parts()
        config: dict[str, Any] = {"space": space.config, "columns": self.columns, "facts": self.facts, "terms": {}}
        tensors = space.nested("space")
        for name, describer in self.terms.items():
            terms = describer.to_parts()
            config["terms"][name] = {"kind": terms.kind, "config": terms.config}
            tensors |= terms.nested(f"terms/{name}")
        return Parts(KIND, config, tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """What `to_parts` described."""
        fields = read_config(SpaceAnnotatorConfig, parts.config)
        space = Space.from_parts(parts.under("space", Space.kind, fields.space))
        terms = {
            name: describer_from_parts(parts.under(f"terms/{name}", one.kind, one.config))
            for name, one in fields.terms.items()
        }
        if unknown := terms.keys() - space.kinds_.keys():
            raise ValueError(f"it describes the kinds {', '.join(sorted(unknown))}, which its space does not know")
        return cls(space, terms, parts.config["columns"], fields.facts)

    def save(self, path: str | Path) -> None:
        """Write the folder, atomically."""
        save_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved space with its features."""
        found: Self = load_one_of(path, {KIND: cls.from_parts})
        return found
