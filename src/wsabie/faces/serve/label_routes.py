"""Routes of labels: one in full, those near to it, changes, and proposals to merge."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from wsabie.catalogue import editing, one_label, proposing, tidying
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.faces.serve import label_answers as told
from wsabie.faces.serve.context import API, Open, Reader, The, Writer, within
from wsabie.faces.serve.parameters import StrictRoute

router = APIRouter(prefix=API, tags=["labels"], route_class=StrictRoute)

Id = Annotated[int, Path(ge=1, lt=2**63)]
Few = Annotated[int, Query(ge=0, le=12, description="Pictures of each label, at most.")]
_LISTS = ("above", "below", "apart")
_PICTURED = 8  # labels of a proposal that come with pictures


@router.get("/labels/proposals")
def proposals(
    at: Open,
    the: The,
    _: Reader,
    k: Annotated[int, Query(ge=1, le=100)] = 20,
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    pictures: Few = 4,
) -> told.ProposalsSeen:
    """Labels that could be one, as found when somebody looked, with what speaks for and against it; surest first."""
    found = proposing.current(at)
    shown = found.proposals[after : after + within(k, the)]
    seen = _pictures(at, [n.id for one in shown for n in (one.into, *one.labels)[:_PICTURED]], pictures)
    return told.ProposalsSeen(
        made=found.kept and found.kept.made,
        since=found.since,
        other_model=found.other_model,
        not_asked=found.kept.not_asked if found.kept else {},
        total=len(found.proposals),
        proposals=[
            told.ProposalSeen(
                into=_pictured(one.into, seen),
                labels=[_pictured(label, seen) for label in one.labels],
                score=one.score,
                why=[
                    told.Reason(
                        one=reason.one,
                        other=reason.other,
                        score=reason.score,
                        evidence=[told.Evidence(**each._asdict()) for each in reason.evidence],
                    )
                    for reason in one.why
                ],
            )
            for one in shown
        ],
    )


@router.post("/labels/merge")
def merge(asked: told.MergeAsked, at: Open, who: Writer) -> told.Merged:
    """Let labels go into another, as one entry of the journal; their names find it from now on."""
    done = editing.merge(at, asked.labels, asked.into, who.name)
    return told.Merged(entry=done.entry, moved=done.moved, together=done.together)


@router.post("/labels/apart")
def apart(asked: told.ApartAsked, at: Open, who: Writer) -> told.KeptApart:
    """Remember that labels are not to be merged with one another: none of these is proposed again."""
    done = editing.keep_apart(at, asked.labels, who.name)
    return told.KeptApart(entry=done.entry, pairs=done.pairs)


@router.get("/labels/{label}")
def whole(label: Id, at: Open, _: Reader) -> told.LabelOpen:
    """A label with its names, the labels above and below it, how often it is used, and how often models are right."""
    found = one_label.whole(at, label)
    lists = {name: [told.Other(**one._asdict()) for one in getattr(found, name)] for name in _LISTS}
    fields: dict[str, Any] = found.label._asdict() | lists
    names = [told.Synonym(**one._asdict()) for one in found.names]
    return told.LabelOpen(**fields, names=names, waiting=found.waiting, held_out=_held_out(found.held_out))


@router.get("/labels/{label}/neighbours")
def neighbours(
    label: Id, at: Open, the: The, _: Reader, k: Annotated[int, Query(ge=1)] = 10, pictures: Few = 1
) -> told.Neighbours:
    """The labels nearest to a label in the space of the model in use: synonyms, translations, near misses."""
    found = one_label.near(at, label, within(k, the))
    seen = _pictures(at, [one.label.id for one in found], pictures)
    near = [told.Near(**_pictured(one.label, seen).model_dump(), cosine=one.cosine) for one in found]
    return told.Neighbours(neighbours=near)


@router.patch("/labels/{label}")
def edit(label: Id, asked: told.LabelEdited, at: Open, who: Writer) -> told.Changed:
    """Change a label's name (the old one still finds it), language, meaning, parent or other names, as one entry."""
    new = asked.model_dump(exclude={"add"}) | {"add": {one.name: one.language for one in asked.add}}
    return told.Changed(entry=editing.edit(at, label, who.name, **new))


@router.delete("/labels/{label}")
def delete(
    label: Id,
    at: Open,
    who: Writer,
    with_tags: Annotated[bool, Query(description="Also what was decided of it, on all items.")] = False,
) -> told.LabelDeleted:
    """Remove a label and its other names, as one entry of the journal; refused where items have it, unless these tags
    go too."""
    done = editing.delete(at, [label], who.name, with_tags=with_tags)
    return told.LabelDeleted(entry=done.entry, tags=done.tags, children=done.children)


def _held_out(found: one_label.HeldOut | None) -> told.HeldOut | None:
    if found is None:
        return None
    return told.HeldOut(**found._asdict() | {"limits": [told.Limit(**one._asdict()) for one in found.limits]})


def _pictures(at: Collection, labels: Sequence[int], k: int) -> dict[int, list[told.Picture]]:
    with reading(at.engine) as connection:
        found = one_label.examples(connection, dict.fromkeys(labels), k) if k else {}
    return {label: [told.Picture(**one._asdict()) for one in shown] for label, shown in found.items()}


def _pictured(label: tidying.Named, seen: dict[int, list[told.Picture]]) -> told.Pictured:
    return told.Pictured(**label._asdict(), pictures=seen.get(label.id, []))
