"""Animations of a policy at work."""

import pytest
from PIL import Image

from edgegym.evaluation import animate
from tests.evaluation import players


def test_one_picture_per_epoch_and_one_of_the_start(tmp_path):
    path = animate(players.first_legal, "toy", 3, tmp_path / "a.gif", epochs=4, progress=False)
    with Image.open(path) as image:
        assert image.n_frames == 5
        assert image.size[0] >= 400
        assert image.info["loop"] == 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "a.png"}, r"path = .*a\.png': the name of an animation must end in \.gif"),
        ({"epochs": 0}, r"epochs = 0: must lie in 1\.\.20"),
        ({"epochs": 21}, r"epochs = 21: must lie in 1\.\.20"),
        ({"seed": -1}, r"seed = -1"),
        ({"policy": "statik"}, r"'statik': neither a policy"),
        ({"scenario": "tyo"}, r"scenario = 'tyo'"),
    ],
)
def test_bad_arguments_leave_no_file(arguments, message, tmp_path):
    good = {"policy": "static", "scenario": "toy", "seed": 1, "path": "a.gif", "epochs": 1}
    chosen = good | arguments
    chosen["path"] = tmp_path / chosen["path"]
    with pytest.raises(ValueError, match=message):
        animate(**chosen, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_an_error_on_the_way_leaves_no_file(tmp_path):
    with pytest.raises(LookupError):
        animate(players.fails_in_the_tenth_step, "toy", 1, tmp_path / "a.gif", progress=False)
    assert list(tmp_path.iterdir()) == []
