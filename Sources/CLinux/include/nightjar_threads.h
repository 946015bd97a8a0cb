// Threads by name.
#ifndef NIGHTJAR_THREADS_H
#define NIGHTJAR_THREADS_H

#include <pthread.h>
#include <stdint.h>

// Names the calling thread; names of more than 15 bytes are refused by the kernel (ERANGE).
int nightjar_thread_set_name(const char *name);

// Gives the calling thread real-time priority (SCHED_RR), at most `priority` and at most RLIMIT_RTPRIO. Returns 0, or an
// errno. New threads do not inherit the priority. A thread that already has real-time priority keeps it. If the limit is 0,
// as in a shell, the thread stays unchanged even if a privilege (CAP_SYS_NICE) would allow more, unless is_ordered.
int nightjar_thread_raise(int priority, int is_ordered);

// Sets the precision of the calling thread's timers to nanoseconds instead of 50 microseconds (PR_SET_TIMERSLACK).
void nightjar_thread_be_punctual(void);

// How the kernel schedules the calling thread.
struct nightjar_scheduling {
  // SCHED_OTHER and so on, without flags.
  int policy;
  // 1 to 99 of real-time policies, else 0.
  int priority;
  // Nanoseconds by which a timer may be late.
  int64_t timer_slack;
};
int nightjar_thread_scheduling(struct nightjar_scheduling *scheduling);

// A set of processors, as many as any kernel has been built for.
enum { nightjar_processor_limit = 8192 };
struct nightjar_processors {
  uint64_t bits[nightjar_processor_limit / 64];
};
// Gets the processors that the calling thread may run on. Returns 0, or an errno.
int nightjar_thread_processors(struct nightjar_processors *processors);
// The calling thread, and all that it starts from now on, run on these alone; 0, or an errno.
int nightjar_thread_set_processors(const struct nightjar_processors *processors);

// The policies, of which some are hidden without _GNU_SOURCE.
enum {
  nightjar_SCHED_OTHER = 0,
  nightjar_SCHED_FIFO = 1,
  nightjar_SCHED_RR = 2,
  nightjar_SCHED_BATCH = 3,
  nightjar_SCHED_IDLE = 5,
  nightjar_SCHED_DEADLINE = 6,
};

// A mutex that lends its holder the priority of whoever waits for it, so that a real-time stage
// never waits behind an ordinary thread that was preempted.
int nightjar_mutex_init(pthread_mutex_t *mutex);

// A condition whose timed waits are on CLOCK_MONOTONIC.
int nightjar_condition_init(pthread_cond_t *condition);

#endif
