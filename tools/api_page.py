"""Write docs/api.md: what can be imported, its arguments and its first sentence, readable without building the site.

    python -m tools.api_page

Sections and names are listed here; words and signatures are those of the source.
"""

import importlib
import inspect
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
HEAD = """# Python interface

Names are imported from `shadowfit` where it lists them (**bold**), from the module given otherwise. Everything is in
SI units and double precision, which is switched on when a mechanism is built. The tables have the first sentence of
each; [in full](#in-full) below is what `make docs` draws from the source.

```python
from shadowfit import fit, read_model, read_recording

estimate = fit(read_model("my_rig.toml"), read_recording("run.csv"), ["hinge*.viscous", "arm.inertia.zz"])
print(estimate.summary())
```

Each command is one call: `check`, `fit`, `validate`, `advise`, `design`, `simulate`, `export`, `write_report`; an
estimate and a result have `draw`. An estimate shows its verdict (`summary()`, and by itself in a notebook), its table
as a frame (`to_polars()`, `to_pandas()`), and figures: `estimate.plot.machine()`, `.fit()`, `.residuals()`,
`.forces()`, `.forest()`, `.pairs()`, `.rollouts()`. The [gallery](gallery/pendulum.md) has them at work. Ctrl-C ends
a fit at its best state so far, which is returned.

```python
draws = estimate.draw(200)  # possible machines
draws.to_polars(), draws.mechanism(0)
```
"""
SECTIONS: dict[str, tuple[str, ...]] = {
    "Models": (
        *("models.load.read_model", "models.load.load_model", "models.writer.write_model"),
        *("models.update.update_model", "models.catalogue.library"),
    ),
    "Mechanisms": (
        *("mechanism.mechanism.Mechanism", "mechanism.body.Body", "mechanism.joint.connect", "mechanism.joint.hinge"),
        *("mechanism.joint.slider", "mechanism.joint.ball", "mechanism.joint.lock", "mechanism.joint.distance"),
        *("mechanism.friction.Coulomb", "mechanism.friction.Stribeck", "mechanism.laws.TorqueMotor"),
        *("mechanism.laws.DcMotor", "mechanism.laws.VelocityMotor", "mechanism.laws.Spring", "mechanism.laws.Drag"),
        *("mechanism.laws.ConstantForce", "mechanism.contacts.JointLimit", "mechanism.contacts.touch"),
        *("mechanism.contacts.Sphere", "mechanism.contacts.Box", "mechanism.sensors.JointPosition"),
        *("mechanism.sensors.JointSpeed", "mechanism.sensors.PointPosition", "mechanism.sensors.BodyOrientation"),
        *("mechanism.sensors.BodyAngle", "mechanism.sensors.BodyRate", "mechanism.sensors.FunctionSensor"),
        *("mechanism.surroundings.Gravity", "mechanism.surroundings.Input", "mechanism.surroundings.Wrench"),
    ),
    "Simulation": (
        *(
            "dynamics.placement.place",
            "dynamics.simulate.simulate",
            "dynamics.simulate.simulate_many",
            "dynamics.rollout.rollout",
        ),
        *("dynamics.trajectory.Trajectory", "dynamics.trajectory.Diagnostics", "dynamics.state.State"),
        "dynamics.inverse.inverse_dynamics",
    ),
    "Recordings": (
        *("recordings.read.read_recording", "recordings.recording.Recording", "recordings.checks.check_recording"),
    ),
    "Estimation": (
        *(
            "estimation.fit.fit",
            "estimation.problem.parameter.Free",
            "estimation.problem.options.Options",
            "estimation.problem.error_model.ErrorModel",
        ),
        *("estimation.solve.levenberg_marquardt.LevenbergMarquardt", "estimation.solve.levenberg_marquardt.Status"),
        *("estimation.result.Estimate", "estimation.result.ParameterEstimate", "estimation.posterior.Draws"),
        *("estimation.refits.bootstrap.bootstrap", "estimation.refits.profile.profiles"),
    ),
    "Results": (
        *("evaluation.store.save_estimate", "evaluation.store.load_result", "evaluation.report.write_report"),
        *("evaluation.validation.validate", "evaluation.cross_validation.cross_validate"),
        *("evaluation.comparison.compare_models", "evaluation.derived.derived", "evaluation.derived.read_expressions"),
        *("evaluation.advise.advise", "evaluation.advise.Advice", "evaluation.precheck.check"),
        "evaluation.exporting.export",
        "evaluation.plots.Plots",
    ),
    "Experiment design": (
        *("designs.design.design", "designs.design.Design", "designs.settings.DesignSettings"),
        *("designs.limits.Limits", "designs.limits.JointLimits", "designs.limits.InputLimits"),
        "designs.limits.read_limits",
    ),
    "Many recordings, many machines": (
        *("estimation.spread.fleet.fit_fleet", "estimation.spread.result.FleetEstimate"),
        *("estimation.spread.result.Spread", "estimation.spread.result.Individuals"),
        *("recordings.recording_file.RecordingFile", "parallel.cluster.crew"),
    ),
    "Errors": (
        *("errors.ShadowfitError", "errors.UnknownNameError", "errors.MechanismError", "errors.RecordingError"),
        *("errors.SimulationError", "models.errors.ModelFileError", "estimation.problem.parameter.ParameterError"),
        "estimation.problem.problem.ProblemError",
    ),
}


def sections() -> dict[str, tuple[str, ...]]:
    """The sections, and at their end what is public and in none of them."""
    listed = {name.rpartition(".")[2] for names in SECTIONS.values() for name in names}
    package = importlib.import_module("shadowfit")
    rest = [getattr(package, name) for name in package.__all__ if name not in listed]
    more = tuple(f"{thing.__module__.removeprefix('shadowfit.')}.{thing.__name__}" for thing in rest)
    return {**SECTIONS, "More": more} if more else SECTIONS


def page() -> str:
    """The whole page."""
    tables = [f"## {title}\n\n{_table(names)}" for title, names in sections().items()]
    full = "\n".join(f"::: shadowfit.{name}" for names in sections().values() for name in names)
    return "\n".join([HEAD, *tables, f"## In full\n\n{full}\n"])


def _table(names: tuple[str, ...]) -> str:
    rows = ["| name | arguments | what it is |", "|---|---|---|"]
    return "\n".join([*rows, *(_row(name) for name in names)]) + "\n"


def _row(path: str) -> str:
    module, _, name = path.rpartition(".")
    thing = getattr(importlib.import_module(f"shadowfit.{module}"), name)
    public = name in importlib.import_module("shadowfit").__all__
    layer = module.partition(".")[0]
    home = layer if hasattr(importlib.import_module(f"shadowfit.{layer}"), name) else module
    shown = f"**`{name}`**" if public else f"`{name}` (`shadowfit.{home}`)"
    return f"| {shown} | {_arguments(thing)} | {_sentence(thing)} |"


def _arguments(thing: object) -> str:
    """Names of the arguments; those by keyword only behind a star."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    texts, starred = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            texts, starred = [*texts, "*"], True
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        texts.append(f"{stars}{one.name}" if stars or one.default is one.empty else f"{one.name}=…")
    return f"`({', '.join(texts)})`"


def _sentence(thing: object) -> str:
    first = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    # Roles of another documentation system: the last part of what they name.
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", first)
    return plain.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
