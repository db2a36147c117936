"""Inner products of bytes, by the instruction that multiplies and adds four at a time where the processor has it.

A code is a vector of bytes 0 to 255 that stand for -128 to 127; a query is one of bytes -127 to 127. Four coordinates
are a 32-bit word, and the words of a block of labels lie coordinate by coordinate, so that a vector register holds the
same four coordinates of 16 labels and no sum is ever taken across it. Sums are integers: exact, in any order.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload

from wsabie.kernels._jit import INLINE

LABELS = 64
"""Labels of a block: for four queries their sums fill half of the registers of 512 bits."""

WIDEST = 60_000
"""Coordinates whose sum still fits into 32 bits."""

_INT, _LONG = ir.IntType(32), ir.IntType(64)


@cache
def by_bytes() -> bool:
    """Whether this processor multiplies bytes as such; without it a matrix product is quicker for many queries."""
    features = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    return "+avx512vnni" in features


def block_products(words, start, queries, starts, first, many, out):
    """Inner products of a block of LABELS codes with the queries first, first + 1, ...

    Parameters
    ----------
    words : 1-D uint32
        The block begins at `start`: for each four coordinates a word per label.
    queries : (n, n_words) uint32, C order
        Four signed bytes each.
    starts : (n,) int32
        What the sums begin with: -128 times the sum of a query's bytes.
    first : int
    many : tuple
        As long as there are queries to take.
    out : (len(many) or more, LABELS) int32, C order, filled in place
    """
    n_words = queries.shape[1]
    block = words[start : start + n_words * LABELS].reshape(n_words, LABELS).view(np.uint8).astype(np.int32)
    block = block.reshape(n_words, LABELS, 4)
    for row in range(len(many)):
        query = queries[first + row].view(np.int8).astype(np.int32).reshape(n_words, 4)
        out[row] = starts[first + row] + np.einsum("wlb,wb->l", block, query)


@intrinsic
def _products(_, words, start, queries, starts, first, many, out):
    n_queries = len(many)

    def products(context, builder, signature, arguments):
        arrays = [
            cgutils.create_struct_proxy(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
            if isinstance(kind, types.Array)
        ]
        codes, asked, begun, found = arrays
        start, first = arguments[1], arguments[4]
        n_words = builder.extract_value(asked.shape, 1)
        block = builder.gep(codes.data, [start])
        rows = [builder.add(first, _LONG(i)) for i in range(n_queries)]
        lines = [builder.gep(asked.data, [builder.mul(row, n_words)]) for row in rows]
        wide, at_once, step = _how()
        for label in range(0, LABELS, wide * at_once):
            zeros = [_everywhere(builder, builder.load(builder.gep(begun.data, [row])), wide) for row in rows]
            sums = _sums(builder, (block, label), lines, n_words, zeros, (wide, at_once, step))
            for i, theirs in enumerate(sums):
                for v, value in enumerate(theirs):
                    place = builder.gep(found.data, [_LONG(i * LABELS + label + v * wide)])
                    builder.store(value, builder.bitcast(place, value.type.as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(words, start, queries, starts, first, many, out), products


@overload(block_products, jit_options=INLINE)
def _block_products(words, start, queries, starts, first, many, out):
    def products(words, start, queries, starts, first, many, out):
        _products(words, start, queries, starts, first, many, out)

    return products


def _how():
    """Numbers in a register, registers of labels at once, and how to add products of four bytes."""
    return (16, 4, _by_one_instruction) if by_bytes() else (8, 2, _by_parts)


def _sums(builder, where, lines, n_words, zeros, how):
    """The loop over the words of a few registers of labels, for all queries."""
    (block, label), (wide, at_once, step) = where, how
    vector = ir.VectorType(_INT, wide)
    before = builder.block
    loop, done = builder.append_basic_block("words"), builder.append_basic_block("summed")
    builder.cbranch(builder.icmp_signed("<", _LONG(0), n_words), loop, done)
    builder.position_at_end(loop)
    word = builder.phi(_LONG)
    sums = [[builder.phi(vector) for _ in range(at_once)] for _ in lines]
    place = builder.gep(block, [builder.add(builder.mul(word, _LONG(LABELS)), _LONG(label))])
    codes = []
    for v in range(at_once):
        codes.append(builder.load(builder.bitcast(builder.gep(place, [_LONG(v * wide)]), vector.as_pointer())))
        codes[-1].align = 4
    after = [
        step(builder, own, codes, builder.load(builder.gep(line, [word])), wide)
        for own, line in zip(sums, lines, strict=True)
    ]
    following = builder.add(word, _LONG(1))
    builder.cbranch(builder.icmp_signed("<", following, n_words), loop, done)
    word.add_incoming(_LONG(0), before)
    word.add_incoming(following, loop)
    builder.position_at_end(done)
    result = []
    for own, new, zero in zip(sums, after, zeros, strict=True):
        result.append([builder.phi(vector) for _ in own])
        for into, value, out in zip(own, new, result[-1], strict=True):
            into.add_incoming(zero, before)
            into.add_incoming(value, loop)
            out.add_incoming(zero, before)
            out.add_incoming(value, loop)
    return result


def _by_one_instruction(builder, sums, codes, query, wide):
    vector = ir.VectorType(_INT, wide)
    kind = ir.FunctionType(vector, [vector] * 3)
    add = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
    four = _everywhere(builder, query, wide)
    return [builder.call(add, [own, code, four]) for own, code in zip(sums, codes, strict=True)]


def _by_parts(builder, sums, codes, query, wide):
    """The same of what any processor has."""

    def constant(value):
        return ir.Constant(ir.VectorType(_INT, wide), [value] * wide)

    sums = list(sums)
    for shift in (0, 8, 16, 24):
        signed = builder.ashr(builder.shl(query, _INT(24 - shift)), _INT(24))
        factor = _everywhere(builder, signed, wide)
        for v, code in enumerate(codes):
            byte = builder.and_(builder.lshr(code, constant(shift)), constant(255))
            sums[v] = builder.add(sums[v], builder.mul(byte, factor))
    return sums


def _everywhere(builder, value, wide):
    """A number in each place of a register."""
    nothing = ir.Constant(ir.VectorType(_INT, wide), ir.Undefined)
    one = builder.insert_element(nothing, value, _INT(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_INT, wide), [0] * wide))
