"""Every row of the table against XLA: values and derivatives at random, tied, infinite, NaN and empty inputs.

Operations on single numbers are tried on a grid of all kinds of numbers, all in one kernel. Of the others there is an
example each, in which its primitive must occur. A row without a test fails.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax import lax

from shadowfit.complementarity.small_solve import small_solve
from shadowfit.kernels import UnsupportedError, code, kernel, slopes
from shadowfit.kernels.row import TABLE, Row
from shadowfit.kernels.rules.entries import elementwise

NUMBERS = [0.3, -0.7, 1.2, -2.4, 0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -3.5, 40.0, 1e-9, np.inf, -np.inf, np.nan]
FEW = [0.3, -0.7, 1.2, 0.0, 2.0, -1.0, np.inf, -np.inf, np.nan]


def truth(function):
    """An operation on truth values, as one on numbers."""
    return lambda *x: function(*(a > 0.1 for a in x)).astype(float)


def compared(function):
    return lambda a, b: function(a, b).astype(float)


ENTRIES = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "rem": lax.rem,
    "neg": lax.neg,
    "square": lax.square,
    "one_minus_square": getattr(lax, "one_minus_square", lambda x: (1.0 - x) * (1.0 + x)),
    "integer_pow": lambda x: jnp.stack([lax.integer_pow(x, n) for n in (-3, -2, -1, 0, 1, 2, 3, 5)]),
    "pow": lax.pow,
    "sqrt": lax.sqrt,
    "rsqrt": lax.rsqrt,
    "cbrt": lax.cbrt,
    "exp": lax.exp,
    "exp2": lax.exp2,
    "expm1": lax.expm1,
    "log": lax.log,
    "log2": jnp.log2,
    "log1p": lax.log1p,
    "sin": lax.sin,
    "cos": lax.cos,
    "tan": lax.tan,
    "asin": lax.asin,
    "acos": lax.acos,
    "atan": lax.atan,
    "atan2": lax.atan2,
    "sinh": lax.sinh,
    "cosh": lax.cosh,
    "tanh": lax.tanh,
    "asinh": lax.asinh,
    "acosh": lax.acosh,
    "atanh": lax.atanh,
    "erf": lax.erf,
    "erfc": lax.erfc,
    "logistic": lax.logistic,
    "abs": lax.abs,
    "sign": lax.sign,
    "floor": lax.floor,
    "ceil": lax.ceil,
    "round": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "max": lax.max,
    "min": lax.min,
    "clamp": lax.clamp,
    "lt": compared(lax.lt),
    "le": compared(lax.le),
    "gt": compared(lax.gt),
    "ge": compared(lax.ge),
    "eq": compared(lax.eq),
    "ne": compared(lax.ne),
    "and": truth(lambda a, b: a & b),
    "or": truth(lambda a, b: a | b),
    "xor": truth(lambda a, b: a ^ b),
    "not": truth(lambda a: ~a),
    "is_finite": lambda x: lax.is_finite(x).astype(float),
    "select_n": lambda c, a, b: lax.select_n(c > 0.0, a, b),
    "stop_gradient": lax.stop_gradient,
    "convert_element_type": lambda x: (x.astype(bool) & (x < 2.0)).astype(float),
    "reduce_precision": lambda x: lax.reduce_precision(x, 11, 52),
}
OPERANDS = dict.fromkeys(("add", "sub", "mul", "div", "rem", "pow", "atan2", "max", "min", "and", "or", "xor"), 2)
OPERANDS |= {"lt": 2, "le": 2, "gt": 2, "ge": 2, "eq": 2, "ne": 2, "clamp": 3, "select_n": 3}


def grid(count):
    """All combinations of some numbers."""
    return np.array(list(itertools.product({1: NUMBERS, 2: NUMBERS, 3: FEW}[count], repeat=count)))


def values_and_slopes(name, differentiate):
    """A function of a few numbers that gives its value and its derivatives by each, if the operation has any."""
    function, count = ENTRIES[name], OPERANDS.get(name, 1)
    sloped = TABLE[name].code is None or TABLE[name].slope is not None

    def run(numbers):
        given = [numbers[i] for i in range(count)]
        found = [jnp.atleast_1d(function(*given))]
        for i in range(count if sloped else 0):
            found.append(differentiate(lambda x, i=i: function(*given[:i], x, *given[i + 1 :]), given[i]))
        return jnp.concatenate(found)

    return run


def by_kernel(function, at):
    return slopes(lambda x: jnp.atleast_1d(function(x[0])), at[None])[1][:, 0]


def by_jax(function, at):
    return jnp.atleast_1d(jax.jvp(function, (at,), (jnp.ones(()),))[1])


def both_ways(count):
    """Values and slopes of all operations of so many operands on a grid, by a kernel and by XLA."""
    names = [name for name in ENTRIES if OPERANDS.get(name, 1) == count]
    numbers = grid(count)

    def all_of(differentiate):
        runs = [values_and_slopes(name, differentiate) for name in names]
        return lambda x: [run(x) for run in runs]

    compiled = kernel(lambda s, c, v: all_of(by_kernel)(v[0]), [], [], [numbers[0]], None)
    ours = compiled([], [], [numbers])
    theirs = jax.jit(jax.vmap(all_of(by_jax)))(numbers)
    return {name: (a, np.asarray(b)) for name, a, b in zip(names, ours, theirs, strict=True)}


@pytest.fixture(scope="module")
def tried():
    return {count: both_ways(count) for count in (1, 2, 3)}


@pytest.mark.parametrize("name", ENTRIES)
def test_operations_on_numbers(tried, name):
    count = OPERANDS.get(name, 1)
    ours, theirs = tried[count][name]
    for numbers, a, b in zip(grid(count), ours, theirs, strict=True):
        # Where a function has no value it has no slopes, whatever a version of JAX makes of them.
        size = 1 if np.isnan(b[0]) else len(b)
        np.testing.assert_allclose(a[:size], b[:size], rtol=2e-12, atol=1e-15, err_msg=f"{name}{tuple(numbers)}")


@pytest.mark.parametrize("name", [name for name in ENTRIES if TABLE[name].fold is not None])
def test_what_is_known_is_folded_to_the_same(tried, name):
    row, count = TABLE[name], OPERANDS.get(name, 1)
    threshold = 0.0 if name == "select_n" else 0.1
    with np.errstate(all="ignore"):
        columns = [x > threshold if i < row.truths else x for i, x in enumerate(grid(count).T)]
        found = np.asarray(row.fold(*columns)).astype(float)
    np.testing.assert_allclose(found, tried[count][name][1][:, 0], rtol=1e-12, atol=1e-15)


@jax.custom_jvp
def doubled(x, y):
    return 2.0 * x + y


@doubled.defjvp
def _doubled_slope(primals, tangents):
    # Not the derivative of the value, so that it shows which is taken.
    x, y = primals
    return doubled(x, y), 5.0 * x * tangents[0] + tangents[1]


@jax.custom_batching.custom_vmap
def own_vmap(x):
    return 3.0 * x


@own_vmap.def_vmap
def _own_vmap_rule(size, batched, x):
    return 3.0 * x, batched[0]


@jax.custom_vjp
def own_vjp(x):
    return x * x


own_vjp.defvjp(lambda x: (own_vjp(x), x), lambda x, g: (2.0 * x * g,))


def loop(x):
    def body(state):
        i, y = state
        return i + 1, y * x[0, 0] + i

    return lax.while_loop(lambda state: state[0] < 3, body, (0, x))[1]


EXAMPLES = {
    "dot_general": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "reduce_sum": lambda x: x.sum(axis=1),
    "reduce_prod": lambda x: x.prod(axis=0),
    "reduce_max": lambda x: x.max(axis=1),
    "reduce_min": lambda x: x.min(axis=(0, 1)),
    "reduce_and": lambda x: jnp.where((x > 0.1).all(axis=1), x[:, 0], x[:, 1]),
    "reduce_or": lambda x: jnp.where((x > 0.1).any(axis=1), x[:, 0], x[:, 1]),
    "reduce_xor": lambda x: jnp.where(lax.reduce_xor(x > 0.1, axes=(1,)), x[:, 0], x[:, 1]),
    "cumsum": lambda x: lax.cumsum(x, axis=1),
    "cumprod": lambda x: lax.cumprod(x, axis=0, reverse=True),
    "cummax": lambda x: lax.cummax(x, axis=1),
    "cummin": lambda x: lax.cummin(x, axis=0),
    "reshape": lambda x: x.reshape(3, 2),
    "transpose": lambda x: x.T,
    "squeeze": lambda x: lax.squeeze(x[:1], (0,)),
    "rev": lambda x: lax.rev(x, (0, 1)),
    "broadcast_in_dim": lambda x: jnp.broadcast_to(x[:, None], (2, 4, 3)),
    "slice": lambda x: lax.slice(x, (0, 0), (2, 3), (1, 2)),
    "concatenate": lambda x: jnp.concatenate([x, jnp.ones((2, 1))], axis=1),
    "stack": lambda x: jnp.stack([x[0], x[1], jnp.zeros(3)], axis=1),
    "unstack": lambda x: jnp.unstack(x, axis=1)[2],
    "split": lambda x: jnp.split(x, [1], axis=1)[1],
    "pad": lambda x: lax.pad(x, x[0, 0], [(1, -1, 2), (-1, 2, 0)]),
    "iota": lambda x: x * lax.broadcasted_iota(float, (2, 3), 1),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (0, 2), (2, 2)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:1, :2], (1, 7)),
    "gather": lambda x: x[:, np.array([2, 0, 2])],
    "scatter": lambda x: x.at[np.array([1])].set(x[:1]),
    "scatter-add": lambda x: x.at[:, np.array([0, 0])].add(x[:, 1:]),
    "scatter-sub": lambda x: x.at[0].subtract(x[1]),
    "scatter-mul": lambda x: x.at[0].multiply(x[1], unique_indices=True),
    "scatter-max": lambda x: lax.stop_gradient(x).at[0].max(lax.stop_gradient(x[1])),
    "scatter-min": lambda x: lax.stop_gradient(x).at[0].min(lax.stop_gradient(x[1])),
    "copy": lambda x: jnp.array(x, copy=True),
    "optimization_barrier": lax.optimization_barrier,
    "add_any": jax.grad(lambda x: jnp.sum(jnp.sin(x) + x * x)),
    "jit": jax.jit(lambda x: 2.0 * x),
    "remat2": jax.checkpoint(lambda x: jnp.sin(x) * x),
    "custom_jvp_call": lambda x: doubled(x, x[0, 0]),
    "custom_vjp_call": own_vjp,
    "custom_vmap_call": own_vmap,
    "slopes": lambda x: slopes(lambda y: y**3, x[0])[1],
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), x[:, 0], x.T, reverse=True)[1],
    "while": loop,
    "cond": lambda x: lax.switch(np.int32(1), [lambda y: y, lambda y: 2.0 * y], x),
    "platform_index": lambda x: lax.platform_dependent(x, cpu=lambda y: 3.0 * y, default=lambda y: y),
    "small_solve": lambda x: small_solve(x @ x.T + 4.0 * jnp.eye(2), x, definite=True),
}
NEWER = ("stack", "unstack")
"""Operations that older versions of JAX write with others."""
DIFFERENTIATED = [name for name in EXAMPLES if name not in ("custom_vjp_call", "slopes")]
"""Forward mode of JAX has nothing for the others either."""

RANDOM = np.random.default_rng(3).uniform(-1.5, 1.5, (2, 3))
INPUTS = {
    "random": RANDOM,
    "tied": np.full((2, 3), 0.5),
    "zero": np.zeros((2, 3)),
    "nan": np.where(np.arange(6).reshape(2, 3) == 1, np.nan, RANDOM),
    "infinite": np.where(np.arange(6).reshape(2, 3) == 4, np.inf, RANDOM),
}
FINITE = ("random", "tied", "zero")


def names_in(jaxpr):
    """Primitives of a function and of those inside."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            if hasattr(inner, "eqns"):
                yield from names_in(getattr(inner, "jaxpr", inner))


