"""A library to preload that counts allocations."""
import os
import subprocess

COUNTER = r"""
#include <stddef.h>
static long calls;
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { calls++; return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { calls++; return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { calls++; return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { calls++; return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { *p = memalign(a, n); return *p ? 0 : 12; }
long nightjar_allocations(void) { return calls; }
"""


def build_counter(folder):
    """Builds it in `folder`; its path."""
    source, library = os.path.join(folder, "counter.c"), os.path.join(folder, "counter.so")
    with open(source, "w") as file:
        file.write(COUNTER)
    subprocess.run(["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", "-o", library, source], check=True)
    return library
