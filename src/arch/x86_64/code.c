/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an x86-64 instruction does to the stack and to general registers. Every vector extension up
 * to AVX-512 is measured. Source: Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 2, chapter 2 and appendix A.
 */
#include "arch/code.h"

#include "arch/x86_64/fields.h"

#define BIT(reg) ((uint16_t)(1U << (reg)))

static uint16_t bit_of(uint8_t reg)
{
	return reg < X86_REGISTERS ? BIT(reg) : 0;
}

/* Without REX the byte registers 4 to 7 are ah, ch, dh and bh. */
static uint16_t byte_bit(const struct x86_fields *fields, uint8_t reg)
{
	return BIT(!fields->has_rex && reg >= 4 && reg < 8 ? reg - 4 : reg);
}

static uint16_t rm_bit(const struct x86_fields *fields)
{
	return fields->is_memory ? 0 : BIT(fields->rm);
}

static uint16_t rm_byte_bit(const struct x86_fields *fields)
{
	return fields->is_memory ? 0 : byte_bit(fields, fields->rm);
}

/* True for operands of the form `base + displacement` with a general register as base. */
static bool is_simple_memory(const struct x86_fields *fields)
{
	return fields->is_memory && !fields->has_index && fields->base != ARCH_NO_REGISTER;
}

static struct arch_instruction other(uint16_t written)
{
	return (struct arch_instruction){.effect = ARCH_OTHER, .written = written};
}

static struct arch_instruction with_register(enum arch_effect effect, uint8_t reg)
{
	return (struct arch_instruction){.effect = effect,
		.reg = reg,
		.written = effect == ARCH_PUSH || effect == ARCH_STORE ? 0 : bit_of(reg)};
}

static struct arch_instruction at_base(
	enum arch_effect effect, uint8_t reg, const struct x86_fields *fields)
{
	struct arch_instruction instruction = with_register(effect, reg);

	instruction.base = fields->base;
	instruction.value = fields->displacement;
	return instruction;
}

static struct arch_instruction to_address(enum arch_effect effect, uint64_t address)
{
	return (struct arch_instruction){.effect = effect, .value = (int64_t)address};
}

/* add, or, adc, sbb, and, sub, xor, cmp: 00 to 3f, six forms each. */
static struct arch_instruction arithmetic(const struct x86_fields *fields)
{
	if ((fields->opcode & 0x38) == 0x38) /* cmp */
		return other(0);
	switch (fields->opcode & 7) {
	case 0:
		return other(rm_byte_bit(fields));
	case 1:
		return other(rm_bit(fields));
	case 2:
		return other(byte_bit(fields, fields->reg));
	case 3:
		return other(BIT(fields->reg));
	default:
		return other(BIT(X86_RAX));
	}
}

/* The same operations with an immediate: 80, 81, 83. */
static struct arch_instruction immediate_arithmetic(const struct x86_fields *fields)
{
	uint8_t operation = fields->reg & 7;
	struct arch_instruction instruction;

	if (operation == 7) /* cmp */
		return other(0);
	if (fields->opcode == 0x80)
		return other(rm_byte_bit(fields));
	if (fields->is_memory || !fields->wide || (operation != 0 && operation != 5))
		return other(rm_bit(fields));
	instruction = with_register(ARCH_ADD, fields->rm);
	instruction.value = operation == 0 ? fields->immediate : -fields->immediate;
	return instruction;
}

/* 88 to 8b and 8d: mov and lea. */
static struct arch_instruction move(const struct x86_fields *fields)
{
	bool to_rm = fields->opcode == 0x89;
	uint8_t from = to_rm ? fields->reg : fields->rm, to = to_rm ? fields->rm : fields->reg;

	if (fields->opcode == 0x88)
		return other(rm_byte_bit(fields));
	if (fields->opcode == 0x8a)
		return other(byte_bit(fields, fields->reg));
	if (!fields->wide || (fields->is_memory && !is_simple_memory(fields)))
		return other(to_rm ? rm_bit(fields) : BIT(fields->reg));
	if (fields->opcode == 0x8d)
		return fields->is_memory ? at_base(ARCH_ADDRESS, fields->reg, fields)
					 : other(BIT(fields->reg));
	if (fields->is_memory)
		return at_base(to_rm ? ARCH_STORE : ARCH_LOAD, fields->reg, fields);
	return (struct arch_instruction){
		.effect = ARCH_MOVE, .reg = to, .base = from, .written = BIT(to)};
}

