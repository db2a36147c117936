"""Routes of labels: details, neighbours, changes and merge proposals."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_edits
from wsabie.collection.merge_proposals import proposal_search, proposal_store
from wsabie.collection.overview import label_details
from wsabie.server.dependencies import (
    API,
    OpenCollection,
    ReaderDependency,
    ServiceContextDependency,
    WriterDependency,
    check_result_count,
)
from wsabie.server.routes.request_validation import StrictRoute
from wsabie.server.schemas import label_schemas as schemas

router = APIRouter(prefix=API, tags=["labels"], route_class=StrictRoute)

Id = Annotated[int, Path(ge=1, lt=2**63)]
PictureLimit = Annotated[int, Query(ge=0, le=12, description="Pictures of each label, at most.")]
_RELATION_FIELDS = ("above", "below", "apart")
_MAX_ILLUSTRATED = 8  # labels of a proposal that have pictures


@router.get("/labels/proposals")
def list_proposals(
    collection: OpenCollection,
    context: ServiceContextDependency,
    _: ReaderDependency,
    k: Annotated[int, Query(ge=1, le=100)] = 20,
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    pictures: PictureLimit = 4,
) -> schemas.ProposalPage:
    """List stored merge proposals with the evidence for and against each; best score first."""
    stored = proposal_store.read_proposals(collection)
    proposals = stored.proposals[after : after + check_result_count(k, context)]
    illustrated = [label.id for proposal in proposals for label in (proposal.into, *proposal.labels)[:_MAX_ILLUSTRATED]]
    thumbnails = _read_thumbnails(collection, illustrated, pictures)
    return schemas.ProposalPage(
        made=stored.kept and stored.kept.made,
        since=stored.since,
        other_model=stored.other_model,
        not_asked=stored.kept.not_asked if stored.kept else {},
        total=len(stored.proposals),
        proposals=[
            schemas.MergeProposal(
                into=_illustrate_label(proposal.into, thumbnails),
                labels=[_illustrate_label(label, thumbnails) for label in proposal.labels],
                score=proposal.score,
                why=[
                    schemas.MergeReason(
                        one=reason.one,
                        other=reason.other,
                        score=reason.score,
                        evidence=[schemas.MergeEvidence(**evidence._asdict()) for evidence in reason.evidence],
                    )
                    for reason in proposal.why
                ],
            )
            for proposal in proposals
        ],
    )


@router.post("/labels/merge")
def merge_labels(
    request: schemas.MergeRequest, collection: OpenCollection, caller: WriterDependency
) -> schemas.MergeResult:
    """Merge labels into another, as one entry of the journal; their names become its synonyms."""
    result = label_edits.merge_labels(collection, request.labels, request.into, caller.name)
    return schemas.MergeResult(entry=result.entry, moved=result.moved, together=result.together)


@router.post("/labels/apart")
def exclude_merge(
    request: schemas.ExclusionRequest, collection: OpenCollection, caller: WriterDependency
) -> schemas.ExclusionResult:
    """Exclude labels from being merged with each other: no pair of them is proposed again."""
    result = label_edits.exclude_merge(collection, request.labels, caller.name)
    return schemas.ExclusionResult(entry=result.entry, pairs=result.pairs)


@router.get("/labels/{label}")
def get_label(label: Id, collection: OpenCollection, _: ReaderDependency) -> schemas.LabelDetails:
    """Return a label with its names, parents, children, counts and the accuracy of models."""
    details = label_details.read_label_details(collection, label)
    lists = {
        name: [schemas.LabelReference(**label._asdict()) for label in getattr(details, name)]
        for name in _RELATION_FIELDS
    }
    fields: dict[str, Any] = details.label._asdict() | lists
    names = [schemas.LabelSynonym(**synonym._asdict()) for synonym in details.names]
    return schemas.LabelDetails(
        **fields, names=names, waiting=details.waiting, held_out=_convert_evaluation(details.held_out)
    )


@router.get("/labels/{label}/neighbours")
def list_label_neighbours(
    label: Id,
    collection: OpenCollection,
    context: ServiceContextDependency,
    _: ReaderDependency,
    k: Annotated[int, Query(ge=1)] = 10,
    pictures: PictureLimit = 1,
) -> schemas.LabelNeighbours:
    """Find the nearest labels in the space of the model in use: synonyms, translations, near misses."""
    neighbours = label_details.find_label_neighbours(collection, label, check_result_count(k, context))
    thumbnails = _read_thumbnails(collection, [neighbour.label.id for neighbour in neighbours], pictures)
    results = [
        schemas.LabelNeighbour(**_illustrate_label(neighbour.label, thumbnails).model_dump(), cosine=neighbour.cosine)
        for neighbour in neighbours
    ]
    return schemas.LabelNeighbours(neighbours=results)


@router.patch("/labels/{label}")
def edit_label(
    label: Id, request: schemas.LabelEditRequest, collection: OpenCollection, caller: WriterDependency
) -> schemas.ChangeResult:
    """Change name, language, meaning, parent or synonyms of a label, as one entry of the journal."""
    changes = request.model_dump(exclude={"add"}) | {"add": {synonym.name: synonym.language for synonym in request.add}}
    return schemas.ChangeResult(entry=label_edits.edit_label(collection, label, caller.name, **changes))


@router.delete("/labels/{label}")
def delete_label(
    label: Id,
    collection: OpenCollection,
    caller: WriterDependency,
    with_tags: Annotated[bool, Query(description="Also what was decided of it, on all items.")] = False,
) -> schemas.DeletionResult:
    """Delete a label and its synonyms, as one entry of the journal.

    A label that items have is deleted only together with these tags (parameter with_tags).
    """
    result = label_edits.delete_labels(collection, [label], caller.name, with_tags=with_tags)
    return schemas.DeletionResult(entry=result.entry, tags=result.tags, children=result.children)


def _convert_evaluation(evaluation: label_details.LabelEvaluation | None) -> schemas.LabelEvaluation | None:
    if evaluation is None:
        return None
    return schemas.LabelEvaluation(
        **evaluation._asdict()
        | {"limits": [schemas.LabelThreshold(**threshold._asdict()) for threshold in evaluation.limits]}
    )


def _read_thumbnails(collection: Collection, labels: Sequence[int], k: int) -> dict[int, list[schemas.ItemThumbnail]]:
    with begin_read(collection.engine) as connection:
        examples = label_details.find_example_items(connection, dict.fromkeys(labels), k) if k else {}
    return {label: [schemas.ItemThumbnail(**item._asdict()) for item in items] for label, items in examples.items()}


def _illustrate_label(
    label: proposal_search.LabelCount, thumbnails: dict[int, list[schemas.ItemThumbnail]]
) -> schemas.IllustratedLabel:
    return schemas.IllustratedLabel(**label._asdict(), pictures=thumbnails.get(label.id, []))
