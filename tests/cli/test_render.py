"""``edgegym render``."""

import pytest
from PIL import Image

from edgegym.cli import main

SHORT = ["render", "--scenario", "toy", "--policy", "uniform", "--epochs", "2"]


def test_writes_an_animation(tmp_path, capsys):
    path = tmp_path / "new" / "fleet.gif"
    assert main([*SHORT, "--seed", "5", "-o", str(path)]) == 0
    assert capsys.readouterr().out == f"Wrote {path}\n"
    with Image.open(path) as image:
        assert image.n_frames == 3


@pytest.mark.parametrize("seed", ["-1", "x"])
def test_bad_seeds_are_refused(seed, tmp_path, capsys):
    assert main([*SHORT, "--seed", seed, "-o", str(tmp_path / "a.gif")]) == 2
    assert "seed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
