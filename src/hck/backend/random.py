"""Random numbers that are the same on every device: a hash of a key and a counter.

torch's generators give other numbers on a GPU than on a CPU. Here a number depends on a key and on its place
alone, so that it can be computed anywhere and in any order. The hash is SplitMix64 (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", 2014): number i is mix(key + (i + 1) γ) in 64 bits.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from hck.backend.kinds import kind_of

_WORD = 2**64
_GAMMA = 0x9E3779B97F4A7C15  # odd, and nearest to 2⁶⁴ over the golden ratio
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_AT_ONCE = 2**18  # numbers that are hashed while they are in a core's cache


@dataclass(frozen=True)
class Random:
    """A stream of random numbers, named by a key of 64 bits.

    It has no state: the same call gives the same numbers. Who needs more of them takes a child, which has
    numbers of its own.
    """

    key: int

    def child(self, *numbers: int) -> "Random":
        """The stream of a part of the work: a tree, a level, an attempt."""
        key = self.key
        for number in numbers:
            key = _mix(_mix(key + _GAMMA) ^ _mix(number * _GAMMA + _SECOND))
        return Random(key)

    def uniform(self, shape: tuple[int, ...], device: torch.device) -> Tensor:
        """Numbers in [0, 1), multiples of 2⁻⁵³."""
        out = torch.empty(shape, dtype=torch.float64, device=device)
        for first, part in _parts(out.view(-1)):
            counter = torch.arange(first, first + len(part), device=device)
            part.copy_(_as_uniform(self._words(counter)))
        return out

    def rows(self, which: Tensor, width: int) -> Tensor:
        """The same, (rows, width), with rows of their own numbers: those that have the number which[i]."""
        return _as_uniform(self._words(_places(which, width)))

    def grid(self, which: Tensor, columns: Tensor) -> Tensor:
        """The same, (rows, columns), of columns that have numbers too: some of those that `rows` has."""
        return _as_uniform(self._words((which[:, None] << 32) + columns))

    def orders(self, which: Tensor, width: int) -> Tensor:
        """A random order of `width` things for each number which[i]: keys to sort by, (rows, width), int32.

        Two keys are equal once in 2³¹ pairs: the sort has to be a stable one.
        """
        return _shifted(self._words(_places(which, width)), 33).int()

    def normal(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """Standard normal numbers, by Box and Muller's method in double precision."""
        count = math.prod(shape)
        u, v = self.uniform((2, (count + 1) // 2), device)
        radius, angle = (-2 * torch.log1p(-u)).sqrt_(), v.mul_(2 * math.pi)
        return torch.cat([radius * angle.cos(), radius * angle.sin()])[:count].reshape(shape).to(dtype)

    def integers(self, high: int, count: int, device: torch.device) -> Tensor:
        """Whole numbers from 0 to high − 1."""
        return (self.uniform((count,), device) * high).long()

    def permutation(self, n: int, device: torch.device) -> Tensor:
        """0 to n − 1 in random order."""
        return self.uniform((n,), device).argsort(stable=True)

    def seed(self) -> int:
        """A seed for others' generators."""
        return _mix(self.key + _GAMMA) >> 33

    def _words(self, counter: Tensor) -> Tensor:
        """64 random bits for each place, in the memory of the places."""
        z = counter.add_(1).mul_(_signed(_GAMMA)).add_(_signed(self.key))
        z.bitwise_xor_(_shifted(z, 30)).mul_(_signed(_FIRST))
        z.bitwise_xor_(_shifted(z, 27)).mul_(_signed(_SECOND))
        return z.bitwise_xor_(_shifted(z, 31))


RandomLike: TypeAlias = Random | torch.Generator | int | None


def as_random(given: RandomLike) -> Random:
    """Random numbers of a seed, 0 for None, or of a seed that is drawn from a generator of torch."""
    if isinstance(given, Random):
        return given
    if isinstance(given, torch.Generator):
        given = int(torch.randint(2**62, (1,), generator=given, device=given.device))
    return Random(_mix(_mix(given or 0) + _GAMMA))


def _places(which: Tensor, width: int) -> Tensor:
    return (which[:, None] << 32) + torch.arange(width, device=which.device)


def _as_uniform(words: Tensor) -> Tensor:
    return _shifted(words, 11).double().mul_(2.0**-53)


def _parts(flat: Tensor) -> list[tuple[int, Tensor]]:
    """Slices of the size of a cache, and where they begin; one of all where there is no such cache."""
    step = _AT_ONCE if kind_of(flat.device).is_host else max(1, len(flat))
    return [(first, flat[first : first + step]) for first in range(0, len(flat), step)]


def _mix(z: int) -> int:
    z %= _WORD
    z = (z ^ (z >> 30)) * _FIRST % _WORD
    z = (z ^ (z >> 27)) * _SECOND % _WORD
    return z ^ (z >> 31)


def _signed(word: int) -> int:
    """The same 64 bits as a signed number, as torch has them."""
    return word - _WORD if word >= _WORD // 2 else word


def _shifted(z: Tensor, places: int) -> Tensor:
    """A shift to the right that fills with zeros."""
    return (z >> places).bitwise_and_((1 << (64 - places)) - 1)
