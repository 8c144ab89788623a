#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the seed inputs of corpus/elf, corpus/eh-frame and corpus/code with gcc and binutils (and lld where there is one). They
# are committed: run this only to add some.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >library.c <<'END'
extern int other(int);
int exported(int n) { char room[256]; __builtin_memset(room, n, sizeof(room)); return other(room[n & 255]) + 1; }
void _start(void) { __asm__("xor %ebp, %ebp"); exported(1); }
END
flags="-ffile-prefix-map=$work=. -O2 -fPIC -nostdlib -shared -Wl,-z,max-page-size=4096 -Wl,--hash-style=gnu"
gcc $flags -Wl,-z,lazy library.c -o "$here/corpus/elf/library"
gcc $flags -Wl,--build-id=none library.c -o "$here/corpus/elf/no-build-id"
gcc $flags -g -gz=zlib library.c -o "$here/corpus/elf/compressed-debug"
gcc $flags -fno-asynchronous-unwind-tables -Wl,--no-ld-generated-unwind-info library.c \
	-o "$here/corpus/elf/no-unwind-info"
gcc $flags -g -fno-asynchronous-unwind-tables library.c -o "$here/corpus/elf/debug-frame"
gcc -O2 -nostdlib -static -Dother=exported library.c -o "$here/corpus/elf/program" -Wl,-z,max-page-size=4096
# No section headers: e_shoff is zero.
cp "$here/corpus/elf/library" "$here/corpus/elf/no-sections"
dd if=/dev/zero of="$here/corpus/elf/no-sections" bs=1 seek=40 count=8 conv=notrunc status=none
if command -v ld.lld >/dev/null; then
	clang -fuse-ld=lld $flags library.c -o "$here/corpus/elf/library-lld"
fi
printf 'not an ELF file\n' >"$here/corpus/elf/text"

# C++ with exceptions, inlined calls and templates, as libraries come: with each version of DWARF, packed in the old way,
# split into another file, stripped with what Fedora keeps, and as an object file.
cat >exceptions.cc <<'END'
extern int other(int);
struct guard { int *at; ~guard() { *at = other(1); } };
namespace space {
template <int n> struct scale { static inline int times(int x) { return x * n + other(x); } };
}
static int cold(int n) { throw n; }
int outer(int n)
{
	guard kept{&n};
	try {
		return space::scale<3>::times(n) + (n < 0 ? cold(n) : 0);
	} catch (int error) {
		return space::scale<5>::times(error);
	}
}
END
cxx="g++ -std=c++17 $flags -fcf-protection"
$cxx -g exceptions.cc -o "$here/corpus/elf/cxx"
$cxx -gdwarf-4 -fdebug-types-section exceptions.cc -o "$here/corpus/elf/cxx-dwarf-4"
$cxx -gdwarf-2 -gstrict-dwarf exceptions.cc -o "$here/corpus/elf/cxx-dwarf-2"
$cxx -g -gz=zlib-gnu exceptions.cc -o "$here/corpus/elf/cxx-zdebug"
$cxx -g -gsplit-dwarf exceptions.cc -o split # names its other file as it was called
cp split "$here/corpus/elf/cxx-split"
cp split-exceptions.dwo "$here/corpus/elf/cxx-dwo"
$cxx -g -c exceptions.cc -o "$here/corpus/elf/cxx-object"
strip -s "$here/corpus/elf/cxx" -o stripped
objcopy --keep-symbol=_Z5outeri -S "$here/corpus/elf/cxx" mini
xz --check=crc32 mini
objcopy --add-section .gnu_debugdata=mini.xz stripped "$here/corpus/elf/mini-debug-data"
cp "$here/corpus/elf/cxx" cxx.debug
objcopy --add-gnu-debuglink=cxx.debug stripped "$here/corpus/elf/debug-link"

# Hand-written code: names without sizes, local labels, a function that is chosen at run time, rules that are expressions.
cat >labels.S <<'END'
	.text
	.globl first, second, chosen
first:	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_escape 0x0f, 0x03, 0x77, 0x10, 0x06
loop:	dec %edi
	jnz loop
	call *other@GOTPCREL(%rip)
	pop %rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.type second, @function
second:	.cfi_startproc
	.cfi_signal_frame
	.cfi_remember_state
	lea 8(%rsp), %r10
	.cfi_def_cfa %r10, 0
	.cfi_register %rip, %r11
	.cfi_restore_state
	jmp loop
	.cfi_endproc
	.type chosen, @gnu_indirect_function
chosen:	lea loop(%rip), %rax
	ret
	.size chosen, . - chosen
	.section .note.GNU-stack, "", @progbits
END
gcc $flags labels.S -o "$here/corpus/elf/labels"
printf '\t.globl _start\n_start: push %%ebp\nloop: jmp loop\n' >small.S
as --32 small.S -o small.o
ld -m elf_i386 small.o -o "$here/corpus/elf/of-32-bits"

# Frame seeds begin with the byte that says .eh_frame (0) or .debug_frame (1).
frame_seed() { # NAME KIND SECTION SOURCE
	gcc -c "$4" -o frames.o
	ld -e 0 -Ttext=0x10000 --section-start=.eh_frame=0x100000 frames.o -o frames
	objcopy --dump-section "$3=section" frames
	{ printf "\\$2"; cat section; } >"$here/corpus/eh-frame/$1"
}
frame_seed eh-frame 000 .eh_frame "$here/seed-frames.S"
sed 's/^\.text/.cfi_sections .debug_frame\n.text/' "$here/seed-frames.S" >debug.S
frame_seed debug-frame 001 .debug_frame debug.S

# Code without frame information: the assembly that test-unwind-stack steps through.
gcc -c "$here/../support/unwind_assembly.S" -o assembly.o
objcopy --dump-section ".text=$here/corpus/code/assembly" assembly.o
