"""Files of knowledge: a cut of WordNet, Prolog lists, Open Images' hierarchy, translations, pairs."""

import json
import logging
import shutil
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
from wsabie.io.vocabulary.knowledge_graphs import iterate_relation_pairs, read_knowledge_graph, read_label_table
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

CUT = Path(__file__).parents[1] / "wordnet_cut"
RELATIONS = ("is-a", "instance-of", "part-of", "member-of", "substance-of")
TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [
        {
            "LabelName": "/m/0k4j",
            "Part": [{"LabelName": "/m/083wq"}, {"LabelName": "/m/01mqdt"}],
            "Subcategory": [{"LabelName": "/m/0pg52"}],
        },
        {"LabelName": "/m/0199g", "Part": [{"LabelName": "/m/083wq", "Part": [{"LabelName": "/m/0h9mv"}]}]},
    ],
}


@pytest.fixture(scope="module")
def wordnet() -> KnowledgeGraph:
    return read_knowledge_graph(CUT)


def write_file(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_synset_has_names_gloss_and_relations(wordnet):
    car = wordnet.concept("n02958343")
    assert car.names == ("car", "auto", "automobile", "machine", "motorcar")
    assert car.languages == ("en",) * 5
    assert car.gloss.startswith("a motor vehicle with four wheels; usually propelled by an internal combustion engine")
    assert wordnet.related("n02958343", "is-a") == ["n03791235"]
    assert wordnet.related("n02958343", "has-kind") == ["n02701002", "n02930766"]
    assert [wordnet.name(part) for part in wordnet.related("n04576211", "has-part")] == ["wheel"]
    assert wordnet.related("n02974003", "part-of") == ["n03791235"]
    assert wordnet.related("n01440764", "member-of") == ["n01440655"]
    assert wordnet.related("n11509066", "^substance-of") == []
    assert (
        wordnet.related("n15043763", "has-substance") == ["n11509066"] == wordnet.related("n15043763", "^substance-of")
    )
    assert wordnet.name(wordnet.related(wordnet.find_senses("Paris")[0], "instance-of")[0]) == "n08691669"
    assert wordnet.related("v02039431", "is-a") != []


def test_senses_follow_the_index_nouns_first(wordnet):
    assert wordnet.find_senses("Car") == ["n02958343", "n02959942", "n02960501", "n02960352"]
    assert wordnet.find_senses("dolphin") == ["n02581957", "n02068974"]
    assert wordnet.find_senses("fender") == ["n02911158"]
    assert wordnet.find_senses("bank") == ["n09213565", "n08420278", "v02039431", "v01587723"]
    assert wordnet.find_senses("wheel")[:2] == ["n04574999", "n02834778"]
    assert wordnet.find_senses("toothed_whale") == wordnet.find_senses("n02066707") == ["n02066707"]
    assert wordnet.find_senses("unicorn") == []


def test_missing_index_is_reported(tmp_path, caplog):
    shutil.copy(CUT / "data.noun", tmp_path)
    with caplog.at_level(logging.WARNING, "wsabie"):
        graph = read_knowledge_graph(tmp_path / "data.noun")
    assert "no index" in caplog.text
    assert graph.find_senses("dolphin") == ["n02068974", "n02581957"]


def test_relation_pairs_are_iterated_in_order(wordnet):
    for relation in RELATIONS:
        assert list(iterate_relation_pairs(CUT, relation)) == list(wordnet.pairs(relation)) != []
    assert list(iterate_relation_pairs(CUT, "has-part")) == list(wordnet.pairs("has-part"))
    assert sorted([*wordnet.pairs("is-a"), *wordnet.pairs("instance-of")]) == sorted(
        [*read_hierarchy(CUT / "data.noun").pairs(), *read_hierarchy(CUT / "data.verb").pairs()]
    )
    assert list(wordnet.pairs("has-part")) == [(container, part) for part, container in wordnet.pairs("part-of")]


def test_labels_are_matched_to_concepts(wordnet):
    labels = ["taxi", "mountain bike", "car wheel", "airbrake", "whale", "dolphin (n02068974)", "toaster", "vehicle"]
    matched = match_labels(wordnet, labels)
    assert matched.missing == ["toaster"]
    assert matched.counts == {"name": 6, "id": 1, "missing": 1}
    expansion = matched.expand("wheeled vehicle")
    assert [labels[match.position] for match in expansion.kinds] == ["mountain bike"]  # what is between was not cut out
    expansion = matched.expand("motor vehicle")
    assert [(labels[match.position], match.steps) for match in expansion.kinds] == [("taxi", 2)]
    assert [(labels[match.position], match.via) for match in expansion.parts] == [
        ("airbrake", "n03791235"), ("car wheel", "n03791235"),
    ]  # fmt: skip
    assert [labels[match.position] for match in matched.expand("taxi", inherit=True).parts] == ["airbrake", "car wheel"]
    assert set(matched.pairs("part-of", inherit=True)) == {(2, 0), (3, 0)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("car n 2 0 1 1 02958343\n", "fewer"),
        ("car n x 0 1 1 02958343\n", ""),
        ("car\n", ""),
        ("car n 1 0 1 1 0295834\n", ""),
        ("car n 1 9999999 1 1 02958343\n", ""),
    ],
)
def test_broken_index_is_named(text, sentence, tmp_path):
    shutil.copy(CUT / "data.noun", tmp_path)
    write_file(tmp_path, "index.noun", text)
    with pytest.raises(InputError, match=r"index\.noun:1 is not a line of WordNet's index"):
        read_knowledge_graph(tmp_path)