/* f6, f7: test, not, neg, mul, imul, div, idiv. */
static struct arch_instruction group_3(const struct x86_fields *fields)
{
	uint8_t operation = fields->reg & 7;

	if (operation < 2)
		return other(0);
	if (operation < 4)
		return other(fields->opcode == 0xf6 ? rm_byte_bit(fields) : rm_bit(fields));
	return other(BIT(X86_RAX) | BIT(X86_RDX));
}

/* fe, ff: inc, dec, call, jmp, push. */
static struct arch_instruction group_5(const struct x86_fields *fields)
{
	uint8_t operation = fields->reg & 7;

	if (fields->opcode == 0xfe)
		return other(rm_byte_bit(fields));
	switch (operation) {
	case 2:
	case 3:
		return to_address(ARCH_CALL, 0);
	case 4:
	case 5:
		return to_address(ARCH_JUMP_INDIRECT, 0);
	case 6:
		return with_register(ARCH_PUSH, fields->is_memory ? ARCH_NO_REGISTER : fields->rm);
	default:
		return other(rm_bit(fields));
	}
}

/* 40 to 6f, but for prefixes: push, pop, movsxd, imul. */
static struct arch_instruction pushes_and_pops(const struct x86_fields *fields)
{
	/* Two-byte pushes leave rsp where nobody expects it. */
	uint16_t odd_stack = fields->operand_16 ? BIT(X86_RSP) : 0;

	if (odd_stack && fields->opcode < 0x60)
		return other(odd_stack | BIT(fields->low_register));
	switch (fields->opcode) {
	case 0x50 ... 0x57:
		return with_register(ARCH_PUSH, fields->low_register);
	case 0x58 ... 0x5f:
		return with_register(ARCH_POP, fields->low_register);
	case 0x63:
	case 0x69:
	case 0x6b:
		return other(BIT(fields->reg));
	case 0x68:
	case 0x6a:
		return odd_stack ? other(odd_stack) : with_register(ARCH_PUSH, ARCH_NO_REGISTER);
	default:
		return other(BIT(X86_RDI)); /* string input and output */
	}
}

/* 80 to 9f without mov and lea. */
static struct arch_instruction primary_80(const struct x86_fields *fields)
{
	switch (fields->opcode) {
	case 0x80 ... 0x83:
		return immediate_arithmetic(fields);
	case 0x86:
		return other(byte_bit(fields, fields->reg) | rm_byte_bit(fields));
	case 0x87:
		return other(BIT(fields->reg) | rm_bit(fields));
	case 0x88 ... 0x8b:
	case 0x8d:
		return move(fields);
	case 0x8f:
		return with_register(ARCH_POP, fields->is_memory ? ARCH_NO_REGISTER : fields->rm);
	case 0x90:
		if (fields->low_register == X86_RAX)
			return to_address(ARCH_PADDING, 0);
		return other(BIT(X86_RAX) | BIT(fields->low_register));
	case 0x91 ... 0x97:
		return other(BIT(X86_RAX) | BIT(fields->low_register));
	case 0x98:
		return other(BIT(X86_RAX));
	case 0x99:
		return other(BIT(X86_RDX));
	case 0x9c:
		return with_register(ARCH_PUSH, ARCH_NO_REGISTER);
	case 0x9d:
		return with_register(ARCH_POP, ARCH_NO_REGISTER);
	case 0x9f:
		return other(BIT(X86_RAX));
	default:
		return other(0); /* test, mov from and to segment registers */
	}
}

static struct arch_instruction primary_a0(const struct x86_fields *fields)
{
	switch (fields->opcode) {
	case 0xa0 ... 0xa1:
		return other(BIT(X86_RAX));
	case 0xa4 ... 0xa7: /* string moves and comparisons, with rcx when repeated */
	case 0xaa ... 0xaf:
		return other(BIT(X86_RSI) | BIT(X86_RDI) | BIT(X86_RCX) | BIT(X86_RAX));
	case 0xb0 ... 0xb7:
		return other(byte_bit(fields, fields->low_register));
	case 0xb8 ... 0xbf:
		return other(BIT(fields->low_register));
	default:
		return other(0);
	}
}

