from __future__ import annotations

import numpy as np
import pytest

from ragmemory.text.growing_array import GrowingArray


@pytest.mark.parametrize("shape", [(0,), (0, 4)])
def test_appended_rows_are_kept_and_earlier_views_do_not_change(shape: tuple[int, ...]) -> None:
    array = GrowingArray(np.empty(shape, np.int64))
    array.append(np.full((5, *shape[1:]), 1))
    before = array.rows
    for number in range(2, 9):
        array.append(np.full((1, *shape[1:]), number))
    assert len(array) == 12
    assert array.rows.reshape(12, -1)[:, 0].tolist() == [1] * 5 + list(range(2, 9))
    assert len(before) == 5
    assert (before == 1).all()
