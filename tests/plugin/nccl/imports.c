/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/nccl/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct import imports[IMPORTS_MAX];

#define SLOT 64 /* bytes per thunk */

#if defined(__x86_64__)
#define RELOC_CALL R_X86_64_JUMP_SLOT
#define RELOC_DATA R_X86_64_GLOB_DAT
/* Only r10 and r11 may be used: everything else can carry an argument. */
static void make_thunk(uint8_t *code, uint64_t *counter, void *target)
{
	/* clang-format off: an instruction a line */
	static const uint8_t pattern[] = {
		/* 0 mov %fs:0, %r11: the thread's identity */
		0x64, 0x4c, 0x8b, 0x1c, 0x25, 0, 0, 0, 0, 0x49,
		0xba, 0,    0,    0,    0,    0, 0, 0, 0,    /*  9 mov $owner, %r10 */
		0x4d, 0x39, 0xd3,                            /* 19 cmp %r10, %r11 */
		0x75, 0x0e,                                  /* 22 jne 38 */
		0x49, 0xbb, 0,    0,    0,    0, 0, 0, 0, 0, /* 24 mov $counter, %r11 */
		0xf0, 0x49, 0xff, 0x03,                      /* 34 lock incq (%r11) */
		0x49, 0xbb, 0,    0,    0,    0, 0, 0, 0, 0, /* 38 mov $target, %r11 */
		0x41, 0xff, 0xe3,                            /* 48 jmp *%r11 */
	};
	/* clang-format on */
	void *owner = __builtin_thread_pointer();

	memcpy(code, pattern, sizeof(pattern));
	memcpy(code + 11, &owner, 8);
	memcpy(code + 26, &counter, 8);
	memcpy(code + 40, &target, 8);
}
#elif defined(__aarch64__)
#define RELOC_CALL R_AARCH64_JUMP_SLOT
#define RELOC_DATA R_AARCH64_GLOB_DAT
/* x16 and x17 are the linker's scratch registers. */
static void make_thunk(uint8_t *code, uint64_t *counter, void *target)
{
	static const uint32_t pattern[] = {
		0xd53bd050, /*  0 mrs x16, tpidr_el0 */
		0x58000131, /*  4 ldr x17, 40: owner */
		0xeb11021f, /*  8 cmp x16, x17 */
		0x540000a1, /* 12 b.ne 32 */
		0x58000110, /* 16 ldr x16, 48: counter */
		0xf9400211, /* 20 ldr x17, [x16] */
		0x91000631, /* 24 add x17, x17, #1 */
		0xf9000211, /* 28 str x17, [x16] */
		0x580000d0, /* 32 ldr x16, 56: target */
		0xd61f0200, /* 36 br x16 */
	};
	void *owner = __builtin_thread_pointer();

	memcpy(code, pattern, sizeof(pattern));
	memcpy(code + 40, &owner, 8);
	memcpy(code + 48, &counter, 8);
	memcpy(code + 56, &target, 8);
}
#endif

#ifdef RELOC_CALL
struct address {
	uintptr_t at;
	bool code;
};

static int find_segment(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct address *a = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && a->at >= start && a->at < start + p->p_memsz)
			a->code = p->p_flags & PF_X;
	}
	return 0;
}

static bool is_code(void *at)
{
	struct address a = { .at = (uintptr_t)at };

	dl_iterate_phdr(find_segment, &a);
	return a.code;
}

struct tables {
	ElfW(Addr) base;
	const ElfW(Sym) * symbols;
	const char *names;
	uint8_t *thunks;
	int n;
};

static void hook_table(struct tables *t, const ElfW(Rela) * rela, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < size / sizeof(*rela) && t->n < IMPORTS_MAX; i++) {
		unsigned long type = ELF64_R_TYPE(rela[i].r_info);
		const ElfW(Sym) *symbol = &t->symbols[ELF64_R_SYM(rela[i].r_info)];
		void **word = (void **)(t->base + rela[i].r_offset);
		uint8_t *thunk = t->thunks + t->n * SLOT;

		if ((type != RELOC_CALL && type != RELOC_DATA) || symbol->st_shndx != SHN_UNDEF)
			continue;
		if (!*word || !is_code(*word))
			continue;
		imports[t->n].name = t->names + symbol->st_name;
		make_thunk(thunk, &imports[t->n].calls, *word);
		t->n++;
		/* The table is read-only once the library is relocated (-z relro). */
		mprotect((void *)((uintptr_t)word & ~(page - 1)), page, PROT_READ | PROT_WRITE);
		__atomic_store_n(word, thunk, __ATOMIC_RELEASE);
	}
}

int imports_hook(void *library)
{
	const ElfW(Rela) *rela = NULL, *plt = NULL;
	size_t rela_size = 0, plt_size = 0;
	struct link_map *map;
	struct tables t = { .n = 0 };

	if (dlinfo(library, RTLD_DI_LINKMAP, &map))
		return 0;
	t.base = map->l_addr;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_RELA:
			rela = (const void *)d->d_un.d_ptr;
			break;
		case DT_RELASZ:
			rela_size = d->d_un.d_val;
			break;
		case DT_JMPREL:
			plt = (const void *)d->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			plt_size = d->d_un.d_val;
			break;
		case DT_SYMTAB:
			t.symbols = (const void *)d->d_un.d_ptr;
			break;
		case DT_STRTAB:
			t.names = (const void *)d->d_un.d_ptr;
			break;
		}
	}
	t.thunks = mmap(NULL, IMPORTS_MAX * SLOT, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t.thunks == MAP_FAILED || !t.symbols || !t.names)
		return 0;
	/* Executable before the first word points there: other threads may be calling right now. */
	if (mprotect(t.thunks, IMPORTS_MAX * SLOT, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 0;
	hook_table(&t, rela, rela ? rela_size : 0);
	hook_table(&t, plt, plt ? plt_size : 0);
	return t.n;
}
#else
int imports_hook(void *library)
{
	return 0;
}
#endif
