"""Names of folders: those that are labels, and those that never are."""

import pytest

from wsabie.vocabulary.folder_labels import FolderLabels, is_date, is_never_label


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("2020/05/dog/1.jpg", ("dog",)),
        ("2020/2020-05-17/1.jpg", ()),
        ("1999_12/sea/1.jpg", ("sea",)),
        ("2019/05 - May/31/1.jpg", ()),
        ("2019/märz/gull/1.jpg", ("gull",)),
        ("2019/maria/1.jpg", ("maria",)),
        ("2019/dog/05/1.jpg", ("dog", "05")),
        ("20200517/cat/1.jpg", ("cat",)),
        ("images/dog/1.jpg", ("dog",)),
        ("Photos/Inbox/1.jpg", ()),
        ("New Folder/cat/1.jpg", ("cat",)),
        ("DCIM/100CANON/1.jpg", ()),
        ("train/images/dog/1.jpg", ("dog",)),
        ("cat/@eaDir/1.jpg", ("cat",)),
        ("unsorted/to-sort/1.jpg", ()),
        ("07/1.jpg", ("07",)),
        ("camera/1.jpg", ("camera",)),
        ("1.jpg", ()),
    ],
)
def test_what_holds_everything_is_no_label(path: str, labels: tuple[str, ...]) -> None:
    assert FolderLabels([path, "other/1.jpg"]).get_labels(path) == labels


def test_train_is_a_label_beside_other_vehicles() -> None:
    vehicles = FolderLabels([f"{name}/1.jpg" for name in ("train", "car", "bus", "aeroplane", "bicycle", "boat")])
    assert [vehicles.get_labels(f"{name}/1.jpg") for name in ("train", "car")] == [("train",), ("car",)]
    sides = FolderLabels(["train/car/1.jpg", "val/car/2.jpg", "car/3.jpg"])
    assert sides.get_labels("train/car/1.jpg") == ("car",)
    assert is_never_label("Train")
    assert not is_never_label("dog")


def test_folders_tell_files_apart_by_labels_alone() -> None:
    for paths, can_distinguish in (
        (["2020/1.jpg", "2021/2.jpg"], False),
        (["images/1.jpg", "images/2.jpg"], False),
        (["dog/1.jpg", "dog/2.jpg"], False),
        (["dog/1.jpg", "inbox/2.jpg"], True),
        (["dog/1.jpg"], True),
        ([], False),
    ):
        assert FolderLabels(paths).can_distinguish is can_distinguish, paths


def test_months_lie_in_a_year_that_holds_the_whole_folder_too() -> None:
    assert FolderLabels(["05/1.jpg", "06/2.jpg"], "2020").get_labels("05/1.jpg") == ()
    assert FolderLabels(["05/1.jpg", "2020/2.jpg"]).get_labels("05/1.jpg") == ()
    assert is_date("05", inside=True)
    assert not is_date("05")
    assert is_date("May 2021")
    assert is_date("märz_2020")
    assert not is_date("Rom 2021")
    assert is_never_label("fold3")


def test_names_that_are_never_labels_are_taken_where_there_are_no_others() -> None:
    labels = FolderLabels(["2020/1.jpg", "2021/2.jpg"], keep_any=True)
    assert labels.get_labels("2021/2.jpg") == ("2021",)
    assert labels.list_other_names() == []
    mixed = FolderLabels(["2020/dog/1.jpg", "inbox/2.jpg"], keep_any=True)
    assert (mixed.get_labels("inbox/2.jpg"), mixed.list_other_names()) == ((), ["2020", "inbox"])
