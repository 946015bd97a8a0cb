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

int nightjar_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int nightjar_epoll_watch(int epoll, int descriptor, uint64_t token, uint32_t events) {
  struct epoll_event event = {.events = events, .data = {.u64 = token}};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int nightjar_epoll_forget(int epoll, int descriptor) { return epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL); }

int nightjar_epoll_take(int epoll, struct epoll_event *events, int capacity) {
  return epoll_wait(epoll, events, capacity, 0);
}
