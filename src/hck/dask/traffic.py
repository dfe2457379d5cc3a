"""What travels during a fit."""

from dataclasses import dataclass

from hck.branches import Message, Reply


@dataclass
class Traffic:
    """Bytes that travelled during a fit.

    Attributes
    ----------
    sample : int
        Of the rows that were drawn to settle partition and parameters.
    rows : int
        Of the rows that were brought to their branches; at most, since some are on the right worker already.
    messages : int
        From branches to trunks.
    replies : int
        From trunks to branches.
    """

    sample: int = 0
    rows: int = 0
    messages: int = 0
    replies: int = 0

    def count(self, messages: list[Message], replies: list[Reply]) -> None:
        """Add what a tree's branches and its trunk said to each other."""
        self.messages += sum(each.nbytes for each in messages)
        self.replies += sum(each.nbytes for each in replies)
