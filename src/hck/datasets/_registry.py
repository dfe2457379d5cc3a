"""What is known of each data set: its size, its public home, and whom to cite. Plain data."""

from typing import Any

from hck.datasets._entry import Entry, File, Frame

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_TICK = "https://raw.githubusercontent.com/X-DataInitiative/tick-datasets/master/binary/reuters/reuters"


def _of_libsvm(
    name: str, task: str, size: tuple[int, int, int], citation: str, *files: str, **more: Any
) -> dict[str, Entry]:
    """A data set on LIBSVM's page for its task; files are in the folder of the task, unless it is given."""
    places = (file if "/" in file else f"{task}/{file}" for file in files)
    given = {"npz": name, "home": f"{_LIBSVM}/{task}.html#{name}"} | more
    urls = tuple(File(f"{_LIBSVM}/{place}") for place in places)
    return {name: Entry(task, *size, citation=citation, files=urls, **given)}


def _of_openml(
    name: str, number: int, size: tuple[int, int, int], citation: str, task: str = "regression", **more: Any
) -> dict[str, Entry]:
    home = f"https://www.openml.org/d/{number}"
    return {name: Entry(task, *size, home=home, citation=citation, npz=name, openml=number, **more)}


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


_TORGO = (
    "L. Torgo, Inductive learning of tree-based regression models, PhD thesis, University of Porto (1999)"
)
_DELVE = "C. E. Rasmussen et al., The DELVE manual, University of Toronto (1996), https://www.cs.toronto.edu/~delve"
_BLACKARD = (
    "J. A. Blackard, D. J. Dean, Comparative accuracies of artificial neural networks and discriminant "
    "analysis in predicting forest cover types, Computers and Electronics in Agriculture 24 (1999)"
)
_COVTYPE: dict[str, Any] = {
    "npz": "covtype",
    "names": (
        *_names("Elevation, Aspect, Slope, Horizontal_Distance_To_Hydrology, Vertical_Distance_To_Hydrology"),
        *_names("Horizontal_Distance_To_Roadways, Hillshade_9am, Hillshade_Noon, Hillshade_3pm"),
        "Horizontal_Distance_To_Fire_Points",
        *(f"Wilderness_Area{i}" for i in range(1, 5)),
        *(f"Soil_Type{i}" for i in range(1, 41)),
    ),
}

