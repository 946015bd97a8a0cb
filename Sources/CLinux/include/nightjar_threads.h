// Threads by name.
#ifndef NIGHTJAR_THREADS_H
#define NIGHTJAR_THREADS_H

#include <pthread.h>

// Names the calling thread; names of more than 15 bytes are refused by the kernel (ERANGE).
int nightjar_thread_set_name(const char *name);

// Gives the calling thread real-time priority (SCHED_RR), as far as RLIMIT_RTPRIO allows it and at most so much; 0 where it
// has it. Threads that it starts do not inherit it. Root is not exempt: a limit of 0 is what a person has in a shell.
int nightjar_thread_raise(int priority);

// A mutex that lends its holder the priority of whoever waits for it, so that a real-time stage
// never waits behind an ordinary thread that was preempted.
int nightjar_mutex_init(pthread_mutex_t *mutex);

// A condition whose timed waits are on CLOCK_MONOTONIC.
int nightjar_condition_init(pthread_cond_t *condition);

#endif
