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
