// Preloaded, it counts what the program allocates.
//
// nightjar_allocations() tells how often any thread has, for programs that ask for themselves. With NIGHTJAR_COUNT_FD, a
// connected socket, whoever started the program asks: "b" begins to note every allocation with its thread and the calls
// that led there, "e" ends that and tells it, in lines whose fields have tabs between them:
//
//   site THREAD CALL COUNT BYTES OBJECT+OFFSET[=SYMBOL]|…   the callers, innermost first, without this library's own
//   freed THREAD COUNT                                      pieces that threads of that name gave back
//   unnoted COUNT                                           what there was no room to note
//   .                                                       the end of either answer
//
// NIGHTJAR_COUNT_SPOIL=THREAD makes that thread waste: an allocation and a copy of 64 kB at each sendmmsg. A guard that
// does not see it is none.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { DEPTH = 40, SITES = 4096, THREADS = 64, NAME = 16, WASTE = 65536 };

static atomic_long calls;
static atomic_bool counting;
static const char *spoiled;

// All that follows is the holder's of this lock: allocations are few while they are counted, or the guard is red anyway.
static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct site {
  char thread[NAME];
  const char *call;
  long count, bytes;
  int depth;
  void *callers[DEPTH];
} sites[SITES];
static int site_count;
static struct { char name[NAME]; long frees; } threads[THREADS];
static int thread_count;
static long unnoted;

// backtrace() may allocate.
static __thread int noting __attribute__((tls_model("initial-exec")));

static void acquire(void) { while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {} }
static void release(void) { atomic_flag_clear_explicit(&lock, memory_order_release); }

static void note(const char *call, size_t bytes) {
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  if (!atomic_load_explicit(&counting, memory_order_relaxed) || noting) return;
  noting = 1;
  struct site new = {.call = call};
  prctl(PR_GET_NAME, new.thread);
  new.depth = backtrace(new.callers, DEPTH);
  acquire();
  int index = 0;
  while (index < site_count &&
         (sites[index].depth != new.depth || sites[index].call != call || strcmp(sites[index].thread, new.thread) != 0 ||
          memcmp(sites[index].callers, new.callers, new.depth * sizeof(void *)) != 0)) {
    index++;
  }
  if (index == SITES) {
    unnoted++;
  } else {
    if (index == site_count) sites[site_count++] = new;
    sites[index].count++;
    sites[index].bytes += bytes;
  }
  release();
  noting = 0;
}

static void note_free(void *piece) {
  if (!piece || !atomic_load_explicit(&counting, memory_order_relaxed) || noting) return;
  char name[NAME];
  prctl(PR_GET_NAME, name);
  acquire();
  int index = 0;
  while (index < thread_count && strcmp(threads[index].name, name) != 0) index++;
  if (index < THREADS) {
    if (index == thread_count) memcpy(threads[thread_count++].name, name, NAME);
    threads[index].frees++;
  }
  release();
}

void *malloc(size_t n) { note("malloc", n); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { note("calloc", n * m); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { note("realloc", n); return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { note("memalign", n); return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { note("aligned_alloc", n); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
  note("posix_memalign", n);
  void *piece = __libc_memalign(a, n);
  if (!piece) return 12;
  *p = piece;
  return 0;
}
void free(void *p) { note_free(p); __libc_free(p); }

long nightjar_allocations(void) { return atomic_load_explicit(&calls, memory_order_relaxed); }

int sendmmsg(int socket, struct mmsghdr *messages, unsigned int count, int flags) {
  static int (*next)(int, struct mmsghdr *, unsigned int, int);
  if (!next) next = dlsym(RTLD_NEXT, "sendmmsg");
  char name[NAME];
  if (spoiled && prctl(PR_GET_NAME, name) == 0 && strcmp(name, spoiled) == 0) {
    static char from[WASTE];
    char *volatile waste = malloc(WASTE);
    if (waste) memcpy(waste, from, WASTE);
    free(waste);
  }
  return next(socket, messages, count, flags);
}

static void tell(FILE *out) {
  for (int index = 0; index < site_count; index++) {
    struct site *site = &sites[index];
    fprintf(out, "site\t%s\t%s\t%ld\t%ld\t", site->thread, site->call, site->count, site->bytes);
    Dl_info own, info;
    dladdr((void *)note, &own);
    for (int depth = 0; depth < site->depth; depth++) {
      // The call, not what comes after it.
      char *address = (char *)site->callers[depth] - 1;
      if (!dladdr(address, &info) || info.dli_fbase == own.dli_fbase) continue;
      fprintf(out, "%s+%#lx", info.dli_fname, (unsigned long)(address - (char *)info.dli_fbase));
      if (info.dli_sname) fprintf(out, "=%s", info.dli_sname);
      fputc('|', out);
    }
    fputc('\n', out);
  }
  for (int index = 0; index < thread_count; index++) {
    fprintf(out, "freed\t%s\t%ld\n", threads[index].name, threads[index].frees);
  }
  fprintf(out, "unnoted\t%ld\n", unnoted);
}

static void *serve(void *argument) {
  noting = 1;
  int descriptor = (int)(long)argument;
  FILE *answer = fdopen(descriptor, "w");
  char question;
  while (answer && read(descriptor, &question, 1) == 1) {
    if (question == 'b') {
      acquire();
      site_count = thread_count = 0;
      unnoted = 0;
      release();
      atomic_store(&counting, 1);
    } else {
      atomic_store(&counting, 0);
      // Whoever is about to note something has seen the switch before.
      usleep(10000);
      tell(answer);
    }
    fputs(".\n", answer);
    fflush(answer);
  }
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  spoiled = getenv("NIGHTJAR_COUNT_SPOIL");
  const char *descriptor = getenv("NIGHTJAR_COUNT_FD");
  if (!descriptor) return;
  // Loads the unwinder, which allocates.
  void *callers[2];
  backtrace(callers, 2);
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, NULL, serve, (void *)(long)atoi(descriptor)) != 0) abort();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
