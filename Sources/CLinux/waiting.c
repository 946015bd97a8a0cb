#define _GNU_SOURCE
#include "nightjar_waiting.h"

#include <stddef.h>
#include <sys/eventfd.h>
#include <time.h>

int nightjar_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int nightjar_poll(struct pollfd *descriptors, unsigned int count, int64_t timeout_nanoseconds) {
  struct timespec timeout = {
      .tv_sec = timeout_nanoseconds / 1000000000,
      .tv_nsec = timeout_nanoseconds % 1000000000,
  };
  return ppoll(descriptors, count, timeout_nanoseconds < 0 ? NULL : &timeout, NULL);
}
