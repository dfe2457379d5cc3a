"""What is known of each data set: its size, its public home, and whom to cite. Plain data."""

from dataclasses import dataclass

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_TICK = "https://raw.githubusercontent.com/X-DataInitiative/tick-datasets/master/binary/reuters"


@dataclass(frozen=True)
class File:
    """A file of LIBSVM text at its public home.

    Parameters
    ----------
    sha256 : its checksum; None: not known, that of the first download is kept
    """

    url: str
    sha256: str | None = None

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Entry:
    """A data set.

    Parameters
    ----------
    task : "regression", "binary" or "multiclass"
    n_train, n_test : records, before duplicates are removed; if it comes whole, after a split 4:1
    d : features
    home : the page that describes it
    citation : whom to cite
    files : of all records, or of those to train on and of those to test on
    openml : its number at OpenML, if it is had from there
    npz : what the npz file is called, without the ending
    arrays : what the npz file holds besides X and y, if it must be made by hand
    names : of the features
    sparse : whether it is sparse, and stays as it came
    unit : what features are divided by; None: they are scaled to [0, 1], unless they are in [-1, 1]
    positive : the class that stands against the rest
    """

    task: str
    n_train: int
    n_test: int
    d: int
    home: str
    citation: str
    npz: str
    files: tuple[File, ...] = ()
    openml: int | None = None
    arrays: str = ""
    names: tuple[str, ...] | None = None
    sparse: bool = False
    unit: float | None = None
    positive: int | None = None

    @property
    def n(self) -> int:
        return self.n_train + self.n_test


_TORGO = (
    "L. Torgo, Inductive learning of tree-based regression models, PhD thesis, University of Porto (1999)"
)
_BLACKARD = (
    "J. A. Blackard, D. J. Dean, Comparative accuracies of artificial neural networks and discriminant "
    "analysis in predicting forest cover types, Computers and Electronics in Agriculture 24 (1999)"
)
_COVTYPE = (File(f"{_LIBSVM}/multiclass/covtype.bz2"),)
_COVTYPE_NAMES = (
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area{i}" for i in range(1, 5)),
    *(f"Soil_Type{i}" for i in range(1, 41)),
)