def examples(names, function_of):
    """Results of all examples, by one kernel and by one program of XLA: name → (ours, theirs), by kind of input."""
    functions = [function_of(name) for name in names]

    def all_of(x):
        return [function(x) for function in functions]

    stacked = np.stack([*INPUTS.values()])
    ours = kernel(lambda s, c, v: all_of(v[0]), [], [], [RANDOM], None)([], [], [stacked])
    theirs = jax.jit(lambda *inputs: [jnp.stack(x) for x in zip(*map(all_of, inputs), strict=True)])(*stacked)
    return {name: (a, np.asarray(b)) for name, a, b in zip(names, ours, theirs, strict=True)}


@pytest.fixture(scope="module")
def values():
    return examples([*EXAMPLES], EXAMPLES.get)


@pytest.mark.parametrize("name", EXAMPLES)
def test_operations_on_arrays(values, name):
    if hasattr(lax, f"{name}_p") or name not in NEWER:
        assert name in set(names_in(jax.make_jaxpr(EXAMPLES[name])(RANDOM).jaxpr))
    for kind, ours, theirs in zip(INPUTS, *values[name], strict=True):
        if kind in FINITE or name != "slopes":
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14, err_msg=kind)


@pytest.fixture(scope="module")
def jacobians():
    def of(name):
        def flat(x):
            return EXAMPLES[name](x.reshape(2, 3)).ravel()

        # In a program of XLA, these are JAX's.
        return lambda x: slopes(flat, x.ravel())[1]

    return examples(DIFFERENTIATED, of)


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives_of_operations_on_arrays(jacobians, name):
    for kind, ours, theirs in zip(INPUTS, *jacobians[name], strict=True):
        if kind in FINITE:  # elsewhere, JAX makes NaN of zero tangents
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13, err_msg=kind)


