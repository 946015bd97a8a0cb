// A frame's way, marked where it goes by: static probes (USDT) of the provider nightjar for bpftrace, perf, gdb and
// SystemTap, and records in a ring of the calling thread where the frames are traced to a file.
//
// The probes have semaphores: nothing is done for them while nobody listens. Frames are told by their timestamp in
// nanoseconds, which is unique within a camera. Which camera, and which ring, is the calling thread's own: see
// nightjar_trace_enter.
#ifndef NIGHTJAR_TRACEPOINTS_H
#define NIGHTJAR_TRACEPOINTS_H

#include <stddef.h>
#include <stdint.h>

// The kinds of records.
enum {
  // From when the picture was there to when the capture stage handed it on; origin is when it was taken.
  nightjar_trace_capture = 1,
  nightjar_trace_convert,
  // first is bytes, second the key frames among what the encoder delivered.
  nightjar_trace_encode,
  // first is packets.
  nightjar_trace_packetize,
  // first is packets, over all viewers.
  nightjar_trace_send,
  // All of it has left; origin is when it was taken.
  nightjar_trace_sent,
  // first is a cause, second how many frames; frame is -1 for those that never became one.
  nightjar_trace_dropped,
  // Left out on purpose; first is a reason.
  nightjar_trace_skipped,
  // The network of a viewer, whose number is in place of the frame's; first is kbit/s, 0 for no limit, second
  // microseconds of queue.
  nightjar_trace_network,
  // Another rendition for a viewer, whose number is in place of the frame's; first is the height of small pictures, 0 for full
  // ones.
  nightjar_trace_rendition,
};

// One of these, with times of CLOCK_MONOTONIC in nanoseconds.
struct nightjar_trace_record {
  int64_t frame;
  int64_t origin;
  int64_t begin;
  int64_t end;
  uint32_t kind;
  uint32_t first;
  uint32_t second;
};

// A ring of records between one writer thread and one reader thread. The writer neither waits nor allocates: records
// without room are counted.
struct nightjar_trace_ring;

// A ring for so many records, a power of two; NULL where there is no memory.
struct nightjar_trace_ring *nightjar_trace_ring_make(uint32_t capacity);
void nightjar_trace_ring_free(struct nightjar_trace_ring *ring);
// Moves the oldest records, capacity at most, to records; how many.
size_t nightjar_trace_ring_take(struct nightjar_trace_ring *ring, struct nightjar_trace_record *records,
                                size_t capacity);
// How many records have found no room so far.
uint64_t nightjar_trace_ring_lost(struct nightjar_trace_ring *ring);

// Makes the calling thread mark frames of `camera`, numbered from 1, and write records to `ring`; NULL writes none.
void nightjar_trace_enter(uint32_t camera, struct nightjar_trace_ring *ring);
// Makes the calling thread mark no frames.
void nightjar_trace_leave(void);
// The kernel's number of the calling thread.
int64_t nightjar_trace_thread(void);

// Each of these functions costs some nanoseconds while no tool listens. A begin function returns the time for its end
// function, or 0 without a ring.

// A source has a picture that was taken at `taken`.
void nightjar_frame_captured(int64_t frame, int64_t taken, int64_t now);
// The capture stage hands it on: from now on it waits for the encoder.
void nightjar_frame_waiting(int64_t frame, int64_t taken, int64_t arrived, int64_t now);
int64_t nightjar_convert_begin(int64_t frame);
void nightjar_convert_end(int64_t frame, int64_t begin);
int64_t nightjar_encode_begin(int64_t frame);
void nightjar_encode_end(int64_t frame, int64_t begin, int64_t bytes, int64_t key_frames);
int64_t nightjar_packetize_begin(int64_t frame);
void nightjar_packetize_end(int64_t frame, int64_t begin, int64_t packets);
int64_t nightjar_send_begin(int64_t frame);
void nightjar_send_end(int64_t frame, int64_t begin, int64_t packets);
// All of it that is in nobody's way has left.
void nightjar_frame_sent(int64_t frame, int64_t taken, int64_t now);
// `name` is that of the cause; the frame is -1, and there may be several, where they were lost before they became one.
void nightjar_frame_dropped(int64_t frame, uint32_t cause, const char *name, int64_t count);
void nightjar_frame_skipped(int64_t frame, uint32_t reason, const char *name);
// What the network of a viewer takes, some times a second: bits a second, 0 where it has shown no limit, and the
// nanoseconds that packets wait on it.
void nightjar_network_estimate(int64_t viewer, int64_t bits, int64_t queue);
// A viewer gets pictures of another rendition: the height of small ones, 0 for the full ones.
void nightjar_rendition_change(int64_t viewer, int64_t height);

// Returns 1 if this program was built with probes, which need <sys/sdt.h>.
int nightjar_has_probes(void);

#endif
