import subprocess
import sys

import numpy as np
import pytest

from edgegym.envs.charts import StripChart
from edgegym.envs.fleet_map import arcs, pies
from edgegym.envs.legend import shortened
from edgegym.envs.palette import best_profiles, make_palette
from edgegym.envs.placement import PlacementEnv
from edgegym.envs.window import Window
from edgegym.world import preset, presets

SHORT = {"control.horizon_epochs": 4, "initial.warmup_s": 5.0}


def drawn(env, steps=2):
    env.reset(seed=0)
    for _ in range(steps):
        env.step(env.actions.no_op)
    return env.render()


@pytest.mark.parametrize("name", presets())
def test_every_preset_makes_a_picture_that_names_its_profiles(name):
    env = PlacementEnv(name, overrides=SHORT, render_mode="rgb_array")
    image = drawn(env)
    assert image.shape == (540, 960, 3)
    assert image.dtype == np.uint8
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 100
    figure = env._renderer._scene.canvas.figure
    texts = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert set(env.scenario.profile_names) <= texts
    env.close()


def test_pictures_are_fresh_and_change_with_the_fleet():
    env = PlacementEnv("moving-hotspot", overrides=SHORT, render_mode="rgb_array")
    first = drawn(env)
    kept = first.copy()
    np.testing.assert_array_equal(env.render(), first)
    env.step(env.actions.no_op)
    assert not np.array_equal(env.render(), kept)
    np.testing.assert_array_equal(first, kept)


def test_a_node_has_the_colour_of_its_profile():
    env = PlacementEnv("moving-hotspot", overrides=SHORT, render_mode="rgb_array")
    image = drawn(env)
    palette = make_palette(env.scenario)
    node_map = env._renderer._scene.fleet_map
    left, right = node_map.columns.start, node_map.columns.stop
    top, bottom = node_map.rows.start, node_map.rows.stop
    state = env.fleet.state
    clear = 0
    for node in range(25):
        gap = np.hypot(
            state.node_x[0] - state.node_x[0, node], state.node_y[0] - state.node_y[0, node]
        )
        gap[node] = np.inf
        if gap.min() < 0.4 or state.receiving[0, node]:
            continue
        column = round(left + (right - left) * state.node_x[0, node] / 5.0 - 0.5)
        row = round(bottom - (bottom - top) * state.node_y[0, node] / 5.0 - 0.5)
        color = palette.profile_color[state.profile[0, node]]
        np.testing.assert_array_equal(image[row, column], list(bytes.fromhex(color[1:])))
        clear += 1
    assert clear >= 5


def test_a_node_that_is_down_has_no_colour():
    env = PlacementEnv("moving-hotspot", overrides=SHORT, render_mode="rgb_array")
    before = drawn(env)
    env.fleet.state.up[0, :] = False
    after = env.render()
    hue = np.array(list(bytes.fromhex(make_palette(env.scenario).profile_color[2][1:])))
    assert (before[:, :520] == hue).all(axis=-1).sum() > 50
    assert not (after[:, :520] == hue).all(axis=-1).any()


def test_a_node_without_a_gpu_is_no_disc():
    env = PlacementEnv("mixed-fleet", overrides=SHORT, render_mode="rgb_array")
    image = drawn(env)
    node_map = env._renderer._scene.fleet_map
    rows, columns = node_map.rows, node_map.columns
    state, region = env.fleet.state, env.scenario.region
    bare = np.flatnonzero(~(state.slots[0] > 0).any(axis=1))
    assert 0 < len(bare) < 25
    for node in bare:
        x = columns.start + state.node_x[0, node] / region.width_km * (columns.stop - columns.start)
        y = rows.stop - state.node_y[0, node] / region.height_km * (rows.stop - rows.start)
        np.testing.assert_array_equal(image[round(y - 0.5), round(x - 0.5)], 255)


def test_what_is_shortened_keeps_its_end():
    assert shortened("roots_assistant_ab", 9) == "ro…ant_ab"
    assert len(shortened("x" * 99, 20)) == 20
    assert shortened("deep_1", 9) == "deep_1"


