#define _GNU_SOURCE
#include "nightjar_threads.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

int nightjar_thread_set_name(const char *name) { return pthread_setname_np(pthread_self(), name); }

static int policy_of_thread(void) { return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

int nightjar_thread_raise(int priority, int is_ordered) {
  struct rlimit limit;
  int policy = policy_of_thread();
  if (policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE) return 0;
  if (getrlimit(RLIMIT_RTPRIO, &limit) != 0) return errno;
  if (limit.rlim_cur == 0 && !is_ordered) return EPERM;
  struct sched_param parameters = {
      .sched_priority =
          limit.rlim_cur > 0 && limit.rlim_cur < (rlim_t)priority ? (int)limit.rlim_cur : priority,
  };
  // Of the thread, not of the process: 0 is the caller's own thread.
  return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) == 0 ? 0 : errno;
}

void nightjar_thread_be_punctual(void) { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

int nightjar_thread_scheduling(struct nightjar_scheduling *scheduling) {
  struct sched_param parameters;
  scheduling->policy = policy_of_thread();
  if (scheduling->policy < 0 || sched_getparam(0, &parameters) != 0) return errno;
  scheduling->priority = parameters.sched_priority;
  int slack = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
  scheduling->timer_slack = slack < 0 ? 0 : slack;
  return 0;
}

_Static_assert(sizeof(unsigned long) == 8, "the kernel's sets of processors are of long words");
_Static_assert((int)nightjar_SCHED_OTHER == SCHED_OTHER && (int)nightjar_SCHED_FIFO == SCHED_FIFO &&
                   (int)nightjar_SCHED_RR == SCHED_RR && (int)nightjar_SCHED_BATCH == SCHED_BATCH &&
                   (int)nightjar_SCHED_IDLE == SCHED_IDLE && (int)nightjar_SCHED_DEADLINE == SCHED_DEADLINE,
               "sched.h");

int nightjar_thread_processors(struct nightjar_processors *processors) {
  memset(processors, 0, sizeof *processors);
  return sched_getaffinity(0, sizeof *processors, (cpu_set_t *)processors) == 0 ? 0 : errno;
}

int nightjar_thread_set_processors(const struct nightjar_processors *processors) {
  return sched_setaffinity(0, sizeof *processors, (const cpu_set_t *)processors) == 0 ? 0 : errno;
}

int nightjar_mutex_init(pthread_mutex_t *mutex) {
  pthread_mutexattr_t attributes;
  int result = pthread_mutexattr_init(&attributes);
  if (result != 0) return result;
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  result = pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return result;
}

int nightjar_condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  int result = pthread_condattr_init(&attributes);
  if (result != 0) return result;
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  result = pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
  return result;
}
