"""Tables of numbers and their CSV files."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.figures import Table

NUMBERS = st.floats(allow_nan=False, width=32)
NAMES = st.text(alphabet="abcdefgh ,\"'\n", min_size=1).map(lambda text: f"x{text}")


@given(st.lists(st.tuples(NUMBERS, NAMES), min_size=1))
def test_csv_round_trip(rows):
    numbers, names = zip(*rows, strict=True)
    table = Table({"wait_s": numbers, "name": names})
    read = Table.from_csv(table.to_csv())
    assert read.names == table.names
    np.testing.assert_allclose(read["wait_s"], table["wait_s"], rtol=1e-9)
    assert read["name"].tolist() == table["name"].tolist()
    # What has been written once stays the same to the bit.
    assert read.to_csv() == table.to_csv()


def test_nan_is_an_empty_cell():
    text = Table({"distance_km": [1.5, math.nan], "kind": ["a", "b"]}).to_csv()
    assert text == "distance_km,kind\n1.5,a\n,b\n"
    assert math.isnan(Table.from_csv(text)["distance_km"][1])


def test_rows_are_found_by_number_and_by_text():
    table = Table({"load": [1.0, 1.0, 2.0], "kind": ["a", "b", "a"], "value": [3.0, 4.0, 5.0]})
    assert table.where(load=1.0, kind="b")["value"].tolist() == [4.0]
    assert table.value("value", kind="a", load=2.0) == 5.0
    assert table.distinct("kind") == ["a", "b"]
    with pytest.raises(KeyError, match="no row has"):
        table.where(load=3.0)
    with pytest.raises(KeyError, match="lode"):
        table.where(lode=3.0)


@pytest.mark.parametrize("columns", [{"a": [1.0], "b": [1.0, 2.0]}, {"a": [[1.0]]}, {}])
def test_columns_of_unequal_length_are_refused(columns):
    with pytest.raises(ValueError, match="one-dimensional and equal"):
        Table(columns)
