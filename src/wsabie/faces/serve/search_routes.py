"""Routes of search: by words, by a picture that is sent, by a region of one."""

from typing import Annotated

from fastapi import APIRouter, Query, UploadFile

from wsabie.catalogue import searching
from wsabie.catalogue.database import one_state
from wsabie.catalogue.points import nearest_items
from wsabie.faces.serve import collection_answers as told
from wsabie.faces.serve.asking import rank, region_of, row_of
from wsabie.faces.serve.context import API, Open, Reader, The, within
from wsabie.faces.serve.model_routes import Region, picture_of
from wsabie.faces.serve.seen import found, found_in_groups

router = APIRouter(prefix=API, tags=["search"])

Few = Annotated[int, Query(ge=1, description="Items, at most.")]


@router.get("/search")
def by_words(
    at: Open, the: The, _: Reader, text: Annotated[str, Query(max_length=1000)], k: Few = 24
) -> told.SearchAnswer:
    """Find items by labels in any language, `-label` for what they must not be; related labels after them."""
    with one_state(at.engine):
        answer = searching.search(at, text, within(k, the), the.meanings)
        shown = found_in_groups(at, [group.hits for group in answer.groups])
    groups = [
        told.GroupSeen(labels=group.labels, why=group.why, score=group.score, items=items)
        for group, items in zip(answer.groups, shown, strict=True)
        if items
    ]
    meaning = answer.meaning
    return told.SearchAnswer(
        wanted=list(meaning.wanted.values()),
        unwanted=list(meaning.unwanted.values()),
        said=meaning.said,
        groups=groups,
    )


@router.post("/search/picture")
def by_picture(
    file: UploadFile, at: Open, the: The, _: Reader, k: Few = 24, region: Region = None
) -> told.FoundByPicture:
    """Find items like a picture that is sent, or like a region of it, and what it shows."""
    version = the.model.current()
    row = row_of(version.annotator, region_of(picture_of(file, the), region))
    labels = rank(version, row, min(10, within(k, the)))[0].labels
    point = version.annotator.model.transform(row)[0]
    near = nearest_items(at, point, k, model=version.opened.number if version.opened else None)
    return told.FoundByPicture(items=found(at, [(one.item, None, one.score) for one in near]), labels=labels)
