"""Asking for memory before it is needed: a kernel then need not wait for what it reads next."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LINE = 64  # bytes that memory is read in


@intrinsic
def ask_for(typingctx, array, offset):
    """Have the line of memory `offset` bytes after an array's first brought near, if there is one.

    It changes nothing and reads nothing: the place may be beyond the array's end.
    """

    def codegen(context, builder, signature, args):
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        first = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.gep(builder.bitcast(first, byte), [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, near, data = word(0), word(2), word(1)
        builder.call(prefetch, [place, read, near, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
