// Descriptors to wait for.
#ifndef NIGHTJAR_WAITING_H
#define NIGHTJAR_WAITING_H

#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>

// A non-blocking, close-on-exec eventfd of value 0.
int nightjar_eventfd(void);

// ppoll(2) with a relative timeout in nanoseconds and no signal mask; negative waits for ever.
int nightjar_poll(struct pollfd *descriptors, unsigned int count, int64_t timeout_nanoseconds);

// A close-on-exec epoll(7) instance; -1 and errno.
int nightjar_epoll(void);

static const uint32_t nightjar_EPOLLIN = EPOLLIN;
static const uint32_t nightjar_EPOLLOUT = EPOLLOUT;

// Watches the descriptor for these events, level-triggered; -1 and errno.
int nightjar_epoll_watch(int epoll, int descriptor, uint64_t token, uint32_t events);
int nightjar_epoll_forget(int epoll, int descriptor);

// Takes the events that are ready now, without waiting. Returns their number, or -1 and errno.
int nightjar_epoll_take(int epoll, struct epoll_event *events, int capacity);
static inline uint64_t nightjar_event_token(const struct epoll_event *event) { return event->data.u64; }

#endif