EMPTY = {
    "dot_general": lambda x: x @ x.T,
    "reduce_sum": lambda x: x.sum(axis=1),
    "reduce_prod": lambda x: x.prod(axis=(0, 1)),
    "reduce_max": lambda x: lax.reduce_max(x, axes=(1,)),
    "reduce_min": lambda x: lax.reduce_min(x, axes=(1,)),
    "reduce_and": lambda x: (x > 0).all(axis=1) * 1.0,
    "reduce_or": lambda x: (x > 0).any(axis=1) * 1.0,
    "cumsum": lambda x: jnp.concatenate([lax.cumsum(x, axis=1), jnp.ones((2, 1))], axis=1),
    "entries": lambda x: jnp.concatenate([jnp.sin(x) + x, jnp.ones((2, 1))], axis=1),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.ones(2), x.T)[0],
    "gather": lambda x: jnp.concatenate([x[:, np.zeros(0, int)], jnp.ones((2, 2))], axis=1),
    "pad": lambda x: lax.pad(x, 1.5, [(0, 0, 0), (1, 1, 2)]),
}


def test_nothing():
    nothing = np.zeros((1, 2, 0))

    def all_of(x):
        return [function(x) for function in EMPTY.values()]

    given = [nothing, np.zeros((1, 1))]
    ours = kernel(lambda s, c, v: all_of(v[0]), [], [], [x[0] for x in given], None)([], [], given)
    for name, a, b in zip(EMPTY, ours, jax.jit(all_of)(nothing[0]), strict=True):
        np.testing.assert_array_equal(a[0], b, err_msg=name)


def test_a_row_can_be_added(monkeypatch):
    """The example of docs/kernels.md."""
    numbers = np.array([0.3, 1.0, 2.5, -0.5, 0.0, np.inf, np.nan])
    monkeypatch.setitem(TABLE, "lgamma", Row(elementwise, scipy.special.gammaln, None, code.library("lgamma")))
    found = kernel(lambda s, c, v: [lax.lgamma(v[0])], [], [], [numbers[0]], None)([], [], [numbers])[0]
    np.testing.assert_allclose(found, jax.jit(lax.lgamma)(numbers), rtol=1e-12)
    with pytest.raises(UnsupportedError, match="derivative of 'lgamma'"):
        kernel(lambda s, c, v: [slopes(lax.lgamma, v[0])[1]], [], [], [numbers[:1]], None)


def test_every_row_has_a_test():
    assert set(TABLE) == {*ENTRIES, *EXAMPLES}
