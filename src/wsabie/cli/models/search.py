"""`wsabie search`."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli import inputs
from wsabie.cli.framework import JsonObject, Options, Report, argument, command, option
from wsabie.cli.inputs import load_space
from wsabie.cli.knowledge_files import load_knowledge, load_word_vectors, match_concepts
from wsabie.cli.output import escape_line, format_count, out, print_note, print_row
from wsabie.cli.shared_options import DataOptions, Knowledge, Model, RelationPairs, Table, ThreadOptions
from wsabie.core.errors import InputError, require
from wsabie.storage.atomic_files import write_bytes, write_text
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.io.records import FeatureTable, ItemSource, Source
    from wsabie.models.annotators import Annotator
    from wsabie.models.base.label_model import LabelModel
    from wsabie.models.embedding_set import EmbeddingSet
    from wsabie.search.query_labels import LabelAliases, QueryMatcher, RelatedLabelSource
    from wsabie.storage.output_checks import OutputKind
    from wsabie.vocabulary.label_names import Vocabulary
    from wsabie.workflows.augmented_search import AugmentedGroup, AugmentedResult, ItemMatch

Labels = dict[str, set[str]]
"""Labels of items in the collection, by id."""
Files = dict[str, str]
"""Files of items, by id."""


class KnowledgeOptions(Options, panel="Knowledge of labels"):
    """Options of what finds labels, and related ones."""

    knowledge: Knowledge = None
    pairs: RelationPairs = None
    table: Table = None
    vectors: Path | None = option("Word vectors that find the nearest label for an unknown word.")
    related_model: list[Path] | None = option(
        "Model of objects and parts, or space with a relation of labels, that finds related ones.", metavar="MODEL"
    )
    relation: str | None = option("Which relation of a space in --related-model (default: its first).")


class SearchOptions(DataOptions, ThreadOptions):
    """Options of `wsabie search`."""

    model: Model
    query: str = argument("A label, or a word that means one.", metavar="QUERY")
    within: list[Path] = option("Data to search; several are joined.", flag="--in", metavar="DATA")
    k: int = option("How many of each group.", 10, flag="-k", min=1)
    max_related: int = option("How many related labels at most.", 8, min=0)
    distinct: bool = option("Show only the best item of each group of the collection.")
    out: Path | None = option("Page (.html) or sheet (.png) of the pictures.")
    embeddings: Path | None = option("Folder that keeps the encoded collection for the next search.")
    labels: KnowledgeOptions


@command(
    'search birds "water bird" --in photos/ --knowledge /usr/share/wordnet',
    "search birds penguin --in photos/ --out penguins.html",
)
def search(options: SearchOptions) -> Report:
    """Find pictures by a text, in groups with reasons.

    First come those of its label, then those of related labels.
    """

    from wsabie.models.embedding_set import require_embeddings
    from wsabie.search.query_labels import LabelAliases
    from wsabie.workflows.augmented_search import AugmentedSearch, drop_labels_without_vector

    _check_options(options)
    remedy = "search takes a model of labels, a space is a --related-model"
    require(load_space(options.model) is None, f"{options.model} is a space of several kinds; {remedy}")
    annotator = inputs.load_annotator(options.model, options.threads)
    require_embeddings(annotator.model)
    vocabulary = annotator.model.vocabulary_
    label_id = vocabulary.find(options.query)
    query = options.query if label_id < 0 else vocabulary.names([label_id])[0]  # the current name of a renamed label
    with options.collect_rejects() as rejects:
        source, table = _open_collection(options, annotator, rejects)
        aliases = LabelAliases(table.Y, table.label_names)
        queries, related = _make_matchers(options, annotator.model, aliases, rejects)
        drop_labels_without_vector(queries.match(query), annotator.model)  # refuses an unknown word before any work
        items = _embed_items(options, annotator, source, rejects)
        groups = _list_groups(table, items) if options.distinct else None
        augmented_search = AugmentedSearch(annotator.model, items, queries=queries, related=related, groups=groups)
        result = augmented_search.find(query, options.k, options.max_related)
        labels, files = _collect_labels(table, result, vocabulary), Files()
        if not inputs.is_table(source):
            ids = {match.id for group in result.groups for match in group.matches}
            items_found = (item for item in source if item.id in ids and isinstance(item.content, Path))
            files = {item.id: str(item.content) for item in items_found}
            if options.out is not None:
                _write_pictures(options, options.out, result, source, labels, files)
    serialized = [_serialize_group(group, labels, files) for group in result.groups]
    facts = {**result.query_labels._asdict(), "query": options.query, "groups": serialized}
    written = {} if options.out is None else {"out": options.out}
    yield {"model": options.model, **facts, **written, "skipped": len(rejects)}
    _show_results(result, labels, files)
    if options.out is not None:
        print_note(f"pictures: {options.out}")


def _check_options(options: SearchOptions) -> None:
    """Check the options before any data is read."""
    from wsabie.storage.model_folder import refuse_foreign_files

    if not (options.labels.knowledge or options.labels.pairs) and options.labels.table is not None:
        raise InputError("--table says what labels mean in --knowledge; add it, or leave --table out")
    if options.labels.relation is not None and not options.labels.related_model:
        raise InputError("--relation is one of a space; name that space with --related-model, or leave --relation out")
    suffix = None if options.out is None else options.out.suffix.lower()
    fact = "neither a page (.html) nor a sheet (.png)"
    require(suffix in (None, ".html", ".png"), f"--out {options.out} is {fact}; choose one of these endings")
    if options.embeddings is not None:
        refuse_foreign_files(options.embeddings)
    models = (options.model, *(options.labels.related_model or ()))
    paths = (*models, *options.within, *(options.labels.knowledge or ()), options.labels.table, options.labels.vectors)
    kind: OutputKind = "html" if suffix == ".html" else "picture"
    options.check_outputs((kind, options.out), inputs=paths, folder=options.embeddings)


def _open_collection(options: SearchOptions, annotator: "Annotator", rejects: Rejects) -> "tuple[Source, FeatureTable]":
    """Open the collection to search, and a table of its ids, labels and groups."""
    from wsabie.io.records import concatenate_sources

    n_features, modality = annotator.model.n_features_in_, inputs.find_modality(annotator)
    label_sources = [inputs.choose_label_source(path, n_features, modality) for path in options.within]
    pairs = zip(options.within, label_sources, strict=True)
    sources = [inputs.open_model_data(annotator, path, rejects, labels, options.data_format) for path, labels in pairs]
    source = concatenate_sources(sources)
    if options.out is not None and (inputs.is_table(source) or source.modality != "pictures"):
        content = inputs.name_content(source)
        raise InputError(f"--out draws pictures and {options.within[0]} holds {content}; leave --out out")
    return source, inputs.make_label_table(source)


def _make_matchers(
    options: SearchOptions, model: "LabelModel", aliases: "LabelAliases", rejects: Rejects
) -> "tuple[QueryMatcher, list[RelatedLabelSource]]":
    """Make the query matcher and the sources of related labels, trained models first."""
    from wsabie.models.loader import load
    from wsabie.models.model_relations import SpaceRelations, find_model_relations
    from wsabie.search.query_labels import HierarchyRelatedLabels, QueryMatcher

    labels, concepts, vectors = model.vocabulary_.names(model.vocabulary_.active_ids()), None, None
    sources, relation, knowledge = options.labels, options.labels.relation, options.labels.knowledge or ()
    related: list[RelatedLabelSource] = [
        find_model_relations(load(path), relation, str(path)) for path in sources.related_model or ()
    ]
    if relation is not None and not any(isinstance(source, SpaceRelations) for source in related):
        raise InputError(f"--relation {relation} is one of a space, and --related-model has none; leave it out")
    if hasattr(model, "related"):
        related.insert(0, find_model_relations(model, None, str(options.model)))
    if knowledge or sources.pairs:
        concepts = match_concepts(load_knowledge(knowledge, sources.pairs or ()), labels, sources.table)
        name = " and ".join(path.stem for path in knowledge) or "pairs"
        related.append(HierarchyRelatedLabels(concepts, source_name=name, aliases=aliases))
        if not any(concepts.concepts):
            print_note(f"nothing is known of the {format_count(len(labels), 'label')} of {options.model}")
    if sources.vectors is not None:
        vectors = load_word_vectors(sources.vectors, rejects=rejects)
    return QueryMatcher(labels, concepts, aliases, vectors), related


def _embed_items(options: SearchOptions, annotator: "Annotator", source: "Source", rejects: Rejects) -> "EmbeddingSet":
    """Embed the collection, or load stored embeddings of the same model and data."""
    from wsabie.io.fingerprints import compute_fingerprint_or_none
    from wsabie.models.embedding_set import EmbeddingSet
    from wsabie.storage.model_folder import read_folder_kind

    folder, content = options.embeddings, None if options.embeddings is None else compute_fingerprint_or_none(source)
    if folder is not None and content is None:
        reason = "some items of the collection cannot be read, so it cannot be recognised next time"
        print_note(f"{folder} is left as it is: {reason}")
        folder = None
    origin = ""
    if folder is not None:
        origin = f"{hashlib.sha256((options.model / 'config.json').read_bytes()).hexdigest()[:16]}-{content}"
        if read_folder_kind(folder) is not None:
            stored = EmbeddingSet.load(folder)
            if stored.origin == origin:
                return stored
            print_note(f"{folder} holds embeddings of another model or collection; they are made again")
    inputs.refuse_misfit(annotator, options.model, source)
    embeddings = EmbeddingSet.of(annotator, source, origin=origin, **options.resources(rejects=rejects))
    fact = f"nothing in {options.within[0]} can be read"
    require(len(embeddings) > 0, f"{fact}; look at the list that --rejects FILE writes")
    if folder is not None:
        embeddings.save(folder)
    return embeddings


def _list_groups(table: "FeatureTable", items: "EmbeddingSet") -> list[str]:
    """Return the group of each item; an item without group is its own."""
    if table.groups is None:
        raise InputError("--distinct shows one item of each group, and the collection has no groups; leave it out")
    groups = dict(zip(table.ids, table.groups, strict=True))
    return [groups[name] or name for name in items.ids]


def _collect_labels(table: "FeatureTable", result: "AugmentedResult", vocabulary: "Vocabulary") -> Labels:
    """Collect the labels of the results, by their current names in the model; empty without any labels."""
    Y, names = table.Y.tocsr(), list(vocabulary)
    current_names = [names[at] if (at := vocabulary.find(name)) >= 0 else name for name in table.label_names]
    result_ids = {match.id for group in result.groups for match in group.matches}
    return {
        name: {current_names[label_id] for label_id in Y.indices[at][Y.data[at] > 0]}
        for row, name in enumerate(table.ids)
        if Y.nnz and name in result_ids
        for at in [slice(Y.indptr[row], Y.indptr[row + 1])]
    }


def _write_pictures(
    options: SearchOptions, target: Path, result: "AugmentedResult", source: "ItemSource", labels: Labels, files: Files
) -> None:
    from wsabie.workflows.augmented_search import list_sheet_lines, load_thumbnails, render_result_page, render_sheet

    pictures = load_thumbnails((match.id for group in result.groups for match in group.matches), source)
    if target.suffix.lower() == ".html":
        collection_name = " and ".join(path.name for path in options.within)
        write_text(target, render_result_page(result, pictures, collection_name, files=files, labels=labels))
    else:
        write_bytes(target, render_sheet(list_sheet_lines(result), pictures))


def _show_results(result: "AugmentedResult", labels: Labels, files: Files) -> None:
    from wsabie.search.query_labels import format_label_list

    for number, group in enumerate(result.groups):
        if number:
            out.print()
            out.print(escape_line(f"{format_label_list(group.labels)}: {group.reason}"))
        else:
            out.print(escape_line(result.query_labels.sentence))
        for match in group.matches:
            sign = "*" if match.label in labels.get(match.id, ()) else ""
            print_row(files.get(match.id, match.id), f"{sign}{match.label} {match.score:.2f}")
    if labels:
        print_note("* a label that it carries in the collection")


def _serialize_group(group: "AugmentedGroup", labels: Labels, files: Files) -> JsonObject:
    score = None if group.score is None else round(group.score, 6)
    matches = [_serialize_match(match, labels, files) for match in group.matches]
    return {"labels": group.labels, "reason": group.reason, "score": score, "matches": matches}


def _serialize_match(match: "ItemMatch", labels: Labels, files: Files) -> JsonObject:
    label_facts = {"labelled": match.label in labels[match.id]} if match.id in labels else {}
    file_facts = {"file": files[match.id]} if match.id in files else {}
    return {"id": match.id, **file_facts, "label": match.label, "score": round(match.score, 6), **label_facts}
