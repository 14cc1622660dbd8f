// SPDX-License-Identifier: MIT
/*
 * LD_PRELOAD: counts what each thread allocates, for no-alloc.sh. Counters are in
 * the file that ALLOC_COUNT_FILE names, mapped by all; the test sets `armed`.
 *
 * Glibc's own names of the allocator are called, so that nothing has to be looked
 * up while the program starts. What malloc does inside (brk, mmap) is counted by
 * the call of malloc itself; direct calls of mmap and its relatives are counted here.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 128

/* alloc_count.py, in no-alloc.sh, knows this layout. */
struct thread_count {
	_Atomic uint32_t tid; /* 0: free; claimed once */
	uint32_t reserved;
	_Atomic uint64_t calls;
	char name[16];
	char last[16];
};

struct table {
	_Atomic uint64_t armed;
	struct thread_count threads[THREADS_MAX];
};

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static struct table *table;

__attribute__((constructor)) static void open_table(void)
{
	const char *path = getenv("ALLOC_COUNT_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = (void *)syscall(SYS_mmap, NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	/* Children (the balloon's helper, swapoff) are not looked at. */
	unsetenv("LD_PRELOAD");
	if (map != MAP_FAILED)
		table = map;
}

static void count(const char *what)
{
	uint32_t tid, expected;

	if (!table || !atomic_load_explicit(&table->armed, memory_order_relaxed))
		return;
	tid = (uint32_t)syscall(SYS_gettid);
	for (int i = 0; i < THREADS_MAX; i++) {
		struct thread_count *thread = &table->threads[i];

		expected = 0;
		if (atomic_load(&thread->tid) != tid &&
		    !atomic_compare_exchange_strong(&thread->tid, &expected, tid))
			continue;
		prctl(PR_GET_NAME, thread->name);
		strncpy(thread->last, what, sizeof(thread->last) - 1);
		atomic_fetch_add(&thread->calls, 1);
		return;
	}
}

void *malloc(size_t size)
{
	count("malloc");
	return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
	count("calloc");
	return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
	count("realloc");
	return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
	count("memalign");
	return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	count("aligned_alloc");
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	count("posix_memalign");
	*ret = __libc_memalign(alignment, size);
	return *ret ? 0 : 12; /* ENOMEM */
}

void free(void *block)
{
	if (block)
		count("free");
	__libc_free(block);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	count("mmap");
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
	count("munmap");
	return (int)syscall(SYS_munmap, address, length);
}

int mprotect(void *address, size_t length, int protection)
{
	count("mprotect");
	return (int)syscall(SYS_mprotect, address, length, protection);
}

int brk(void *end)
{
	count("brk");
	return syscall(SYS_brk, end) < 0 ? -1 : 0;
}
