// Descriptors to wait for.
#ifndef NIGHTJAR_WAITING_H
#define NIGHTJAR_WAITING_H

#include <poll.h>
#include <stdint.h>

// A non-blocking, close-on-exec eventfd of value 0.
int nightjar_eventfd(void);

// ppoll(2) with a relative timeout in nanoseconds and no signal mask; negative waits for ever.
int nightjar_poll(struct pollfd *descriptors, unsigned int count, int64_t timeout_nanoseconds);

#endif
