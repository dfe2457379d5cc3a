"""The form of what is known of a data set."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class File:
    """A file at its public home: LIBSVM text, or of a frame CSV without names."""

    url: str
    sha256: str | None = None  # its checksum; None: not known, that of the first download is kept

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Frame:
    """What is known of a frame: CSV files (without the ending), target, and categories with an order."""

    files: tuple[str, ...]
    target: str
    ordered: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A data set.

    Parameters
    ----------
    task : "regression", "binary" or "multiclass"
    n_train, n_test : records, before duplicates are removed; if it comes whole, after a split 4:1
    d : features, also those that are always 0 and left out by LIBSVM, but not those that OpenML has constant
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
    centred : whether the mean is taken off targets that come from OpenML
    validates : whether there are records to validate on, which are trained on as well
    frame : if it is a pandas frame, with columns that are categories
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
    centred: bool = False
    validates: bool = False
    frame: Frame | None = None

    @property
    def stays_as_it_came(self) -> bool:
        """Whether it is neither scaled nor freed of duplicates."""
        return self.sparse or self.frame is not None

    @property
    def n(self) -> int:
        return self.n_train + self.n_test
