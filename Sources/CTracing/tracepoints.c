#define _GNU_SOURCE
#include "tracepoints.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Without the header (Debian's systemtap-sdt-dev) there are no probes, and everything else is as it is: who builds the
// libraries into another program need not have it. scripts/check-binary looks for the probes in ours.
#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define HAS_PROBES 1
// Whoever listens counts it up from outside, so that no compiler may believe that it is always 0.
#define SEMAPHORE(name) \
  __attribute__((section(".probes"), visibility("hidden"))) volatile unsigned short nightjar_##name##_semaphore
// The camera goes by a register: no tracer reads a thread's own memory.
#define PROBE(name, arguments, ...)                              \
  do {                                                           \
    if (__builtin_expect(nightjar_##name##_semaphore, 0)) {      \
      uint32_t number = camera;                                  \
      __asm__("" : "+r"(number));                                \
      STAP_PROBE##arguments(nightjar, name, number, __VA_ARGS__); \
    }                                                            \
  } while (0)
SEMAPHORE(frame_captured);
SEMAPHORE(convert_begin);
SEMAPHORE(convert_end);
SEMAPHORE(frame_waiting);
SEMAPHORE(encode_begin);
SEMAPHORE(encode_end);
SEMAPHORE(packetize_begin);
SEMAPHORE(packetize_end);
SEMAPHORE(send_begin);
SEMAPHORE(send_end);
SEMAPHORE(frame_sent);
SEMAPHORE(frame_dropped);
SEMAPHORE(frame_skipped);
SEMAPHORE(network_estimate);
SEMAPHORE(rendition_change);
#else
#define HAS_PROBES 0
// Takes them for used, and does nothing.
static inline void nothing(int first, ...) { (void)first; }
#define PROBE(name, arguments, ...)             \
  do {                                          \
    if (0) nothing(0, __VA_ARGS__);             \
  } while (0)
#endif

struct nightjar_trace_ring {
  uint32_t capacity;
  // Both only grow: head is written by the thread that marks, tail by the one that takes.
  _Atomic uint64_t head;
  _Atomic uint64_t lost;
  // On a line of its own, so that the two threads do not slow each other down.
  _Alignas(64) _Atomic uint64_t tail;
  _Alignas(64) struct nightjar_trace_record records[];
};

static _Thread_local uint32_t camera;
static _Thread_local struct nightjar_trace_ring *ring;

struct nightjar_trace_ring *nightjar_trace_ring_make(uint32_t capacity) {
  if (capacity == 0 || (capacity & (capacity - 1)) != 0) return NULL;
  size_t size = sizeof(struct nightjar_trace_ring) + capacity * sizeof(struct nightjar_trace_record);
  struct nightjar_trace_ring *made = aligned_alloc(64, (size + 63) / 64 * 64);
  if (made == NULL) return NULL;
  made->capacity = capacity;
  atomic_init(&made->head, 0);
  atomic_init(&made->lost, 0);
  atomic_init(&made->tail, 0);
  // Now, and not with the first frames: each page that is touched for the first time costs a fault.
  for (uint32_t index = 0; index < capacity; index++) made->records[index] = (struct nightjar_trace_record){0};
  return made;
}

void nightjar_trace_ring_free(struct nightjar_trace_ring *freed) { free(freed); }

size_t nightjar_trace_ring_take(struct nightjar_trace_ring *from, struct nightjar_trace_record *records,
                                size_t capacity) {
  uint64_t tail = atomic_load_explicit(&from->tail, memory_order_relaxed);
  uint64_t head = atomic_load_explicit(&from->head, memory_order_acquire);
  size_t count = head - tail < capacity ? (size_t)(head - tail) : capacity;
  for (size_t index = 0; index < count; index++) records[index] = from->records[(tail + index) & (from->capacity - 1)];
  atomic_store_explicit(&from->tail, tail + count, memory_order_release);
  return count;
}

uint64_t nightjar_trace_ring_lost(struct nightjar_trace_ring *of) {
  return atomic_load_explicit(&of->lost, memory_order_relaxed);
}

void nightjar_trace_enter(uint32_t number, struct nightjar_trace_ring *into) {
  camera = number;
  ring = into;
}

void nightjar_trace_leave(void) {
  camera = 0;
  ring = NULL;
}

int64_t nightjar_trace_thread(void) { return syscall(SYS_gettid); }

int nightjar_has_probes(void) { return HAS_PROBES; }

static int64_t now_nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline int64_t begin(void) { return __builtin_expect(ring != NULL, 0) ? now_nanoseconds() : 0; }

static uint32_t clamped(int64_t value) { return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value; }

// Where `to` is 0, the record ends at the present moment.
__attribute__((noinline, cold)) static void put(uint32_t kind, int64_t frame, int64_t origin, int64_t from, int64_t to,
                                                int64_t first, int64_t second) {
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) >= ring->capacity) {
    // This thread alone writes it.
    uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
    atomic_store_explicit(&ring->lost, lost + 1, memory_order_relaxed);
    return;
  }
  ring->records[head & (ring->capacity - 1)] = (struct nightjar_trace_record){
      .frame = frame,
      .origin = origin,
      .begin = from,
      .end = to == 0 ? now_nanoseconds() : to,
      .kind = kind,
      .first = clamped(first),
      .second = clamped(second),
  };
  atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

