"""exp, log, softplus for compiled loops, as polynomials that vectorize (the C library's do not)."""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from lodim.engine.compiled import njit

# A division that may raise does not vectorize. Without a fastmath option the caller's would be
# used, and reordering breaks rounding by adding and subtracting a large number. Fusing a product
# and a sum into one instruction is allowed: it rounds once and takes half of the time.
FAST = {"error_model": "numpy", "fastmath": {"contract"}}


def exp_negative(x):
    """Return exp(x) for x <= 0, at least exp(-708) (float32: exp(-87))."""
    return math.exp(x)


def exp_bounded(x):
    """Return exp(x) for x clipped to at least -708 and at most 700 (float32: -87 and 80)."""
    return math.exp(min(x, 700.0))


def log1p_unit(e):
    """Return log(1 + e) for 0 <= e <= 1."""
    return math.log1p(e)


def softplus(z):
    """Return log(1 + exp(z)) and its derivative 1 / (1 + exp(-z)), at least exp(-708)."""
    e = math.exp(-abs(z))
    share = 1.0 / (1.0 + e)
    return max(z, 0.0) + math.log1p(e), share if z > 0.0 else e * share


def log_positive(x):
    """Return log(x) for a normal number x > 0."""
    return math.log(x)


def like(number, x):
    """Return a number with the precision of x, so that kernels for float32 compute in float32."""
    return type(x)(number)


@overload(like)
def _like(number, x):
    kind = np.float64 if x == types.float64 else np.float32
    return lambda number, x: kind(number)


@intrinsic
def _scale_by_power(typingctx, q, t):
    """Return q * 2**k for an integer k, which is given by the low bits of a float t.

    t is k + 1.5 * 2**52 (in float32: k + 1.5 * 2**23); Numba passes `typingctx`"""
    wide = q == types.float64
    bits, mantissa = (64, 52) if wide else (32, 23)

    def codegen(context, builder, signature, args):
        word = ir.IntType(bits)
        q_bits, t_bits = (builder.bitcast(a, word) for a in args)
        moved = builder.add(q_bits, builder.shl(t_bits, word(mantissa)))
        return builder.bitcast(moved, ir.DoubleType() if wide else ir.FloatType())

    return q(q, t), codegen


@intrinsic
def _exponent(typingctx, x):
    """Return the exponent k of x = 2**k m, 1 <= m < 2, as a float; Numba passes `typingctx`."""
    wide = x == types.float64
    bits, mantissa, bias = (64, 52, 1023) if wide else (32, 23, 127)

    def codegen(context, builder, signature, args):
        word, kind = ir.IntType(bits), ir.DoubleType() if wide else ir.FloatType()
        k = builder.lshr(builder.bitcast(args[0], word), word(mantissa))
        large = builder.or_(k, word((bias + mantissa) << mantissa))  # bits of 2**mantissa + k
        return builder.fsub(builder.bitcast(large, kind), kind(2.0**mantissa + bias))

    return x(x), codegen


# Polynomials, highest power first: exp on [-ln 2 / 2, ln 2 / 2] (Taylor; in float32 the minimax
# polynomial of Cephes), and atanh(s) / s in s**2 on [0, 1/9] (minimax).
_EXP64 = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))
_EXP32 = (1.9875691e-4, 1.3981999e-3, 8.3334519e-3, 4.1665795e-2, 1.6666665e-1, 0.5, 1.0, 1.0)
_HIGH64 = (0.08890381913056651, 0.04940394524382393, 0.06795652742789947, 0.07681838124445817)
_MID64 = (0.09091429900236955, 0.11111095430673142, 0.1428571455582858, 0.199999999976438)
_LOG64 = (*_HIGH64, *_MID64, 0.33333333333341286, 1.0)
_LOG32 = (0.1407888918155454, 0.13982578872598633, 0.20012297615351873, 0.33333160820688884, 1.0)


def _polynomial(coefficients, kind):
    """Return a compiled polynomial; coefficients : highest power first; kind : type of numbers."""
    even, odd = (tuple(kind(c) for c in coefficients[::-1][i::2][::-1]) for i in range(2))
    even_first, even_rest, odd_first, odd_rest = even[0], even[1:], odd[0], odd[1:]

    @njit(**FAST, inline="always")
    def value(x):
        u = x * x
        q, s = even_first, odd_first
        for c in even_rest:
            q = q * u + c
        for c in odd_rest:
            s = s * u + c
        return q + x * s

    return value


@overload(exp_negative, jit_options=FAST)
def _exp_negative(x):
    if x == types.float64:
        kind, coefficients = np.float64, _EXP64
        numbers = (-708.0, 1.5 * 2**52, 6.93147180369123816490e-01, 1.90821492927058770002e-10)
    else:
        kind, coefficients = np.float32, _EXP32
        numbers = (-87.0, 1.5 * 2**23, 0.693359375, -2.12194440e-4)
    lowest, shift, high, low = (kind(v) for v in numbers)
    log2e, exp_rest = kind(1.0 / math.log(2.0)), _polynomial(coefficients, kind)
    # exp(x) = 2**k exp(r), where x = k ln 2 + r (Cody & Waite).

    def impl(x):
        x = max(x, lowest)
        t = x * log2e + shift
        k = t - shift
        return _scale_by_power(exp_rest((x - k * high) - k * low), t)

    return impl


@overload(exp_bounded, jit_options=FAST)
def _exp_bounded(x):
    largest = np.float64(700.0) if x == types.float64 else np.float32(80.0)
    return lambda x: exp_negative(min(x, largest))


def _atanh(x):
    """Return a compiled function of s that returns atanh(s), 0 <= s <= 1/3, in x's precision."""
    kind, coefficients = (np.float64, _LOG64) if x == types.float64 else (np.float32, _LOG32)
    ratio = _polynomial(coefficients, kind)
    return njit(**FAST, inline="always")(lambda s: s * ratio(s * s))


@overload(log1p_unit, jit_options=FAST)
def _log1p_unit(e):
    atanh, two = _atanh(e), (np.float64 if e == types.float64 else np.float32)(2.0)
    return lambda e: two * atanh(e / (two + e))


@overload(softplus, jit_options=FAST)
def _softplus(z):
    kind = np.float64 if z == types.float64 else np.float32
    atanh, zero, one, two = _atanh(z), kind(0.0), kind(1.0), kind(2.0)

    def impl(z):
        e = exp_negative(-abs(z))
        near = one + e
        far = two + e
        unit = one / (near * far)
        share = far * unit  # 1 / (1 + e)
        value = max(z, zero) + two * atanh(e * (near * unit))
        return value, share if z > zero else e * share

    return impl


@overload(log_positive, jit_options=FAST)
def _log_positive(x):
    kind, shift = (np.float64, 1.5 * 2**52) if x == types.float64 else (np.float32, 1.5 * 2**23)
    one, shift, ln2 = kind(1.0), kind(shift), kind(math.log(2.0))

    def impl(x):
        k = _exponent(x)
        return k * ln2 + log1p_unit(_scale_by_power(x, shift - k) - one)

    return impl
