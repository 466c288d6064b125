"""One matrix of a safetensors file, mapped: the package `safetensors` would read and copy all of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# https://huggingface.co/docs/safetensors: the size of the header, the header as JSON, then all tensors.
SIZE_BYTES = 8
# Of a header, whatever a damaged file says.
MOST_BYTES = 1 << 20


def mapped_matrix(path: Path, name: str) -> NDArray[np.float16]:
    """Raises OSError, ValueError, KeyError or msgspec.DecodeError for a file that is not as it should be."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(SIZE_BYTES), "little")
        header: dict[str, Any] = msgspec.json.decode(file.read(min(size, MOST_BYTES)), type=dict)
    tensor = header[name]
    if tensor["dtype"] != "F16":
        raise ValueError(f"{name} is of type {tensor['dtype']}")
    start = SIZE_BYTES + size + tensor["data_offsets"][0]
    return np.asarray(np.memmap(path, "<f2", "r", start, tuple(tensor["shape"])))
