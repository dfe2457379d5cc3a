"""The error of files that cannot be read."""


class ModelFileError(ValueError):
    """A saved model that is damaged, incomplete, altered, or written by a newer version."""
