#define _GNU_SOURCE
#include "nightjar_threads.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

int nightjar_thread_set_name(const char *name) { return pthread_setname_np(pthread_self(), name); }

int nightjar_thread_raise(int priority) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_RTPRIO, &limit) != 0) return errno;
  if (limit.rlim_cur == 0) return EPERM;
  struct sched_param parameters = {
      .sched_priority = limit.rlim_cur < (rlim_t)priority ? (int)limit.rlim_cur : priority,
  };
  // Of the thread, not of the process: 0 is the caller's own thread.
  return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) == 0 ? 0 : errno;
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
