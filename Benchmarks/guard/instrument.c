// Begins callgrind's instrumentation where a program begins its first thread: loading some dozen libraries and linking them takes
// more instructions than the pictures do, and none of them is counted. Preloaded, with --instr-atstart=no.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <valgrind/callgrind.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!create) {
        CALLGRIND_START_INSTRUMENTATION;
        create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    }
    return create(thread, attributes, start, argument);
}
