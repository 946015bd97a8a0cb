// LD_PRELOAD: tells what an encoder costs above libva. Between meter_resume and meter_pause it counts memory that is
// allocated, and the time that passes, on the calling thread outside of libva's functions.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <va/va.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static __thread int running, inside;
static __thread uint64_t since, spent, allocations;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void meter_resume(void) {
  running = 1;
  since = now();
}

void meter_pause(void) {
  spent += now() - since;
  running = 0;
}

// Both return what has come together since the last call.
uint64_t meter_nanoseconds(void) {
  uint64_t value = spent;
  spent = 0;
  return value;
}

uint64_t meter_allocations(void) {
  uint64_t value = allocations;
  allocations = 0;
  return value;
}

static void count(void) {
  if (running && !inside) allocations++;
}

void *malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void *calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}
void *realloc(void *memory, size_t size) {
  count();
  return __libc_realloc(memory, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
  count();
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : 12;
}

static void enter(void) {
  if (running && inside++ == 0) spent += now() - since;
}

static void leave(void) {
  if (running && --inside == 0) since = now();
}

#define WRAP(name, parameters, arguments)                                  \
  VAStatus name parameters {                                               \
    static VAStatus(*real) parameters;                                     \
    enter();                                                               \
    if (!real) real = (VAStatus(*) parameters)dlsym(RTLD_NEXT, #name);     \
    VAStatus status = real arguments;                                      \
    leave();                                                               \
    return status;                                                         \
  }

WRAP(vaDeriveImage, (VADisplay d, VASurfaceID s, VAImage *i), (d, s, i))
WRAP(vaDestroyImage, (VADisplay d, VAImageID i), (d, i))
WRAP(vaPutImage,
     (VADisplay d, VASurfaceID s, VAImageID i, int a, int b, unsigned int w, unsigned int h, int x, int y,
      unsigned int u, unsigned int v),
     (d, s, i, a, b, w, h, x, y, u, v))
WRAP(vaMapBuffer, (VADisplay d, VABufferID b, void **p), (d, b, p))
WRAP(vaUnmapBuffer, (VADisplay d, VABufferID b), (d, b))
WRAP(vaCreateBuffer,
     (VADisplay d, VAContextID c, VABufferType t, unsigned int s, unsigned int n, void *p, VABufferID *b),
     (d, c, t, s, n, p, b))
WRAP(vaDestroyBuffer, (VADisplay d, VABufferID b), (d, b))
WRAP(vaBeginPicture, (VADisplay d, VAContextID c, VASurfaceID s), (d, c, s))
WRAP(vaRenderPicture, (VADisplay d, VAContextID c, VABufferID *b, int n), (d, c, b, n))
WRAP(vaEndPicture, (VADisplay d, VAContextID c), (d, c))
WRAP(vaSyncSurface, (VADisplay d, VASurfaceID s), (d, s))
WRAP(vaSyncBuffer, (VADisplay d, VABufferID b, uint64_t t), (d, b, t))
