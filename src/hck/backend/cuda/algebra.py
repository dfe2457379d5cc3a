"""Dense linear algebra on stacks of matrices on a GPU: torch, and kernels of our own for small matrices."""

from torch import Tensor

from hck.backend.cuda import dense
from hck.backend.torch import TorchAlgebra

_FEW_COLUMNS = 4  # to multiply by without unpacking


class CudaAlgebra(TorchAlgebra):
    """What `hck.backend.linalg` asks for."""

    def _invert_small_(self, s: Tensor, failed: Tensor) -> None:
        dense.invert_factor_(s, failed)

    def pack_(self, symmetric: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        diagonal = symmetric.diagonal(dim1=-2, dim2=-1).contiguous()
        dense.pack_(symmetric.contiguous(), factor)
        return factor, diagonal

    def multiply_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        if x.shape[-1] > _FEW_COLUMNS:
            return super().multiply_packed(packed, diagonal, x)
        return dense.multiply_packed(packed, diagonal, x)

    def unwhiten_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        if x.shape[-1] > _FEW_COLUMNS:
            return super().unwhiten_packed(packed, diagonal, x)
        return dense.multiply_packed_factor(packed, x)