#define RECORD(kind, ...)                                                            \
  do {                                                                               \
    if (__builtin_expect(ring != NULL, 0)) put(nightjar_trace_##kind, __VA_ARGS__); \
  } while (0)

void nightjar_frame_captured(int64_t frame, int64_t taken, int64_t now) {
  PROBE(frame_captured, 3, frame, now - taken);
}

void nightjar_frame_waiting(int64_t frame, int64_t taken, int64_t arrived, int64_t now) {
  PROBE(frame_waiting, 3, frame, now - taken);
  RECORD(capture, frame, taken, arrived, now, 0, 0);
}

int64_t nightjar_convert_begin(int64_t frame) {
  PROBE(convert_begin, 2, frame);
  return begin();
}

void nightjar_convert_end(int64_t frame, int64_t from) {
  PROBE(convert_end, 2, frame);
  RECORD(convert, frame, 0, from, 0, 0, 0);
}

int64_t nightjar_encode_begin(int64_t frame) {
  PROBE(encode_begin, 2, frame);
  return begin();
}

void nightjar_encode_end(int64_t frame, int64_t from, int64_t bytes, int64_t key_frames) {
  PROBE(encode_end, 4, frame, bytes, key_frames);
  RECORD(encode, frame, 0, from, 0, bytes, key_frames);
}

int64_t nightjar_packetize_begin(int64_t frame) {
  PROBE(packetize_begin, 2, frame);
  return begin();
}

void nightjar_packetize_end(int64_t frame, int64_t from, int64_t packets) {
  PROBE(packetize_end, 3, frame, packets);
  RECORD(packetize, frame, 0, from, 0, packets, 0);
}

int64_t nightjar_send_begin(int64_t frame) {
  PROBE(send_begin, 2, frame);
  return begin();
}

void nightjar_send_end(int64_t frame, int64_t from, int64_t packets) {
  PROBE(send_end, 3, frame, packets);
  RECORD(send, frame, 0, from, 0, packets, 0);
}

void nightjar_frame_sent(int64_t frame, int64_t taken, int64_t now) {
  PROBE(frame_sent, 3, frame, now - taken);
  RECORD(sent, frame, taken, now, now, 0, 0);
}

void nightjar_frame_dropped(int64_t frame, uint32_t cause, const char *name, int64_t count) {
  PROBE(frame_dropped, 4, frame, name, count);
  RECORD(dropped, frame, 0, now_nanoseconds(), 0, cause, count);
}

void nightjar_frame_skipped(int64_t frame, uint32_t reason, const char *name) {
  PROBE(frame_skipped, 3, frame, name);
  RECORD(skipped, frame, 0, now_nanoseconds(), 0, reason, 0);
}

void nightjar_network_estimate(int64_t viewer, int64_t bits, int64_t queue) {
  PROBE(network_estimate, 4, viewer, bits, queue);
  RECORD(network, viewer, 0, now_nanoseconds(), 0, bits / 1000, queue / 1000);
}

void nightjar_rendition_change(int64_t viewer, int64_t height) {
  PROBE(rendition_change, 3, viewer, height);
  RECORD(rendition, viewer, 0, now_nanoseconds(), 0, height, 0);
}
