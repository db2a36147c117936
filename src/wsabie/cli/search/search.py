"""`wsabie search`."""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsabie.cli.inputs.command_inputs import (
    choose_label_source,
    collect_rejects,
    get_read_options,
    load_annotator,
    make_executor,
    open_data,
    refuse_misfit,
)
from wsabie.cli.inputs.knowledge_files import load_knowledge, load_word_vectors, match_concepts
from wsabie.cli.models.spaces import load_space
from wsabie.cli.terminal.output import TerminalProgress, escape_line, format_count, out, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable, Source
from wsabie.models.embedding_set import EmbeddingSet, require_embeddings
from wsabie.search.query_labels import LabelAliases, QueryMatcher, format_label_list
from wsabie.search.related_labels import HierarchyRelatedLabels, RelatedLabelSource
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import Vocabulary
from wsabie.workflows.search.augmented_search import (
    AugmentedResult,
    AugmentedSearch,
    ItemMatch,
    drop_labels_without_vector,
)


@dataclass(frozen=True)
class SearchRequest:
    """Request of the command line."""

    model: Path
    query: str
    within: tuple[Path, ...]
    k: int
    n_related: int
    knowledge: tuple[Path, ...]
    pairs: tuple[str, ...]
    table: Path | None
    vectors: Path | None
    trained: tuple[Path, ...]
    relation: str | None
    distinct: bool
    points: Path | None
    out: Path | None
    threads: int | None
    strict: bool
    rejects: Path | None
    json: bool


def run_search(request: SearchRequest) -> None:
    """Parse the query, rank the collection, and show the results in groups."""
    _check_options(request)
    if load_space(request.model) is not None:
        raise InputError(
            f"{request.model} is a space of several kinds; search takes a model of labels, and a space as --trained"
        )
    annotator = load_annotator(request.model, request.threads)
    require_embeddings(annotator.model)
    vocabulary = annotator.model.vocabulary_
    label_id = vocabulary.find(request.query)
    query = request.query if label_id < 0 else vocabulary.names([label_id])[0]  # the current name of a renamed label
    with collect_rejects(request.rejects, strict=request.strict) as rejects:
        source, table = _open_collection(request, annotator, rejects)
        aliases = LabelAliases(table.Y, table.label_names)
        queries, related = _make_matchers(request, annotator.model, aliases, rejects)
        drop_labels_without_vector(
            queries.understand(query), annotator.model
        )  # refuses an unknown word before any work
        items = _embed_collection(request, annotator, source, rejects)
        groups = _list_groups(table, items) if request.distinct else None
        search = AugmentedSearch(annotator.model, items, queries=queries, related=related, groups=groups)
        result = search.find(query, request.k, request.n_related)
        labels, files = _collect_labels(table, result, vocabulary), _collect_files(source, result)
        if request.out is not None and not isinstance(source, FeatureTable):
            _write_pictures(request, request.out, result, source, labels, files)
        skipped = len(rejects)
    _show_results(request, result, labels, files, skipped)


def _check_options(request: SearchRequest) -> None:
    """Check the options before any data is read."""
    from wsabie.storage.model_folder import refuse_foreign_files

    suffix = None if request.out is None else request.out.suffix.lower()
    if suffix not in (None, ".html", ".png"):
        raise InputError(
            f"--out {request.out} is neither a page (.html) nor a sheet (.png); choose one of these endings"
        )
    if request.points is not None:
        refuse_foreign_files(request.points)
    inputs = (request.model, *request.within, *request.knowledge, *request.trained, request.table, request.vectors)
    kind: Any = "html" if suffix == ".html" else "picture"
    check_output_paths((kind, request.out), ("rejects", request.rejects), inputs=inputs, folder=request.points)


def _open_collection(request: SearchRequest, annotator: Any, rejects: Rejects) -> tuple[Source, FeatureTable]:
    """Open the collection to search, and a table of its ids, labels and groups."""
    from wsabie.features.base.table_builder import build_label_table
    from wsabie.io.source_concatenation import concatenate_sources

    modality = annotator.terms and annotator.terms.things
    n_features = annotator.model.n_features_in_
    read_options = get_read_options(annotator.facts)
    source = concatenate_sources(
        [
            open_data(
                path, rejects, choose_label_source(path, n_features, modality), n_features, modality, **read_options
            )
            for path in request.within
        ]
    )
    if request.out is not None and (isinstance(source, FeatureTable) or source.things != "pictures"):
        content = "rows of features" if isinstance(source, FeatureTable) else source.things
        raise InputError(f"--out draws pictures and {request.within[0]} holds {content}; leave --out out")
    return source, source if isinstance(source, FeatureTable) else build_label_table(source)


def _make_matchers(
    request: SearchRequest, model: Any, aliases: LabelAliases, rejects: Rejects
) -> tuple[QueryMatcher, list[RelatedLabelSource]]:
    """Make the query matcher and the sources of related labels, trained models first."""
    from wsabie.models.label_relations import SpaceRelations, find_model_relations
    from wsabie.models.loader import load

    labels, concepts, vectors = model.vocabulary_.names(model.vocabulary_.living()), None, None
    related: list[RelatedLabelSource] = [
        find_model_relations(load(path), request.relation, str(path)) for path in request.trained
    ]
    if request.relation is not None and not any(isinstance(source, SpaceRelations) for source in related):
        raise InputError(
            f"--relation {request.relation} is one of a space, and --trained has none; leave --relation out"
        )
    if hasattr(model, "related"):
        related.insert(0, find_model_relations(model, None, str(request.model)))
    if request.knowledge or request.pairs:
        concepts = match_concepts(load_knowledge(request.knowledge, request.pairs), labels, request.table)
        name = " and ".join(path.stem for path in request.knowledge) or "pairs"
        related.append(HierarchyRelatedLabels(concepts, called=name, same=aliases))
        if not any(concepts.concepts):
            print_note(f"nothing is known of the {format_count(len(labels), 'label')} of {request.model}")
    if request.vectors is not None:
        vectors = load_word_vectors(request.vectors, rejects=rejects)
    return QueryMatcher(labels, concepts, aliases, vectors), related


