"""Routes of labels: lists, details, neighbours, changes and merge proposals."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

from wsabie.collection import overview
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_edits, label_list, label_merge
from wsabie.collection.labels.label_store import ExampleItem, LabelCount, find_example_items
from wsabie.collection.merge_proposals.proposals import read_proposals
from wsabie.core.json_conversion import JsonObject
from wsabie.server import collection_schemas as schemas
from wsabie.server.routing import OpenCollection, PathId, Writer, limit_results, make_router

router = make_router("labels")

Offset = Annotated[int, Query(ge=0, lt=2**31)]
ProposalLimit = Annotated[int, limit_results(20, 100)]
DeleteTags = Annotated[bool, Query(description="Also what was decided of it, on all items.")]
PictureLimit = Annotated[int, Query(ge=0, le=12, description="Pictures of each label, at most.")]
_MAX_ILLUSTRATED = 8  # labels of a proposal that have pictures


@router.get("/labels", response_model=schemas.Completions)
def complete_labels(
    collection: OpenCollection, k: Annotated[int, limit_results(20)], prefix: Annotated[str, Query(max_length=500)] = ""
) -> JsonObject:
    """List labels with a name, in any language, that begins with `prefix`."""
    return {"labels": overview.complete_label(collection, prefix, k)}


@router.get("/vocabulary")
def list_labels(
    collection: OpenCollection,
    k: Annotated[int, limit_results(100)],
    contains: Annotated[str, Query(max_length=500)] = "",
    order: label_list.Order = "items",
    offset: Offset = 0,
    parent: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> label_list.LabelPage:
    """List labels with their counts; `parent`: children of one label, or (0) roots with children."""
    return label_list.list_labels(collection, containing=contains, order=order, k=k, offset=offset, parent_id=parent)


@router.get("/labels/proposals", response_model=schemas.ProposalPage)
def list_proposals(
    collection: OpenCollection, k: ProposalLimit, offset: Offset = 0, pictures: PictureLimit = 4
) -> JsonObject:
    """List stored merge proposals with the evidence for and against each; best score first."""
    stored = read_proposals(collection)
    proposals = stored.proposals[offset : offset + k]
    groups = [(proposal.target, *proposal.labels) for proposal in proposals]
    illustrated = [label.id for group in groups for label in group[:_MAX_ILLUSTRATED]]
    thumbnails = _read_thumbnails(collection, illustrated, pictures)
    documents = []
    for proposal, group in zip(proposals, groups, strict=True):
        target, *labels = (_illustrate(label, thumbnails) for label in group)
        documents.append(proposal._asdict() | {"target": target, "labels": labels})
    return stored._asdict() | {"total": len(stored.proposals), "proposals": documents}


@router.post("/labels/merge")
def merge_labels(request: schemas.MergeRequest, collection: OpenCollection, caller: Writer) -> label_merge.MergeResult:
    """Merge labels into another, as one entry of the journal; their names become its synonyms."""
    return label_merge.merge_labels(collection, request.labels, request.target, caller.name)


@router.post("/labels/merge-exclusions")
def exclude_merge(
    request: schemas.ExclusionRequest, collection: OpenCollection, caller: Writer
) -> label_merge.ExclusionResult:
    """Exclude labels from being merged with each other: no pair of them is proposed again."""
    return label_merge.exclude_merge(collection, request.labels, caller.name)


@router.get("/labels/{label}")
def get_label(label: PathId, collection: OpenCollection) -> overview.LabelDetails:
    """Return a label with its names, parents, children, counts and the accuracy of models."""
    return overview.read_label_details(collection, label)


@router.get("/labels/{label}/neighbours", response_model=schemas.LabelNeighbours)
def list_label_neighbours(
    label: PathId, collection: OpenCollection, k: Annotated[int, limit_results(10)], pictures: PictureLimit = 1
) -> JsonObject:
    """Find the nearest labels in the space of the model in use: synonyms, translations, near misses."""
    neighbours = overview.find_label_neighbours(collection, label, k)
    thumbnails = _read_thumbnails(collection, [near.id for near, _ in neighbours], pictures)
    return {"neighbours": [_illustrate(near, thumbnails) | {"cosine": cosine} for near, cosine in neighbours]}


@router.patch("/labels/{label}")
def edit_label(
    label: PathId, request: schemas.LabelEditRequest, collection: OpenCollection, caller: Writer
) -> schemas.ChangeResult:
    """Change name, language, meaning, parent or synonyms of a label, as one entry of the journal."""
    changes = request.model_dump(exclude={"add"}) | {"add": {synonym.name: synonym.language for synonym in request.add}}
    return schemas.ChangeResult(entry=label_edits.edit_label(collection, label, caller.name, **changes))


@router.delete("/labels/{label}")
def delete_label(
    label: PathId, collection: OpenCollection, caller: Writer, with_tags: DeleteTags = False
) -> label_edits.DeletionResult:
    """Delete a label and its synonyms, as one entry of the journal.

    A label that items have is deleted only together with these tags (parameter with_tags).
    """
    return label_edits.delete_labels(collection, [label], caller.name, with_tags=with_tags)


def _read_thumbnails(collection: Collection, labels: Sequence[int], k: int) -> dict[int, list[ExampleItem]]:
    with begin_read(collection.engine) as connection:
        return find_example_items(connection, dict.fromkeys(labels), k) if k else {}


def _illustrate(label: LabelCount, thumbnails: dict[int, list[ExampleItem]]) -> JsonObject:
    return vars(label) | {"pictures": thumbnails.get(label.id, [])}
