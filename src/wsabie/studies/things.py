"""The things of declared kinds in the features of their maps; pictures, sounds and documents are described first."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.base.validation import require
from wsabie.evaluation.splits import Split
from wsabie.features.collect import outline
from wsabie.features.describer import Describer
from wsabie.features.extract import learn
from wsabie.features.registry import describer
from wsabie.sources.align import align
from wsabie.sources.declaration import Declared, DeclaredKind, DeclaredRelation
from wsabie.sources.fingerprint import fingerprint_or_none
from wsabie.sources.records import ItemPart, ItemSource, Rows, Source
from wsabie.storage.rejects import Rejects
from wsabie.studies.dealing import Collected, collect
from wsabie.studies.training import described, transformed


def opened(
    declared: Declared, relations: list[DeclaredRelation], rejects: Rejects
) -> tuple[Collected, dict[str, Source]]:
    """What relations need, and the sources behind it; rows of what is not rows have no features yet.

    Raises
    ------
    InputError
        As `collect`.
    """
    sources: dict[str, Source] = {}

    def outlined(kind: DeclaredKind, source: Source) -> Rows:
        sources[kind.name] = source
        return source if isinstance(source, Rows) else outline(source)

    return collect(declared, relations, outlined, rejects), sources


class Things:
    """Describes the things of every kind; kinds of one map alike.

    Parameters
    ----------
    seed : int
    executor, progress, rejects
        As of `wsabie.studies.training.train`.
    work : Path or None
        Folder where what is described is kept until a space is saved.
    taught_by : mapping of str to Split or None
        By kind: only the training side of its items teaches how all are described. None: all teach.

    Attributes
    ----------
    terms : dict of str to Describer
    fingerprints : dict of str to str or None
        Of the data of each kind.
    """

    def __init__(
        self,
        seed: int,
        executor: Executor,
        progress: Progress,
        rejects: Rejects,
        work: Path | None = None,
        taught_by: Mapping[str, Split] | None = None,
    ) -> None:
        self.seed, self.work, self.taught_by = seed, work, taught_by
        self.run = (executor, progress, rejects)
        self.terms: dict[str, Describer] = {}
        self.fingerprints: dict[str, str | None] = {}
        self.first: dict[str, tuple[str, Rows]] = {}

    def rows(self, kind: DeclaredKind, source: Source) -> Rows:
        """The things of a kind in the features of its map.

        Raises
        ------
        InputError
            Data that cannot be described so.
        """
        self.fingerprints[kind.name] = fingerprint_or_none(source)
        if kind.mapped_by in self.first:
            return self._alike(kind, source, *self.first[kind.mapped_by])
        rows = source if isinstance(source, Rows) else self._described(kind, source)
        if rows is source:
            require(not kind.description, f"[kinds.{kind.name}] says how to describe what is rows of features already")
        self.first[kind.mapped_by] = kind.name, rows
        return rows

    def described(self, declared: Declared, data: Collected, sources: Mapping[str, Source]) -> Collected:
        """What was opened, with the features of all that can be described."""
        rows = {name: self.rows(declared.kinds[name], source) for name, source in sources.items()}
        return replace(data, rows={name: _grouped_as(own, data.rows[name]) for name, own in rows.items()})

    def more(self, data: Collected, sources: Mapping[str, Source], known: Mapping[str, Rows]) -> Collected:
        """The same of other things of known kinds, described as the things of these kinds were.

        Raises
        ------
        InputError
            Things of a kind that has no features.
        """
        rows = {}
        for name, source in sources.items():
            if name not in known:
                raise InputError(f"things of the kind {name!r} are known by their names alone; leave its data out")
            rows[name] = _grouped_as(self._as_known(name, source, known[name]), data.rows[name])
        return replace(data, rows=rows)

    def _described(self, kind: DeclaredKind, source: ItemSource) -> Rows:
        if self.work is not None:
            work = self.work / "kinds" / f"{len(self.terms)}"
            rows, self.terms[kind.name] = described(source, kind.description, work, self.seed, *self.run)
            return rows
        options, (executor, progress, rejects) = dict(kind.description), self.run
        wanted = describer(options.pop("describe", None), things=source.things, **options, seed=self.seed)
        teachers = source if self.taught_by is None else ItemPart(source, self.taught_by[kind.name].train)
        terms = self.terms[kind.name] = learn(wanted, teachers, executor, progress, rejects)
        return terms.transform(source, executor=executor, progress=progress, rejects=rejects)

    def _alike(self, kind: DeclaredKind, source: Source, other: str, known: Rows) -> Rows:
        """As the kind that had the map first."""
        where = f"[kinds.{kind.name}] shares the map of {other!r}"
        require(not kind.description, f"{where}, which says how things are described; leave it out here")
        if not isinstance(source, Rows) and other not in self.terms:
            raise InputError(f"{where}, which is made of rows, and {kind.data} holds {source.things}; give rows")
        if other in self.terms:
            self.terms[kind.name] = self.terms[other]
        return self._as_known(other, source, known)

    def _as_known(self, name: str, source: Source, known: Rows) -> Rows:
        executor, progress, rejects = self.run
        rows = transformed(self.terms.get(name), source, executor, progress, rejects)
        return align(rows, None, known.feature_names, known.X.shape[1], known.dictionary).rows


def _grouped_as(rows: Rows, outlined: Rows) -> Rows:
    """The rows in the groups that were known before they were described."""
    if outlined.groups is None:
        return rows
    group = dict(zip(outlined.ids, outlined.groups, strict=True))
    return replace(rows, groups=[group[thing] for thing in rows.ids])
