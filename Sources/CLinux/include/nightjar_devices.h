// Devices that come and go.
#ifndef NIGHTJAR_DEVICES_H
#define NIGHTJAR_DEVICES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A non-blocking, close-on-exec netlink socket that hears of devices from the kernel (group 1) and, where it runs, from
// udev (group 2), which speaks once its rules are done and permissions are set. -1 and errno.
int nightjar_device_events(void);

// The sender of a message. The kernel has port 0. group is 0 for a unicast message; user is UINT32_MAX without credentials.
struct nightjar_device_event_sender {
  uint32_t port;
  uint32_t group;
  uint32_t user;
};

// Takes one message without waiting. Its own length, which may be more than capacity; -1 and errno.
ssize_t nightjar_take_device_event(int socket, void *memory, size_t capacity,
                                   struct nightjar_device_event_sender *sender);

// The two numbers of a device, which are macros.
unsigned int nightjar_device_major(uint64_t device);
unsigned int nightjar_device_minor(uint64_t device);

#endif