static struct arch_instruction primary_c0(const struct x86_fields *fields, uint64_t next)
{
	switch (fields->opcode) {
	case 0xc0:
	case 0xd0:
	case 0xd2:
		return other(rm_byte_bit(fields));
	case 0xc1:
	case 0xd1:
	case 0xd3:
	case 0xc7:
		return other(rm_bit(fields));
	case 0xc6:
		return other(rm_byte_bit(fields));
	case 0xc2 ... 0xc3:
	case 0xca ... 0xcb:
	case 0xcf:
		return to_address(ARCH_RETURN, 0);
	case 0xc8:
		return other(BIT(X86_RSP) | BIT(X86_RBP));
	case 0xc9:
		return (struct arch_instruction){
			.effect = ARCH_LEAVE, .reg = X86_RBP, .written = BIT(X86_RBP)};
	case 0xcc:
		return to_address(ARCH_PADDING, 0);
	case 0xe0 ... 0xe3:
		return to_address(ARCH_JUMP_IF, next + (uint64_t)fields->immediate);
	case 0xe4 ... 0xe5:
	case 0xec ... 0xed:
		return other(BIT(X86_RAX));
	case 0xe8:
		return to_address(ARCH_CALL, next + (uint64_t)fields->immediate);
	case 0xe9:
	case 0xeb:
		return to_address(ARCH_JUMP, next + (uint64_t)fields->immediate);
	case 0xf4:
		return to_address(ARCH_TRAP, 0);
	case 0xf6 ... 0xf7:
		return group_3(fields);
	case 0xfe ... 0xff:
		return group_5(fields);
	default:
		return other(0); /* x87 and flags; fnstsw writes ax, see there */
	}
}

static struct arch_instruction primary(const struct x86_fields *fields, uint64_t next)
{
	if (fields->opcode < 0x40)
		return arithmetic(fields);
	if (fields->opcode < 0x70)
		return pushes_and_pops(fields);
	if (fields->opcode < 0x80)
		return to_address(ARCH_JUMP_IF, next + (uint64_t)fields->immediate);
	if (fields->opcode < 0xa0)
		return primary_80(fields);
	if (fields->opcode < 0xc0)
		return primary_a0(fields);
	if (fields->opcode == 0xdf && !fields->is_memory) /* fnstsw %ax */
		return other(BIT(X86_RAX));
	return primary_c0(fields, next);
}

/* Vector registers to general ones, in every encoding. */
static uint16_t written_by_vector(const struct x86_fields *fields)
{
	switch (fields->opcode) {
	case 0x2c ... 0x2d: /* cvt(t)ss2si, cvt(t)sd2si */
		return fields->repeat_f2 || fields->repeat_f3 ? BIT(fields->reg) : 0;
	case 0x78 ... 0x79: /* vcvtt?s?2usi */
		return fields->is_vector ? BIT(fields->reg) : 0;
	case 0x50: /* movmskps */
	case 0xc5: /* pextrw */
	case 0xd7: /* pmovmskb */
		return BIT(fields->reg);
	case 0x93: /* kmov */
		return fields->is_vector ? BIT(fields->reg) : 0;
	case 0x7e: /* movd, movq */
		return fields->repeat_f3 ? 0 : rm_bit(fields);
	default:
		return 0;
	}
}

/* 0f 80 and above, without branches. */
static uint16_t written_by_0f_high(const struct x86_fields *fields)
{
	switch (fields->opcode) {
	case 0x90 ... 0x9f: /* setcc */
		return rm_byte_bit(fields);
	case 0xa2: /* cpuid */
		return BIT(X86_RAX) | BIT(X86_RBX) | BIT(X86_RCX) | BIT(X86_RDX);
	case 0xa4 ... 0xa5: /* shifts, and bits set and cleared */
	case 0xab ... 0xae:
	case 0xb3:
	case 0xba ... 0xbb:
		return rm_bit(fields);
	case 0xaf: /* imul, far pointers, movzx, movsx, bit counts */
	case 0xb2:
	case 0xb4 ... 0xb8:
	case 0xbc ... 0xbf:
		return BIT(fields->reg);
	case 0xb0 ... 0xb1: /* cmpxchg, xadd */
	case 0xc0 ... 0xc1:
		return rm_bit(fields) | rm_byte_bit(fields) | BIT(fields->reg) | BIT(X86_RAX);
	case 0xc7: /* cmpxchg16b, rdrand */
		return rm_bit(fields) | BIT(X86_RAX) | BIT(X86_RDX);
	case 0xc8 ... 0xcf: /* bswap */
		return BIT(fields->low_register);
	default:
		return written_by_vector(fields);
	}
}

