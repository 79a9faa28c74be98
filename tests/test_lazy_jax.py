"""JAX is loaded where it is used and not before, and finds everything prepared, whoever imports it."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from shadowfit.lazy_jax import _Lazy, at_first_call, is_array, is_traced, jax, jnp, namespace


def told_by(program):
    """What a program in a process of its own prints."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


BUILD = """
import sys
from shadowfit import load_model
mechanism = load_model("pendulum").mechanism
print("jax" in sys.modules)
"""


def test_a_mechanism_is_built_without_jax_and_a_tree_where_jax_comes_later():
    program = BUILD + (
        "import jax, jax.numpy as jnp\n"
        "print(len(jax.tree.leaves(mechanism)) > 10, jnp.zeros(1).dtype)\n"
        "class Later(type(mechanism.gravity)): pass\n"
        "print(len(jax.tree.leaves(Later())))"
    )
    assert told_by(program) == ["False", "True", "float64", "2"]


def test_whoever_has_jax_first_is_given_double_precision_by_the_first_mechanism():
    program = "import jax, jax.numpy as jnp\nprint(jnp.zeros(1).dtype)\n" + BUILD + "print(jnp.zeros(1).dtype)"
    assert told_by(program) == ["float32", "True", "float64"]


def test_looking_for_jax_does_not_load_it_and_changes_nothing():
    program = (
        "import importlib.util, sys\n" + BUILD + "importlib.util.find_spec('jax')\nprint('jax' in sys.modules)\n"
        "import jax, jax.numpy as jnp\n"
        "print(jnp.zeros(1).dtype, type(jax.__spec__.loader).__name__ == type(jax.__loader__).__name__)"
    )
    assert told_by(program) == ["False", "False", "float64", "True"]


def test_what_waits_is_done_once_when_jax_comes_and_at_once_afterwards():
    program = (
        "from shadowfit.lazy_jax import is_loaded, jnp, once_loaded\n"
        "once_loaded(lambda: print('first'))\nprint(is_loaded())\njnp.zeros(1)\n"
        "once_loaded(lambda: print('second'))\njnp.zeros(1)\nprint(is_loaded())"
    )
    assert told_by(program) == ["False", "first", "second", "True"]


def test_nothing_is_an_array_of_jax_where_there_is_none():
    program = (
        "import sys, numpy as np\nfrom shadowfit.lazy_jax import is_array, is_traced, namespace\n"
        "from shadowfit.arrays import Array\n"
        "x = np.zeros(3)\nprint(is_array(x), is_traced(x), namespace(x) is np, isinstance(x, Array))\n"
        "print('jax' in sys.modules)"
    )
    assert told_by(program) == ["False", "False", "True", "True", "False"]


def test_arrays_are_told_apart():
    seen = []
    jax.jit(lambda x: seen.extend([is_array(x), is_traced(x), namespace(x, np.zeros(2))]) or x)(np.zeros(2))
    assert seen[:2] == [True, True]
    assert seen[2] is jnp
    assert (is_array(jnp.zeros(2)), is_traced(jnp.zeros(2)), namespace(np.zeros(2), 1.0)) == (True, False, np)


def test_a_module_that_waits_can_be_pickled_and_is_asked_nothing_by_python_itself():
    again = pickle.loads(pickle.dumps(_Lazy("jax.numpy")))
    assert again.pi == np.pi
    with pytest.raises(AttributeError):
        _ = _Lazy("no_such_module").__wrapped__


def test_a_function_is_made_at_its_first_call_and_once():
    made = []

    @at_first_call(lambda function: made.append(function) or (lambda x: 2 * function(x)))
    def next_to(x):
        """Documented."""
        return x + 1

    assert made == []
    assert (next_to(1), next_to(2), len(made)) == (4, 6, 1)
    assert next_to.__doc__ == "Documented."
