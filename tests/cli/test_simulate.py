"""``edgegym simulate``."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from edgegym.cli import main
from edgegym.simulator import Fleet, read_records
from edgegym.world import preset

TOY = ["simulate", "--scenario", "toy", "--no-progress"]


def shown_json(capsys, *arguments: str) -> dict:
    assert main([*TOY, "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_figures_are_those_of_the_fleet(capsys):
    found = shown_json(capsys, "--seconds", "120", "--warmup-s", "10", "--seed", "3")
    fleet = Fleet(preset("toy"), 3)
    fleet.advance(10.0)
    window = fleet.advance(120.0)
    total = found["families"][-1]
    assert total["requests"] == window.arrivals
    assert total["coverage"] == window.coverage
    assert total["ttft_s"] == [window.ttft_quantile_s(q) for q in (0.5, 0.9, 0.99)]
    assert found["fleet"]["mean_ttft_s"] == window.mean_ttft_s
    assert found["fleet"]["nodes"] == fleet.state.node_count[0]
    assert [row["family"] for row in found["families"][:-1]] == list(preset("toy").family_names)
    for name in ("requests", "decided", "hits", "rejected"):
        assert sum(row[name] for row in found["families"][:-1]) == total[name]
    assert [row["requests"] for row in found["families"][:-1]] == window.family_arrivals.tolist()


def test_seeds_are_counted_together(capsys):
    one, two, both = (
        shown_json(capsys, "--seconds", "60", "--seed", *seeds)["families"][-1]
        for seeds in (["1"], ["2"], ["1", "2"])
    )
    assert both["requests"] == one["requests"] + two["requests"]
    assert both["hits"] == one["hits"] + two["hits"]


def test_the_router_is_chosen(capsys):
    assert main([*TOY, "--seconds", "30", "--router", "nearest"]) == 0
    assert "router nearest" in capsys.readouterr().out
    found = shown_json(
        capsys, "--seconds", "30", "--router", "power_of_two",
        "--set", "routing.candidates_per_profile=3",
    )  # fmt: skip
    assert found["router"] == "power_of_two"


def test_tables_name_families_and_quantiles(capsys):
    assert main([*TOY, "--hours", "0.02"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert max(map(len, shown.out.splitlines())) <= 100
    for words in ("coverage", "TTFT", "p50, s", "p99, s", "spilled", "rejected", "slots in use"):
        assert words in shown.out
    for family in (*preset("toy").family_names, "total"):
        assert len(re.findall(rf"^ ?{re.escape(family)} ", shown.out, re.MULTILINE)) == 2
    assert "nan" not in shown.out


def test_json_and_tables_warn_of_prefill_that_no_gpu_could_do(capsys):
    calm = ["--seconds", "30", "--set", "demand.rate_per_node=0.5"]
    wild = ["--seconds", "30", "--set", "demand.rate_per_node=30"]
    assert shown_json(capsys, *calm)["warnings"] == []
    found = shown_json(capsys, *wild)
    highest = found["fleet"]["most_prefill_utilization"]
    assert highest > 1.0
    [warning] = found["warnings"]
    assert f"prefilled for {highest:.2f} seconds each second" in warning
    assert main([*TOY, *wild]) == 0
    assert f"Warning: {warning}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_records_agree_with_the_summary(kind, tmp_path, capsys):
    path = tmp_path / "new" / f"out.{kind}"
    arguments = ["--seconds", "120", "--warmup-s", "0", "--seed", "0", "7"]
    found = shown_json(capsys, *arguments, "--records", str(path))
    table = read_records(path)
    assert list(path.parent.iterdir()) == [path]
    assert set(table["seed"].tolist()) == {0, 7}
    total = found["families"][-1]
    # All that ended: what is missing was still in the system.
    assert 0.9 * total["requests"] < table.num_rows <= total["requests"]
    exact = np.quantile(table["ttft_s"][~np.isnan(table["ttft_s"])], 0.5)
    assert total["ttft_s"][0] == pytest.approx(exact, rel=0.05)


def test_the_file_is_named_when_it_is_there(tmp_path, capsys):
    path = tmp_path / "out.npz"
    assert main([*TOY, "--seconds", "20", "--records", str(path)]) == 0
    assert capsys.readouterr().out.endswith(f"Wrote {path}\n")
    assert path.is_file()


def test_progress_is_shown_on_standard_error(capsys):
    assert main([*TOY[:-1], "--seconds", "20", "--json"]) == 0
    shown = capsys.readouterr()
    json.loads(shown.out)
    assert re.match(r"simulate: 20 of 20 after \d+ s \([\d,]+ requests\)", shown.err)


BAD = [
    (["--router", "psychic"], "--router psychic: must be one of nearest, prefix_aware"),
    (["--router", "nearest", "--set", "routing.kind=lmetric"], "give one of them"),
    (["--hours", "1", "--seconds", "1"], "--hours and --seconds: give one of them"),
    (["--hours", "0"], "--hours 0: must be positive"),
    (["--hours", "-1"], "--hours -1: must be positive and at most 1.11e+06"),
    (["--hours", "2e6"], "--hours 2e+06: must be positive and at most 1.11e+06"),
    (["--seconds", "-1"], "--seconds -1: must be positive"),
    (["--seconds", "nan"], "--seconds nan: must be positive"),
    (["--warmup-s", "-1"], "--warmup-s -1: must lie in 0.."),
    (["--seed", "-1"], "seed = -1: must be an integer in [0, 2^64)"),
    (["--seed", "1", "1"], "seed = 1: given twice"),
    (["--records", "out.csv"], "--records out.csv: must end in .parquet or .npz"),
    (["--records", f"{sys.executable}/x.npz"], f"--records {sys.executable}/x.npz: "),
    (["--scenario", "tyo"], "scenario = 'tyo'"),
    (["--set", "nodes.cuont=3"], "nodes.cuont"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: " ".join(value)[:50])
def test_bad_input_is_exit_code_2(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to processes")
def test_an_interrupt_leaves_nothing(tmp_path):
    folder = tmp_path / "out"
    arguments = [*TOY, "--hours", "100000", "--records", str(folder / "a.parquet")]
    process = subprocess.Popen(
        [sys.executable, "-m", "edgegym", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(1200):  # until records have been written
        if any(path.stat().st_size > 100_000 for path in folder.glob(".*")):
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (130, "")
    assert errors == "edgegym: interrupted\n"
    assert list(folder.iterdir()) == []
