"""Parts II and III of the 2012 slides: music similarity and document similarity."""

from wsabie.studies.reproduce import curves, describing, documents, music, texts
from wsabie.studies.reproduce.claims import Claim
from wsabie.studies.reproduce.in_space import COSINE, SPACE, SPACES
from wsabie.studies.reproduce.music_data import SONGS, SOUNDS
from wsabie.studies.reproduce.record import Entry, Published, Record
from wsabie.studies.reproduce.records.slides import DOCUMENT

_DIM = {"dim": 400}
_HERE = (
    "Sounds are described by words of coefficients (mfcc), and with words of auditory images beside (mfcc+sai), learnt "
    "from the training side; the tags are the names of all kinds that the sounds have."
)
_APART = "a classifier of each tag alone does as well where tags are few and have rows enough"
_HEARD = "what tells these sounds apart is in the coefficients already, and more numbers overfit few sounds"
_FILLED = "few tags fill few dimensions"
_SHARED = "the tasks here ask for the same names, so that one teaches little that another does not"
_COSINE = "tracks of one artist have much the same words, which a cosine sees without learning"
_ALONE = "artists are few and have rows enough for a classifier of each"
_BLOCK = "the positives of a block are negatives enough where documents are few"
_BAG = "few pairs teach a map of many words less than its weights by frequency say already"

_MFCC, _BOTH = (100, 200, 300, 400), (100, 200, 300, 400, 600, 800)
_AT_1 = tuple(f"{task} p@1" for task in (music.ARTIST, music.SONGS, music.SIMILAR))
_ONE, _ALL, _LARGE = "Wsabie, single task (d = 100)", "Wsabie, all tasks (d = 100)", "Wsabie, all tasks (d = 400)"
_TFIDF, _BATCH, _SAMPLED = "tf-idf cosine", "Space, in-batch negatives", "Space, 256 sampled negatives"

RECORDS = (
    Record(
        "tagatune",
        "Tags of sounds",
        DOCUMENT,
        'Slide "Results on TagATune", summary',
        f"{_HERE} Every model chooses among three settings on the validation side.",
        describing.sounds_compared,
        (
            Published(
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
            Claim("Wsabie, mfcc > 1-vs-rest, mfcc in p@3", _APART),
            Claim("Wsabie, mfcc+sai > 1-vs-rest, mfcc+sai in p@3", _APART),
            Claim("1-vs-rest, mfcc+sai > 1-vs-rest, mfcc in p@3", _HEARD),
            Claim("Wsabie, mfcc+sai > Wsabie, mfcc in p@3", _HEARD),
        ),
        entries=tuple(
            entry
            for features in describing.SOUNDS
            for entry in (
                Entry(f"1-vs-rest, {features}", "one-vs-rest-hinge"),
                Entry(f"Wsabie, {features}", "wsabie", _DIM),
            )
        ),
        tuned=True,
        opening=SOUNDS,
    ),
    Record(
        "tagatune-dims",
        "Dimensions of the space of sounds and tags",
        DOCUMENT,
        'Slide "Results on TagATune", embedding size',
        f"{_HERE} One model for each number of dimensions, everything else alike.",
        describing.sounds_compared,
        (
            Published(
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
            Claim("d = 400, mfcc > d = 100, mfcc in p@3", _FILLED),
            Claim("d = 400, mfcc+sai > d = 100, mfcc+sai in p@3", _FILLED),
            Claim("d = 800, mfcc+sai > d = 400, mfcc+sai in p@3", _FILLED),
        ),
        entries=tuple(
            Entry(f"d = {dim}, {features}", "wsabie", {"dim": dim})
            for features, dims in (("mfcc", _MFCC), ("mfcc+sai", _BOTH))
            for dim in dims
        ),
        opening=SOUNDS,
        chart=curves.by_dimension_of_features,
    ),
    Record(
        "tagatune-neighbours",
        "Nearest tags in the space",
        DOCUMENT,
        'Slide "Results on TagATune", related tags',
        "A model of 400 dimensions is trained on mfcc+sai, and the tags nearest (cosine) to those of the slide, as far "
        "as the data have them, or to the most frequent tags of each kind are listed.",
        texts.labels_near,
        (
            Published(
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
        entries=(Entry("Wsabie, mfcc+sai", "wsabie", _DIM),),
        opening=SOUNDS,
    ),
    Record(
        "music-bigdata",
        "Artists, songs and similar songs",
        DOCUMENT,
        'Slide "Results on Web-Data"',
        "Artists of a test song; test songs of an artist; test songs by the artist of a test song (and genres of a "
        "test song, where the names say them). A space for each task, or one for all; every model chooses among three "
        "learning rates or strengths on the validation songs.",
        music.big_data,
        (
            Published(
                "Big-data",
                tuple(f"{task} p@{k}" for task in (music.ARTIST, music.SONGS, music.SIMILAR) for k in music.KS),
                {
                    "one-vs-rest": (0.087, 0.036, None, None, None, None),
                    "cosine similarity": (None, None, None, None, 0.054, 0.021),
                    _ONE: (0.091, 0.034, 0.099, 0.056, 0.040, 0.020),
                    _ALL: (0.107, 0.038, 0.123, 0.069, 0.056, 0.026),
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
            Claim(f"{_ONE} > one-vs-rest in {_AT_1[0]}", _ALONE),
            *(Claim(f"{_ALL} > {_ONE} in {column}", _SHARED) for column in _AT_1),
            *(Claim(f"{_LARGE} > {_ALL} in {column}", _FILLED) for column in _AT_1),
            Claim(f"cosine similarity > {_ONE} in similar p@1", _COSINE),
            Claim(f"{_ALL} > cosine similarity in similar p@1", _COSINE),
        ),
        entries=(
            Entry("one-vs-rest", "one-vs-rest-hinge"),
            Entry("cosine similarity", COSINE),
            Entry(_ONE, SPACES, {"dim": 100}),
            Entry(_ALL, SPACE, {"dim": 100}),
            Entry(_LARGE, SPACE, {"dim": 400}),
        ),
        columns=tuple(f"{task} p@{k}" for task in music.TASKS for k in music.KS),
        tuned=True,
        opening=SONGS,
    ),
    Record(
        "documents",
        "Documents that belong together",
        DOCUMENT,
        'Slides "Large Scale Wsabie Experiments" and "Resulting Embedding Space"',
        "A space of 100 dimensions learns from pairs of training documents; documents of the test, held out with all "
        "their pairs, look for theirs among the training documents. Spaces choose among three learning rates on the "
        "validation documents.",
        documents.documents,
        wrong=(
            "The slides print no figures: hundreds of millions of documents, a dictionary of 1M words, d = 100, about "
            "a week of training, and the nearest words of car, nobel, cheese and france.",
        ),
        claims=tuple(
            Claim(f"{better} > {worse} in {column}", why, ours=True)
            for better, worse, why in (
                (_SAMPLED, _TFIDF, _BAG),
                (_BATCH, _TFIDF, _BAG),
                (_SAMPLED, _BATCH, _BLOCK),
            )
            for column in ("recall@10", "MAP")
        ),
        entries=(
            Entry(_TFIDF, COSINE),
            Entry(_BATCH, SPACE, {"negatives": 0}),
            Entry(_SAMPLED, SPACE, {"negatives": 256}),
        ),
        columns=documents.COLUMNS,
        opening=documents.OPENING,
    ),
)