def _embed_collection(request: SearchRequest, annotator: Any, source: Source, rejects: Rejects) -> EmbeddingSet:
    """Embed the collection, or load stored embeddings of the same model and data."""
    from wsabie.io.fingerprints import compute_fingerprint_or_none
    from wsabie.storage.model_folder import read_folder_kind

    folder, content = request.points, None if request.points is None else compute_fingerprint_or_none(source)
    if folder is not None and content is None:
        print_note(
            f"{folder} is left as it is: something in the collection cannot be read, so it would not be known again"
        )
        folder = None
    origin = ""
    if folder is not None:
        origin = f"{hashlib.sha256((request.model / 'config.json').read_bytes()).hexdigest()[:16]}-{content}"
        if read_folder_kind(folder) is not None:
            stored = EmbeddingSet.load(folder)
            if stored.origin == origin:
                return stored
            print_note(f"{folder} holds points of another model or collection; they are made anew")
    refuse_misfit(annotator, request.model, source)
    executor, progress = make_executor(request.threads), TerminalProgress()
    embeddings = EmbeddingSet.of(
        annotator, source, origin=origin, executor=executor, progress=progress, rejects=rejects
    )
    if not len(embeddings):
        raise InputError(f"nothing in {request.within[0]} can be read; look at the list that --rejects FILE writes")
    if folder is not None:
        embeddings.save(folder)
    return embeddings


def _list_groups(table: FeatureTable, items: EmbeddingSet) -> list[str]:
    """Return the group of each item; an item without group is its own."""
    if table.groups is None:
        raise InputError("--distinct shows one thing of each group, and the collection has no groups; leave it out")
    groups = dict(zip(table.ids, table.groups, strict=True))
    return [groups[name] or name for name in items.ids]


def _collect_labels(table: FeatureTable, result: AugmentedResult, vocabulary: Vocabulary) -> dict[str, set[str]]:
    """Collect the labels of the results, by their current names in the model; empty without any labels."""
    Y, names = table.Y.tocsr(), list(vocabulary)
    current_names = [names[at] if (at := vocabulary.find(name)) >= 0 else name for name in table.label_names]
    result_ids = {match.id for group in result.groups for match in group.found}
    return {
        name: {current_names[label_id] for label_id in Y.indices[at][Y.data[at] > 0]}
        for row, name in enumerate(table.ids)
        if Y.nnz and name in result_ids
        for at in [slice(Y.indptr[row], Y.indptr[row + 1])]
    }


def _collect_files(source: Source, result: AugmentedResult) -> dict[str, str]:
    """Collect the paths of results that are single files, by id."""
    if isinstance(source, FeatureTable):
        return {}
    result_ids = {match.id for group in result.groups for match in group.found}
    return {item.id: str(item.content) for item in source if item.id in result_ids and isinstance(item.content, Path)}


def _write_pictures(
    request: SearchRequest,
    target: Path,
    result: AugmentedResult,
    source: Any,
    labels: dict[str, set[str]],
    files: dict[str, str],
) -> None:
    from wsabie.storage.atomic_files import write_bytes, write_text
    from wsabie.workflows.search.result_sheet import load_result_images, render_result_page, render_result_sheet

    pictures = load_result_images(result, source)
    if target.suffix.lower() == ".html":
        collection_name = " and ".join(path.name for path in request.within)
        write_text(target, render_result_page(result, pictures, collection_name, files=files, labels=labels))
    else:
        write_bytes(target, render_result_sheet(result, pictures))


def _show_results(
    request: SearchRequest, result: AugmentedResult, labels: dict[str, set[str]], files: dict[str, str], skipped: int
) -> None:
    query = result.understood
    if request.json:
        groups = [
            {"labels": group.labels, "why": group.why, "score": _round_score(group.score),
             "found": [_serialize_match(match, labels, files) for match in group.found]}
            for group in result.groups
        ]  # fmt: skip
        written = {} if request.out is None else {"out": str(request.out)}
        query_facts = {**query._asdict(), "query": request.query}
        show_json(
            {"schema": 1, "model": str(request.model), **query_facts, "groups": groups, **written, "skipped": skipped}
        )
        return
    for number, group in enumerate(result.groups):
        if number:
            out.print()
            out.print(escape_line(f"{format_label_list(group.labels)}: {group.why}"))
        else:
            out.print(escape_line(query.sentence))
        for match in group.found:
            sign = "*" if match.label in labels.get(match.id, ()) else ""
            sys.stdout.write(
                f"{escape_line(files.get(match.id, match.id))}\t{sign}{escape_line(match.label)} {match.score:.2f}\n"
            )
    if labels:
        print_note("* a label that it carries in the collection")
    if request.out is not None:
        print_note(f"pictures: {request.out}")


def _serialize_match(match: ItemMatch, labels: dict[str, set[str]], files: dict[str, str]) -> dict[str, Any]:
    label_facts = {"labelled": match.label in labels[match.id]} if match.id in labels else {}
    file_facts = {"file": files[match.id]} if match.id in files else {}
    return {"id": match.id, **file_facts, "label": match.label, "score": round(match.score, 6), **label_facts}


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, 6)