def test_nothing_is_drawn_without_a_mode_and_copies_draw_for_themselves():
    assert drawn(PlacementEnv("toy", overrides=SHORT)) is None
    env = PlacementEnv("toy", overrides=SHORT, render_mode="rgb_array")
    image = drawn(env)
    twin = env.fork()
    assert twin.render_mode is None
    assert image is not None


def test_human_mode_without_a_display_does_nothing(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not Window("title").is_open
    env = PlacementEnv("toy", overrides=SHORT, render_mode="human")
    assert drawn(env) is None
    env.close()


def test_matplotlib_loads_only_when_something_is_drawn():
    code = (
        "import sys; from edgegym.envs.placement import PlacementEnv as P\n"
        "env = P('toy', overrides={'initial.warmup_s': 1.0}); env.reset(seed=0)\n"
        "assert 'matplotlib' not in sys.modules\n"
        "env = P('toy', overrides={'initial.warmup_s': 1.0}, render_mode='rgb_array')\n"
        "env.reset(seed=0); env.render()\n"
        "assert 'matplotlib.figure' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_families_have_the_colour_of_the_profile_that_serves_them():
    scenario = preset("moving-hotspot")
    palette = make_palette(scenario)
    homes = best_profiles(scenario)
    names = [scenario.profile_names[home] for home in homes]
    assert names == ["deep_1", "deep_2", "deep_3", "deep_4", "deep_5", "deep_6", "shallow"]
    for family, home in enumerate(homes):
        shade = bytes(np.rint(255 * palette.family_rgb[family]).astype(np.uint8))
        assert "#" + shade.hex().upper() == palette.profile_color[home]
    looks = list(zip(palette.profile_color, palette.profile_dot, strict=True))
    assert len(set(looks)) == len(looks)


def test_many_profiles_stay_distinct_and_in_the_picture():
    families = 24
    document = preset("moving-hotspot").document()
    document["forest"] = [{"name": f"v{k}", "depth_tokens": 512} for k in range(families)]
    document["profiles"] = [{"name": "none", "vertices": []}] + [
        {"name": f"a_profile_with_a_long_name_{k}", "vertices": [f"v{k}"]} for k in range(families)
    ]
    document["request_types"] = [
        {
            "name": f"t{k}",
            "path": f"v{k}",
            "input_tokens": 1024,
            "output_tokens": 20,
            "family": f"f{k}",
            "share": 1.0 / families,
        }
        for k in range(families)
    ]
    document["demand"]["modulations"] = []
    document["initial"]["mix"] = {"none": 1.0}
    scenario = type(preset("toy")).from_document(document)
    palette = make_palette(scenario)
    looks = list(zip(palette.profile_color, palette.profile_dot, strict=True))
    assert len(set(looks)) == len(looks)
    assert drawn(PlacementEnv(scenario, render_mode="rgb_array"), steps=0).shape == (540, 960, 3)


def test_arcs_turn_clockwise_from_the_top():
    points = arcs(np.array([1.0]), np.array([2.0]), 0.5, np.array([0.25]))[0]
    np.testing.assert_allclose(points[0], [1.0, 2.5])
    np.testing.assert_allclose(points[-1], [1.5, 2.0])
    pie = pies(np.array([1.0]), np.array([2.0]), 0.5, np.array([0.25]))[0]
    np.testing.assert_allclose(pie[-1], [1.0, 2.0])


def test_chart_leaves_gaps_and_shows_the_last_value():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    chart = StripChart(axes, title="t", unit="%", horizon_min=1.0, color="#000000", time_axis=True)
    chart.update([0.1, 0.2, 0.3], [50.0, 62.4, float("nan")])
    line, tip, value = chart.moving
    assert list(tip.get_xdata()) == [0.2]
    assert value.get_text() == "62 %"
    assert np.isnan(line.get_ydata()[2])
    chart.update([], [])
    assert value.get_text() == ""
