"""The report: everything is on the page, nothing is loaded from elsewhere, and a browser draws it without errors."""

import dataclasses
import json
import re
import shutil
import subprocess

import jax
import numpy as np
import pytest

from shadowfit.dynamics import State, place
from shadowfit.evaluation.animation import skeleton
from shadowfit.evaluation.report import page
from shadowfit.geometry import Pose
from shadowfit.mechanism import Body, Mechanism
from shadowfit.models import load_model


def test_everything_is_there(saved):
    text = (saved.folder / "report.html").read_text("utf-8")
    assert text == page(saved), "a report is the same each time it is written"
    assert len(text) < 6e6
    for part in (
        *("the fit converged after", "pendulum.inertia.yy", "hinge.viscous", "kg m²", "identified"),
        *("sha256 " + saved.summary["recordings"][0]["fingerprint"], "jax ", 'id="correlation"', 'id="play"'),
    ):
        assert part in text
    assert not re.search(r'(src|href)="(?!data:)', text), "works offline from a file"


def test_numbers_of_the_charts(saved):
    text = (saved.folder / "report.html").read_text("utf-8")
    numbers = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    channel = numbers["recordings"][0]["channels"][0]
    assert channel["name"] == "theta"
    np.testing.assert_allclose(channel["measured"], saved.tables["swing"]["theta.measured [rad]"], rtol=1e-5)
    assert len(numbers["log"]["cost"]) == len(saved.log["cost"])
    frames = np.array(numbers["animation"]["frames"])
    assert frames.shape == (len(numbers["animation"]["time"]), 2, 3)
    # The hinge is fixed in space and 0.092 m from the centre of mass.
    np.testing.assert_allclose(frames[:, 1], 0.0, atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(frames[:, 0], axis=1), 0.092, atol=2e-3)


def test_a_slider_runs_on_a_rail():
    model = load_model("cartpole")
    states = jax.tree.map(
        lambda *x: np.stack(x),
        *(place(model.mechanism, {"rail": x, "pivot": 0.5}) for x in (0.0, 0.2, -0.1)),
    )
    scene = skeleton(model.mechanism, np.arange(3.0), states)
    (slider,) = scene["sliders"]
    rail, carriage = np.array(slider["rail"]), np.array(slider["carriage"])
    np.testing.assert_array_equal(rail, np.broadcast_to(rail[:1], rail.shape), "it is fixed to the world")
    assert rail[0, :, 0].min() < -0.1 < 0.2 < rail[0, :, 0].max()
    np.testing.assert_allclose(carriage.mean(axis=1)[:, 0], [0.0, 0.2, -0.1], atol=1e-3)
    assert model.mechanism.bodies.index("cart") == slider["body"]


def test_a_body_that_nothing_holds_is_a_cross_with_its_inertia():
    masses = Body(0.3, (1e-3, 2e-3, 2.5e-3, 4e-4, 0.0, -3e-4))
    states = State(Pose(np.zeros((1, 1, 3)), np.array([[[1.0, 0.0, 0.0, 0.0]]])), np.zeros((1, 1, 6)))
    centre, *ends = np.array(skeleton(Mechanism({"drone": masses}), np.zeros(1), states)["frames"][0])
    np.testing.assert_array_equal(centre, 0.0)
    # Six half rods, each of a sixth of the mass: second moments of (m/6) ends endsᵀ / 3.
    second = 0.3 / 18.0 * np.einsum("ni,nj->ij", ends, ends)
    np.testing.assert_allclose(np.trace(second) * np.eye(3) - second, masses.inertia.rows(), atol=1e-5)


def test_names_are_no_markup(saved):
    name = "<script>alert(1)</script>"
    summary = {**saved.summary, "model": {**saved.summary["model"], "name": name}}
    assert name not in page(dataclasses.replace(saved, summary=summary))


@pytest.mark.browser
def test_in_a_browser(saved, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium found: the report is not looked at in a browser (Debian: apt-get install chromium)")
    flags = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=5000"),
    )
    result = subprocess.run(
        [browser, *flags, "--dump-dom", f"file://{saved.folder / 'report.html'}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "CONSOLE" not in result.stderr, result.stderr
    assert 'data-ready="yes"' in result.stdout, "the script ran to its end"
    charts = result.stdout.count("<svg")
    # One for the sensor, one for its residual, two parameters' pieces, three of the hinge's unexplained force, two of
    # convergence, three of diagnostics.
    assert charts == 12
    assert "NaN" not in re.sub(r"<script.*?</script>", "", result.stdout, flags=re.DOTALL)
    assert result.stdout.count("<td") >= 2 * 8 + 2 * 2, "two parameters with eight cells, and their correlations"