REGISTRY: dict[str, Entry] = {
    **_of_libsvm(
        *("cadata", "regression", (16_512, 4_128, 8)),
        "R. K. Pace, R. Barry, Sparse spatial autoregressions, Statistics & Probability Letters 33 (1997)",
        "cadata",
        names=_names(
            "median income, housing median age, total rooms, total bedrooms, population, households, "
            "latitude, longitude"
        ),
    ),
    **_of_libsvm(
        *("YearPredictionMSD", "regression", (463_715, 51_630, 90)),
        "T. Bertin-Mahieux, D. P. W. Ellis, B. Whitman, P. Lamere, The million song dataset, ISMIR (2011)",
        *("YearPredictionMSD.bz2", "YearPredictionMSD.t.bz2"),
    ),
    **_of_libsvm(
        *("ijcnn1", "binary", (35_000, 91_701, 22)),
        "D. Prokhorov, IJCNN 2001 neural network competition (2001)",
        *("ijcnn1.tr.bz2", "ijcnn1.t.bz2"),
    ),
    **_of_libsvm(
        *("covtype.binary", "binary", (464_809, 116_203, 54), _BLACKARD, "multiclass/covtype.bz2"),
        **_COVTYPE,
        positive=2,
    ),
    **_of_libsvm(
        *("SUSY", "binary", (4_000_000, 1_000_000, 18)),
        "P. Baldi, P. Sadowski, D. Whiteson, Searching for exotic particles in high-energy physics with deep "
        "learning, Nature Communications 5 (2014)",
        "SUSY.xz",
        names=(
            *(f"lepton {i} {what}" for i in (1, 2) for what in ("pT", "eta", "phi")),
            *_names("missing energy magnitude, missing energy phi, MET_rel, axial MET, M_R, M_TR_2, R, MT2"),
            *_names("S_R, M_Delta_R, dPhi_r_b, cos(theta_r1)"),
        ),
    ),
    **_of_libsvm(
        *("mnist", "multiclass", (60_000, 10_000, 784)),
        "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document "
        "recognition, Proceedings of the IEEE 86 (1998)",
        *("mnist.bz2", "mnist.t.bz2"),
        unit=255.0,
    ),
    **_of_libsvm(
        *("acoustic", "multiclass", (78_823, 19_705, 50)),
        "M. F. Duarte, Y. H. Hu, Vehicle classification in distributed sensor networks, Journal of Parallel "
        "and Distributed Computing 64 (2004)",
        *("multiclass/vehicle/acoustic.bz2", "multiclass/vehicle/acoustic.t.bz2"),
        home=f"{_LIBSVM}/multiclass.html#SensIT%20Vehicle%20(acoustic)",
    ),
    **_of_libsvm(
        *("covtype", "multiclass", (464_809, 116_203, 54), _BLACKARD, "multiclass/covtype.bz2"), **_COVTYPE
    ),
    **_of_openml("elevators", 216, (13_279, 3_320, 18), _TORGO, centred=True),
    **_of_openml("pol", 201, (12_000, 3_000, 26), _TORGO, centred=True),
    "flights3m": Entry(
        *("regression", 2_400_000, 600_000, 8, "https://www.transtats.bts.gov"),
        "U.S. Bureau of Transportation Statistics, on-time performance of airlines",
        npz="flights3m",
        arrays="X of shape (3000000, 6) (month, day, minute of the day, distance, number of the origin and "
        "of the destination), y (delay in minutes), airport_latlon (latitude and longitude of each airport)",
        names=(
            *_names("day of the year, sine of the time, cosine of the time, distance"),
            *(
                f"{what} of the {end}"
                for end in ("origin", "destination")
                for what in ("latitude", "longitude")
            ),
        ),
    ),
    **_of_libsvm(
        *("a9a", "binary", (32_561, 16_281, 123)),
        "J. C. Platt, Fast training of support vector machines using sequential minimal optimization, in: "
        "Advances in Kernel Methods (1998)",
        *("a9a", "a9a.t"),
        sparse=True,
    ),
    "reuters": Entry(
        *("binary", 7_770, 3_299, 8_315, "https://github.com/X-DataInitiative/tick-datasets"),
        "A. Bordes, S. Ertekin, J. Weston, L. Bottou, Fast kernel classifiers with online and active "
        "learning, Journal of Machine Learning Research 6 (2005)",
        npz="reuters_money_fx",
        files=(
            File(f"{_TICK}.trn.bz2", "e77a3368662c02caebe0d9cbcc97d856019bcfb33a8e9b7c48e0b51ee4cdfb60"),
            File(f"{_TICK}.tst.bz2", "3d699b9644a38160bf3228059d18fbfc07474057d8e82d512576a2b82d72e211"),
        ),
        sparse=True,
    ),
    **_of_openml("kin8nm", 189, (6_553, 1_639, 8), _DELVE),
    **_of_openml("ailerons", 296, (11_000, 2_750, 40), _TORGO),
    **_of_openml("bank32nh", 558, (6_553, 1_639, 32), _DELVE),
    **_of_openml("puma32H", 308, (6_553, 1_639, 32), _DELVE),
    **_of_openml("house8L", 218, (18_227, 4_557, 8), _DELVE),
    **_of_openml("mv", 344, (32_614, 8_154, 10), _TORGO),
    **_of_openml(
        *("fried", 564, (32_614, 8_154, 10)),
        "J. H. Friedman, Multivariate adaptive regression splines, Annals of Statistics 19 (1991)",
    ),
    "cpu_act": Entry(
        *("regression", 6_553, 1_639, 21, "https://www.openml.org/d/197"),
        _DELVE,
        npz="cpu_act",
        arrays="X_train of shape (5242, 21), X_val (1311, 21), X_test (1639, 21), and y_train, y_val, y_test",
        validates=True,
    ),
    **_of_openml(
        *("letter", 6, (16_000, 4_000, 16)),
        "P. W. Frey, D. J. Slate, Letter recognition using Holland-style adaptive classifiers, Machine "
        "Learning 6 (1991)",
        "multiclass",
    ),
    **_of_openml(
        *("pendigits", 32, (8_793, 2_199, 16)),
        "F. Alimoglu, E. Alpaydin, Methods of combining multiple classifiers based on different "
        "representations for pen-based handwritten digit recognition, TAINN (1996)",
        "multiclass",
    ),
    **_of_openml(
        *("diamonds", 42225, (43_152, 10_788, 9)),
        "H. Wickham, ggplot2: elegant graphics for data analysis, Springer (2016)",
        frame=Frame(
            ("diamonds",),
            "price",
            ordered={
                "cut": _names("Fair, Good, Very Good, Premium, Ideal"),
                "color": _names("J, I, H, G, F, E, D"),
                "clarity": _names("I1, SI2, SI1, VS2, VS1, VVS2, VVS1, IF"),
            },
        ),
    ),
    "adult": Entry(
        *("binary", 32_561, 16_281, 14, "https://archive.ics.uci.edu/dataset/2/adult"),
        "R. Kohavi, Scaling up the accuracy of naive-Bayes classifiers: a decision-tree hybrid, KDD (1996)",
        npz="adult",
        files=(File(f"{_UCI}/adult/adult.data"), File(f"{_UCI}/adult/adult.test")),
        names=_names(
            "age, workclass, fnlwgt, education, education_num, marital_status, occupation, relationship, "
            "race, sex, capital_gain, capital_loss, hours_per_week, native_country"
        ),
        frame=Frame(("adult_train", "adult_test"), "income"),
    ),
}


def entry(name: str) -> Entry:
    """By name."""
    if name not in REGISTRY:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(REGISTRY)}")
    return REGISTRY[name]