REGISTRY: dict[str, Entry] = {
    "cadata": Entry(
        task="regression",
        n_train=16_512,
        n_test=4_128,
        d=8,
        home=f"{_LIBSVM}/regression.html#cadata",
        citation="R. K. Pace, R. Barry, Sparse spatial autoregressions, Statistics & Probability Letters 33 "
        "(1997)",
        npz="cadata",
        files=(File(f"{_LIBSVM}/regression/cadata"),),
        names=(
            "median income",
            "housing median age",
            "total rooms",
            "total bedrooms",
            "population",
            "households",
            "latitude",
            "longitude",
        ),
    ),
    "YearPredictionMSD": Entry(
        task="regression",
        n_train=463_715,
        n_test=51_630,
        d=90,
        home=f"{_LIBSVM}/regression.html#YearPredictionMSD",
        citation="T. Bertin-Mahieux, D. P. W. Ellis, B. Whitman, P. Lamere, The million song dataset, ISMIR "
        "(2011)",
        npz="YearPredictionMSD",
        files=(
            File(f"{_LIBSVM}/regression/YearPredictionMSD.bz2"),
            File(f"{_LIBSVM}/regression/YearPredictionMSD.t.bz2"),
        ),
    ),
    "ijcnn1": Entry(
        task="binary",
        n_train=35_000,
        n_test=91_701,
        d=22,
        home=f"{_LIBSVM}/binary.html#ijcnn1",
        citation="D. Prokhorov, IJCNN 2001 neural network competition (2001)",
        npz="ijcnn1",
        files=(File(f"{_LIBSVM}/binary/ijcnn1.tr.bz2"), File(f"{_LIBSVM}/binary/ijcnn1.t.bz2")),
    ),
    "covtype.binary": Entry(
        task="binary",
        n_train=464_809,
        n_test=116_203,
        d=54,
        home=f"{_LIBSVM}/binary.html#covtype.binary",
        citation=_BLACKARD,
        npz="covtype",
        files=_COVTYPE,
        names=_COVTYPE_NAMES,
        positive=2,
    ),
    "SUSY": Entry(
        task="binary",
        n_train=4_000_000,
        n_test=1_000_000,
        d=18,
        home=f"{_LIBSVM}/binary.html#SUSY",
        citation="P. Baldi, P. Sadowski, D. Whiteson, Searching for exotic particles in high-energy physics "
        "with deep learning, Nature Communications 5 (2014)",
        npz="SUSY",
        files=(File(f"{_LIBSVM}/binary/SUSY.xz"),),
        names=(
            *(f"lepton {i} {what}" for i in (1, 2) for what in ("pT", "eta", "phi")),
            "missing energy magnitude",
            "missing energy phi",
            "MET_rel",
            "axial MET",
            "M_R",
            "M_TR_2",
            "R",
            "MT2",
            "S_R",
            "M_Delta_R",
            "dPhi_r_b",
            "cos(theta_r1)",
        ),
    ),
    "mnist": Entry(
        task="multiclass",
        n_train=60_000,
        n_test=10_000,
        d=784,  # LIBSVM leaves out the last four, which are always 0
        home=f"{_LIBSVM}/multiclass.html#mnist",
        citation="Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document "
        "recognition, Proceedings of the IEEE 86 (1998)",
        npz="mnist",
        files=(File(f"{_LIBSVM}/multiclass/mnist.bz2"), File(f"{_LIBSVM}/multiclass/mnist.t.bz2")),
        unit=255.0,
    ),
    "acoustic": Entry(
        task="multiclass",
        n_train=78_823,
        n_test=19_705,
        d=50,
        home=f"{_LIBSVM}/multiclass.html#SensIT%20Vehicle%20(acoustic)",
        citation="M. F. Duarte, Y. H. Hu, Vehicle classification in distributed sensor networks, Journal of "
        "Parallel and Distributed Computing 64 (2004)",
        npz="acoustic",
        files=(
            File(f"{_LIBSVM}/multiclass/vehicle/acoustic.bz2"),
            File(f"{_LIBSVM}/multiclass/vehicle/acoustic.t.bz2"),
        ),
    ),
    "covtype": Entry(
        task="multiclass",
        n_train=464_809,
        n_test=116_203,
        d=54,
        home=f"{_LIBSVM}/multiclass.html#covtype",
        citation=_BLACKARD,
        npz="covtype",
        files=_COVTYPE,
        names=_COVTYPE_NAMES,
    ),
    "elevators": Entry(
        task="regression",
        n_train=13_279,
        n_test=3_320,
        d=18,
        home="https://www.openml.org/d/216",
        citation=_TORGO,
        npz="elevators",
        openml=216,
    ),
    "pol": Entry(
        task="regression",
        n_train=12_000,
        n_test=3_000,
        d=26,  # OpenML has 22 more, which are constant
        home="https://www.openml.org/d/201",
        citation=_TORGO,
        npz="pol",
        openml=201,
    ),
    "flights3m": Entry(
        task="regression",
        n_train=2_400_000,
        n_test=600_000,
        d=8,
        home="https://www.transtats.bts.gov",
        citation="U.S. Bureau of Transportation Statistics, on-time performance of airlines",
        npz="flights3m",
        arrays="X of shape (3000000, 6) (month, day, minute of the day, distance, number of the origin and "
        "of the destination), y (delay in minutes), airport_latlon (latitude and longitude of each airport)",
        names=(
            "day of the year",
            "sine of the time",
            "cosine of the time",
            "distance",
            "latitude of the origin",
            "longitude of the origin",
            "latitude of the destination",
            "longitude of the destination",
        ),
    ),
    "a9a": Entry(
        task="binary",
        n_train=32_561,
        n_test=16_281,
        d=123,
        home=f"{_LIBSVM}/binary.html#a9a",
        citation="J. C. Platt, Fast training of support vector machines using sequential minimal "
        "optimization, in: Advances in Kernel Methods (1998)",
        npz="a9a",
        files=(File(f"{_LIBSVM}/binary/a9a"), File(f"{_LIBSVM}/binary/a9a.t")),
        sparse=True,
    ),
    "reuters": Entry(
        task="binary",
        n_train=7_770,
        n_test=3_299,
        d=8_315,
        home="https://github.com/X-DataInitiative/tick-datasets",
        citation="A. Bordes, S. Ertekin, J. Weston, L. Bottou, Fast kernel classifiers with online and "
        "active learning, Journal of Machine Learning Research 6 (2005)",
        npz="reuters_money_fx",
        files=(
            File(
                f"{_TICK}/reuters.trn.bz2", "e77a3368662c02caebe0d9cbcc97d856019bcfb33a8e9b7c48e0b51ee4cdfb60"
            ),
            File(
                f"{_TICK}/reuters.tst.bz2", "3d699b9644a38160bf3228059d18fbfc07474057d8e82d512576a2b82d72e211"
            ),
        ),
        sparse=True,
    ),
}


def entry(name: str) -> Entry:
    """By name."""
    if name not in REGISTRY:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(REGISTRY)}")
    return REGISTRY[name]
