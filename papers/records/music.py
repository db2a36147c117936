"""Parts II and III of the 2012 slides: music similarity and document similarity."""

from papers import record_charts
from papers.claims import OrderingClaim
from papers.data.music_data import SONGS, SOUNDS
from papers.record import PaperRecord, PublishedFigures, RecordEntry
from papers.records.slides import DOCUMENT
from papers.runs import document_search, feature_comparison, label_examples, music_tasks
from papers.runs.best_space import COSINE, SPACE, SPACES

_DIM = {"dim": 400}
_PROCEDURE = (
    "Sounds are described by words of coefficients (mfcc), and with words of auditory images beside (mfcc+sai), "
    "learned from the training side; the tags are the names of all kinds that the sounds have."
)
_SINGLE_CLASSIFIERS_SUFFICE = "a classifier of each tag alone does as well where tags are few and have rows enough"
_FEATURES_SUFFICE = "what tells these sounds apart is in the coefficients already, and more numbers overfit few sounds"
_FILLED = "few tags fill few dimensions"
_SHARED = "the tasks here ask for the same names, so that one teaches little that another does not"
_COSINE = "tracks of one artist have much the same words, which a cosine sees without learning"
_ARTIST_CLASSIFIERS_SUFFICE = "artists are few and have rows enough for a classifier of each"
_BLOCK = "the positives of a block are negatives enough where documents are few"
_BAG = "few pairs teach a map of many words less than its weights by frequency say already"

_MFCC, _COMBINED = (100, 200, 300, 400), (100, 200, 300, 400, 600, 800)
_AT_1 = tuple(f"{task} p@1" for task in (music_tasks.ARTIST, music_tasks.SONGS, music_tasks.SIMILAR))
_SINGLE_TASK, _ALL_TASKS, _LARGE = (
    "Wsabie, single task (d = 100)",
    "Wsabie, all tasks (d = 100)",
    "Wsabie, all tasks (d = 400)",
)
_TFIDF, _BATCH, _SAMPLED = "tf-idf cosine", "Space, in-batch negatives", "Space, 256 sampled negatives"