def test_prolog_lists_and_words_are_read(tmp_path):
    write_file(tmp_path, "wn_mp.pl", "mp(100000300,100000200).\n")
    write_file(tmp_path, "wn_hyp.pl", "hyp(100000400,100000200).\n")
    write_file(tmp_path, "words.txt", "n00000300\twheel\nn00000200\tcar, auto\n")
    graph = read_knowledge_graph(tmp_path)
    assert graph.relations == {"is-a": 1, "part-of": 1}
    assert [graph.name(part) for part in graph.related(graph.find_senses("auto")[0], "has-part")] == ["wheel"]
    assert list(iterate_relation_pairs(tmp_path, "part-of")) == [("n00000300", "n00000200")]
    with pytest.raises(InputError, match="hold no is-a pair"):
        read_hierarchy(tmp_path / "wn_mp.pl")


def test_open_images_hierarchy_is_read(tmp_path):
    file = write_file(tmp_path, "bbox_labels_600_hierarchy.json", json.dumps(TREE))
    write_file(tmp_path, "class-descriptions-boxable.csv", "/m/0k4j,Car\n/m/083wq,Wheel\n/m/0pg52,Taxi\n/m/x,Unused\n")
    graph = read_knowledge_graph(file)
    assert graph.relations == {"is-a": 3, "part-of": 4}
    assert graph.related("/m/083wq", "part-of") == ["/m/0k4j", "/m/0199g"]
    assert graph.related(graph.find_senses("wheel")[0], "has-part") == ["/m/0h9mv"]
    assert graph.find_senses("unused") == []
    matched = match_labels(graph, ["Taxi", "Wheel", "/m/0bl9f"])
    assert matched.expand("Car").parts[0].position == 1
    assert list(iterate_relation_pairs(file, "part-of")) == list(graph.pairs("part-of"))
    assert read_hierarchy(file).parents("taxi") == ["/m/0k4j"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"LabelName": "/m/1", "Subcategory": [{"Nothing": 1}]}', "class without a LabelName"),
        ('{"LabelName": "/m/1", "Subcategory": {"LabelName": 2}}', "is not a class"),
        ('{"LabelName": "/m/1", "Subcategory": [', "is not JSON"),
        ('{"LabelName": "/m/1", "Part": ' + "[" * 100_000, "is not JSON"),
        ('{"LabelName": 3, "Part": [{"LabelName": "a"}]}', "class without a LabelName"),
    ],
)
def test_invalid_hierarchies_are_refused(text, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        read_knowledge_graph(write_file(tmp_path, "tree.json", text))


def test_translations_complete_wordnet(tmp_path):
    file = write_file(
        tmp_path, "wn-data-fra.tab",
        "# Wolf\tfra\thttp://wolf\tCeCILL-C\n02958343-n\tlemma\tvoiture\n02958343-n\tfra:lemma\tautomobile\n"
        "02958343-n\tfra:def\t0\tvéhicule\n",
    )  # fmt: skip
    graph = read_knowledge_graph(CUT, file)
    assert graph.find_senses("Voiture") == ["n02958343"]
    assert graph.concept("n02958343").names[-2:] == ("voiture", "automobile")
    assert graph.concept("n02958343").languages[-2:] == ("fra", "fra")
    assert match_labels(graph, ["voiture"]).concepts == ["n02958343"]
    write_file(tmp_path, "wn-data-fra.tab", file.read_text() + "voiture\n")
    with pytest.raises(InputError, match=r"wn-data-fra\.tab:5 is not a synset"):
        read_knowledge_graph(file)


def test_pair_list_states_a_relation(tmp_path):
    file = write_file(tmp_path, "married.tsv", "id\tname\nAda\tWilliam\nbroken\nMarie\tPierre\t1\n")
    rejects = Rejects()
    graph = read_knowledge_graph(relations={"married-to": file}, rejects=rejects)
    assert list(graph.pairs("^married-to")) == [("William", "Ada"), ("Pierre", "Marie")]
    assert rejects.counts == {"line without two or three columns": 1}
    assert next(iter(read_knowledge_graph(relations={"has-part": file}).pairs("part-of"))) == ("William", "Ada")
    with pytest.raises(InputError, match="a relation cannot be called ''"):
        read_knowledge_graph(relations={"": file})
    with pytest.raises(InputError, match="there are married-to"):
        graph.related("ada", "part-of")


def test_label_table_overrides_matching(wordnet, tmp_path):
    file = write_file(
        tmp_path, "table.tsv", "label\tid\tgloss\n# by hand\nDolphin\tn02068974\ttoothed\nvehicle\t-\ncar\t\n"
    )
    matched = match_labels(wordnet, ["dolphin", "vehicle", "car"], read_label_table(file))
    assert matched.concepts == ["n02068974", None, "n02958343"]
    assert matched.methods == ["table", "table", "name"]
    assert matched.missing == []
    with pytest.raises(InputError, match="'n99999999', which is not a known concept"):
        match_labels(wordnet, ["a"], {"a": "n99999999"})
    with pytest.raises(InputError, match=r"table\.tsv:1 has no label"):
        read_label_table(write_file(tmp_path, "table.tsv", "\tn02068974\n"))
    file.write_bytes(b"\xff\tn02068974\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_label_table(file)


def test_matched_labels_have_siblings_and_hops(wordnet):
    matched = match_labels(wordnet, ["taxi", "ambulance", "car", "unknown"])
    kinds = wordnet.hierarchy(names=False)
    assert kinds.find_siblings(matched.ids()).siblings().tolist() == [1, 1, 0, 0]
    assert kinds.find_distances(matched.ids()).compute_hops([0], 3).tolist()[:3] == [0, 2, 1]
    assert wordnet.hierarchy().parents("cab") == ["n02958343"]


def test_missing_files_and_concepts_are_reported(tmp_path):
    with pytest.raises(InputError, match=r"holds no data\.noun"):
        read_knowledge_graph(tmp_path)
    with pytest.raises(InputError, match="there is no file"):
        read_knowledge_graph(tmp_path / "none")
    with pytest.raises(InputError, match="nothing is known"):
        read_knowledge_graph()
    with pytest.raises(KeyError, match="did you mean 'dolphin'"):
        match_labels(read_knowledge_graph(CUT), []).expand("dolfin")


@example(',"Part":[{"LabelName":"a"}]}')
@given(st.lists(st.sampled_from(['{"LabelName":"a"', ',"Part":[', "]", "}", "{", '"', "1", "null", "\n"])).map("".join))
def test_any_tree_gives_knowledge_or_one_sentence(tmp_path_factory, result_or_sentence, text):
    file = write_file(tmp_path_factory.getbasetemp(), "tree.json", '{"LabelName":"r"' + text)
    graph = result_or_sentence(read_knowledge_graph, file)
    if graph is not None:
        assert "r" in graph
        assert set(graph.pairs("part-of")) == ({("a", "r")} if '"a"' in text else set())


@pytest.mark.data
def test_prolog_relations_are_read(data):
    graph = read_knowledge_graph(data / "wordnet_partof", data / "imagenet_synsets" / "words.txt")
    assert graph.relations == {
        "is-a": 89_089, "instance-of": 8_577, "part-of": 9_097, "member-of": 12_293, "substance-of": 797,
    }  # fmt: skip
    labels = (data / "imagenet_synsets" / "ilsvrc2012_1k.txt").read_text().split()
    matched = match_labels(graph, labels)
    expansion = matched.expand("wheeled vehicle")
    assert (len(expansion.kinds), len(expansion.parts)) == (44, 10)
    assert len(list(matched.pairs("part-of"))) == 5
    assert len(list(matched.pairs("part-of", inherit=True))) == 88
    assert len(list(matched.pairs("is-a"))) == 0


@pytest.mark.data
def test_open_images_boxes_are_read(data):
    graph = read_knowledge_graph(data / "openimages_labels" / "bbox_hierarchy.json")
    assert graph.relations == {"is-a": 668}
    assert "Teddy bear" in [graph.name(kind) for kind in graph.related("Toy", "has-kind")]


def test_complete_wordnet_is_read():
    folder = Path("/usr/share/wordnet")
    if not (folder / "data.noun").is_file():
        pytest.skip("WordNet (Debian's wordnet-base) is not installed")
    graph = read_knowledge_graph(folder)
    assert (len(graph), graph.relations["part-of"], graph.relations["is-a"]) == (95_882, 9_097, 89_089)
