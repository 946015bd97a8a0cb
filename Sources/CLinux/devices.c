#define _GNU_SOURCE
#include "nightjar_devices.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int nightjar_device_events(void) {
  int descriptor = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
  if (descriptor < 0) return -1;
  int one = 1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1 | 2};
  if (setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0 &&
      bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0)
    return descriptor;
  int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

ssize_t nightjar_take_device_event(int socket, void *memory, size_t capacity,
                                   struct nightjar_device_event_sender *sender) {
  struct sockaddr_nl address = {0};
  struct iovec part = {memory, capacity};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct ucred))];
  } control;
  struct msghdr message = {
      .msg_name = &address,
      .msg_namelen = sizeof address,
      .msg_iov = &part,
      .msg_iovlen = 1,
      .msg_control = &control,
      .msg_controllen = sizeof control,
  };
  ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC);
  if (length < 0) return -1;
  sender->port = address.nl_pid;
  sender->group = address.nl_groups;
  sender->user = UINT32_MAX;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
    struct ucred credentials;
    memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
    sender->user = credentials.uid;
  }
  return length;
}

unsigned int nightjar_device_major(uint64_t device) { return major(device); }

unsigned int nightjar_device_minor(uint64_t device) { return minor(device); }