RECORDS = (
    PaperRecord(
        "tagatune",
        "Tags of sounds",
        DOCUMENT,
        'Slide "Results on TagATune", summary',
        f"{_PROCEDURE} Every model chooses among three settings on the validation side.",
        feature_comparison.compare_audio_features,
        (
            PublishedFigures(
                "TagATune",
                ("p@3", "p@6", "p@9", "p@12", "p@15"),
                {
                    "Zhi": (0.224, 0.192, 0.168, 0.146, 0.127),
                    "Manzagol": (0.255, 0.194, 0.159, 0.136, 0.119),
                    "Mandel": (0.323, 0.245, 0.197, 0.167, 0.145),
                    "Marsyas": (0.440, 0.314, 0.244, 0.201, 0.172),
                    "1-vs-rest, mfcc": (0.349, 0.244, 0.193, 0.154, 0.136),
                    "Wsabie, mfcc": (0.382, 0.275, 0.219, 0.182, 0.157),
                    "1-vs-rest, mfcc+sai": (0.362, 0.261, 0.221, 0.167, 0.151),
                    "Wsabie, mfcc+sai": (0.473, 0.330, 0.256, 0.211, 0.179),
                },
            ),
        ),
        wrong=(
            "Zhi, Manzagol, Mandel and Marsyas are entrants of the competition, which are not run here.",
            "The collection had 16,289 clips for training, 6,498 for the test, and 160 tags.",
            "The features of Mandel and Marsyas are others: cepstral and temporal, spectral and mfcc.",
        ),
        claims=(
            OrderingClaim("Wsabie, mfcc > 1-vs-rest, mfcc in p@3", _SINGLE_CLASSIFIERS_SUFFICE),
            OrderingClaim("Wsabie, mfcc+sai > 1-vs-rest, mfcc+sai in p@3", _SINGLE_CLASSIFIERS_SUFFICE),
            OrderingClaim("1-vs-rest, mfcc+sai > 1-vs-rest, mfcc in p@3", _FEATURES_SUFFICE),
            OrderingClaim("Wsabie, mfcc+sai > Wsabie, mfcc in p@3", _FEATURES_SUFFICE),
        ),
        entries=tuple(
            entry
            for features in feature_comparison.SOUNDS
            for entry in (
                RecordEntry(f"1-vs-rest, {features}", "one-vs-rest-hinge"),
                RecordEntry(f"Wsabie, {features}", "wsabie", _DIM),
            )
        ),
        tuned=True,
        opening=SOUNDS,
    ),
    PaperRecord(
        "tagatune-dims",
        "Dimensions of the space of sounds and tags",
        DOCUMENT,
        'Slide "Results on TagATune", embedding size',
        f"{_PROCEDURE} One model for each number of dimensions, everything else alike.",
        feature_comparison.compare_audio_features,
        (
            PublishedFigures(
                "TagATune",
                ("p@3", "p@6", "p@9", "p@12"),
                {
                    "d = 100, mfcc": (0.371, 0.267, 0.212, 0.177),
                    "d = 200, mfcc": (0.379, 0.273, 0.216, 0.180),
                    "d = 300, mfcc": (0.381, 0.273, 0.217, 0.181),
                    "d = 400, mfcc": (0.382, 0.275, 0.219, 0.182),
                    "d = 100, mfcc+sai": (0.452, 0.319, 0.248, 0.205),
                    "d = 200, mfcc+sai": (0.465, 0.325, 0.252, 0.208),
                    "d = 300, mfcc+sai": (0.470, 0.329, 0.255, 0.209),
                    "d = 400, mfcc+sai": (0.473, 0.33, 0.256, 0.211),
                    "d = 600, mfcc+sai": (0.477, 0.334, 0.259, 0.212),
                    "d = 800, mfcc+sai": (0.476, 0.334, 0.259, 0.212),
                },
            ),
        ),
        wrong=('The slide calls the figures "Test Error metrics"; they are precisions.',),
        claims=(
            OrderingClaim("d = 400, mfcc > d = 100, mfcc in p@3", _FILLED),
            OrderingClaim("d = 400, mfcc+sai > d = 100, mfcc+sai in p@3", _FILLED),
            OrderingClaim("d = 800, mfcc+sai > d = 400, mfcc+sai in p@3", _FILLED),
        ),
        entries=tuple(
            RecordEntry(f"d = {dim}, {features}", "wsabie", {"dim": dim})
            for features, dims in (("mfcc", _MFCC), ("mfcc+sai", _COMBINED))
            for dim in dims
        ),
        opening=SOUNDS,
        chart=record_charts.draw_by_feature_dimension,
    ),
    PaperRecord(
        "tagatune-neighbours",
        "Nearest tags in the space",
        DOCUMENT,
        'Slide "Results on TagATune", related tags',
        "A model of 400 dimensions is trained on mfcc+sai, and the tags nearest (cosine) to those of the slide, as far "
        "as the data have them, or to the most frequent tags of each kind are listed.",
        label_examples.list_label_neighbours,
        (
            PublishedFigures(
                "TagATune",
                ("nearest",),
                {
                    "female opera": ("opera, operatic, woman, male opera, female singer",),
                    "hip hop": ("rap, talking, funky, punk, funk",),
                    "middle eastern": ("eastern, sitar, indian, oriental, india",),
                    "flute": ("flutes, wind, clarinet, oboe, horn",),
                    "techno": ("electronic, dance, synth, electro, trance",),
                    "ambient": ("new age, spacey, synth, electronic, slow",),
                    "celtic": ("irish, fiddle, folk, medieval, female singer",),
                },
            ),
        ),
        entries=(RecordEntry("Wsabie, mfcc+sai", "wsabie", _DIM),),
        opening=SOUNDS,
    ),
    PaperRecord(
        "music-bigdata",
        "Artists, songs and similar songs",
        DOCUMENT,
        'Slide "Results on Web-Data"',
        "Artists of a test song; test songs of an artist; test songs by the artist of a test song (and genres of a "
        "test song, where the names say them). A space for each task, or one for all; every model chooses among three "
        "learning rates or strengths on the validation songs.",
        music_tasks.run_big_data,
        (
            PublishedFigures(
                "Big-data",
                tuple(
                    f"{task} p@{k}"
                    for task in (music_tasks.ARTIST, music_tasks.SONGS, music_tasks.SIMILAR)
                    for k in music_tasks.KS
                ),
                {
                    "one-vs-rest": (0.087, 0.036, None, None, None, None),
                    "cosine similarity": (None, None, None, None, 0.054, 0.021),
                    _SINGLE_TASK: (0.091, 0.034, 0.099, 0.056, 0.040, 0.020),
                    _ALL_TASKS: (0.107, 0.038, 0.123, 0.069, 0.056, 0.026),
                    _LARGE: (0.125, 0.041, 0.133, 0.073, 0.065, 0.028),
                },
            ),
        ),
        wrong=(
            "The slides do not say what a similar song is; here it is one of the same artist.",
            "SongPred as printed is ArtistPred transposed: songs are ranked for an artist.",
            "Norms are printed squared for music (||A_i||^2 <= C), and plain for images.",
        ),
        claims=(
            OrderingClaim(f"{_SINGLE_TASK} > one-vs-rest in {_AT_1[0]}", _ARTIST_CLASSIFIERS_SUFFICE),
            *(OrderingClaim(f"{_ALL_TASKS} > {_SINGLE_TASK} in {column}", _SHARED) for column in _AT_1),
            *(OrderingClaim(f"{_LARGE} > {_ALL_TASKS} in {column}", _FILLED) for column in _AT_1),
            OrderingClaim(f"cosine similarity > {_SINGLE_TASK} in similar p@1", _COSINE),
            OrderingClaim(f"{_ALL_TASKS} > cosine similarity in similar p@1", _COSINE),
        ),
        entries=(
            RecordEntry("one-vs-rest", "one-vs-rest-hinge"),
            RecordEntry("cosine similarity", COSINE),
            RecordEntry(_SINGLE_TASK, SPACES, {"dim": 100}),
            RecordEntry(_ALL_TASKS, SPACE, {"dim": 100}),
            RecordEntry(_LARGE, SPACE, {"dim": 400}),
        ),
        columns=tuple(f"{task} p@{k}" for task in music_tasks.TASKS for k in music_tasks.KS),
        tuned=True,
        opening=SONGS,
    ),
    PaperRecord(
        "documents",
        "Related documents",
        DOCUMENT,
        'Slides "Large Scale Wsabie Experiments" and "Resulting Embedding Space"',
        "A space of 100 dimensions learns from pairs of training documents; documents of the test, held out with all "
        "their pairs, look for theirs among the training documents. Spaces choose among three learning rates on the "
        "validation documents.",
        document_search.run_document_search,
        wrong=(
            "The slides print no figures: hundreds of millions of documents, a dictionary of 1M words, d = 100, about "
            "a week of training, and the nearest words of car, nobel, cheese and france.",
        ),
        claims=tuple(
            OrderingClaim(f"{better} > {worse} in {column}", why, ours=True)
            for better, worse, why in ((_SAMPLED, _TFIDF, _BAG), (_BATCH, _TFIDF, _BAG), (_SAMPLED, _BATCH, _BLOCK))
            for column in ("recall@10", "MAP")
        ),
        entries=(
            RecordEntry(_TFIDF, COSINE),
            RecordEntry(_BATCH, SPACE, {"negatives": 0}),
            RecordEntry(_SAMPLED, SPACE, {"negatives": 256}),
        ),
        columns=document_search.COLUMNS,
        opening=document_search.OPENING,
    ),
)