static uint16_t written_by_0f(const struct x86_fields *fields)
{
	if (fields->opcode >= 0x80)
		return written_by_0f_high(fields);
	switch (fields->opcode) {
	case 0x00 ... 0x03: /* descriptors; xgetbv */
		return rm_bit(fields) | BIT(fields->reg) | BIT(X86_RAX) | BIT(X86_RDX) |
		       BIT(X86_RCX);
	case 0x05: /* syscall */
		return BIT(X86_RAX) | BIT(X86_RCX) | BIT(X86_R11);
	case 0x1e: /* rdssp; endbr64 */
		return fields->repeat_f3 && (fields->reg & 7) == 1 ? rm_bit(fields) : 0;
	case 0x20 ... 0x21:
		return rm_bit(fields);
	case 0x31 ... 0x33: /* rdtsc and such */
		return BIT(X86_RAX) | BIT(X86_RDX);
	case 0x40 ... 0x4f: /* cmov */
		return BIT(fields->reg);
	default:
		return written_by_vector(fields);
	}
}

static struct arch_instruction secondary(const struct x86_fields *fields, uint64_t next)
{
	if (fields->is_vector)
		return other(written_by_vector(fields));
	if (fields->opcode >= 0x80 && fields->opcode < 0x90)
		return to_address(ARCH_JUMP_IF, next + (uint64_t)fields->immediate);
	if (fields->opcode == 0x0b)
		return to_address(ARCH_TRAP, 0);
	if (fields->opcode == 0x1f)
		return to_address(ARCH_PADDING, 0);
	return other(written_by_0f(fields));
}

static uint16_t written_by_0f38(const struct x86_fields *fields)
{
	if (fields->opcode < 0xf0)
		return 0;
	if (!fields->is_vector) /* crc32, movbe, adcx, adox */
		return BIT(fields->reg);
	/* andn, blsr and its like, bzhi, pdep, pext, mulx, bextr, shifts */
	return BIT(fields->reg) | BIT(fields->extra_register);
}

static uint16_t written_by_0f3a(const struct x86_fields *fields)
{
	switch (fields->opcode) {
	case 0x14 ... 0x17: /* extraction of one element */
		return rm_bit(fields);
	case 0x60 ... 0x63: /* string comparisons */
		return BIT(X86_RCX);
	case 0xf0: /* rorx */
		return BIT(fields->reg);
	default:
		return 0;
	}
}

/* Half-precision conversions and moves; XOP's bit manipulations. */
static uint16_t written_by_other_map(const struct x86_fields *fields)
{
	return written_by_vector(fields) |
	       (fields->opcode < 0x20 ? BIT(fields->extra_register) : 0) |
	       (fields->opcode < 0x20 ? BIT(fields->reg) : 0);
}

static struct arch_instruction interpret(const struct x86_fields *fields, uint64_t next)
{
	switch (fields->map) {
	case X86_MAP_PRIMARY:
		return primary(fields, next);
	case X86_MAP_0F:
		return secondary(fields, next);
	case X86_MAP_0F38:
		return other(written_by_0f38(fields));
	case X86_MAP_0F3A:
		return other(written_by_0f3a(fields));
	default:
		return other(written_by_other_map(fields));
	}
}

bool arch_decode(const uint8_t *code, size_t length, uint64_t vaddr,
	struct arch_instruction *ret_instruction)
{
	struct arch_instruction instruction;
	struct x86_fields fields;

	if (!x86_read_fields(code, length, &fields))
		return false;
	instruction = interpret(&fields, vaddr + fields.length);
	instruction.length = fields.length;
	*ret_instruction = instruction;
	return true;
}
