#define _GNU_SOURCE
#include "nightjar_sockets.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

// glibc tells these since 2.30 only where it defines them at all.
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

_Static_assert(sizeof(struct nightjar_message) == sizeof(struct mmsghdr), "struct mmsghdr has changed");
_Static_assert(offsetof(struct nightjar_message, sent) == offsetof(struct mmsghdr, msg_len),
               "struct mmsghdr has changed");

int nightjar_send_messages(int socket, struct nightjar_message *messages, unsigned int count) {
  return sendmmsg(socket, (struct mmsghdr *)messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int nightjar_udp_socket(int family) {
  int descriptor = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
  int one = 1;
  // So that both families may have the same port.
  if (descriptor >= 0 && family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  return descriptor;
}

void nightjar_set_segment_size(struct nightjar_message *message, struct nightjar_message_control *control,
                               uint16_t size) {
  message->header.msg_control = control;
  message->header.msg_controllen = CMSG_LEN(sizeof size);
  struct cmsghdr *header = CMSG_FIRSTHDR(&message->header);
  header->cmsg_level = SOL_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof size);
  memcpy(CMSG_DATA(header), &size, sizeof size);
  message->header.msg_controllen = CMSG_SPACE(sizeof size);
}

void nightjar_set_source(struct nightjar_message *message, struct nightjar_message_control *control,
                         const void *address, size_t count) {
  size_t before = message->header.msg_control ? message->header.msg_controllen : 0;
  struct cmsghdr *header = (struct cmsghdr *)((char *)control + before);
  if (count == sizeof(struct in_addr)) {
    struct in_pktinfo information = {.ipi_ifindex = 0};
    memcpy(&information.ipi_spec_dst, address, count);
    *header = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof information)};
    memcpy(CMSG_DATA(header), &information, sizeof information);
    message->header.msg_controllen = before + CMSG_SPACE(sizeof information);
  } else if (count == sizeof(struct in6_addr)) {
    struct in6_pktinfo information = {.ipi6_ifindex = 0};
    memcpy(&information.ipi6_addr, address, count);
    *header =
        (struct cmsghdr){.cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO, .cmsg_len = CMSG_LEN(sizeof information)};
    memcpy(CMSG_DATA(header), &information, sizeof information);
    message->header.msg_controllen = before + CMSG_SPACE(sizeof information);
  } else {
    return;
  }
  message->header.msg_control = control;
}

int nightjar_tell_local_address(int socket, int family) {
  int one = 1;
  return family == AF_INET6 ? setsockopt(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one)
                            : setsockopt(socket, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
}

int nightjar_tcp_listener(const struct sockaddr *address, socklen_t length, int backlog) {
  int descriptor = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (descriptor < 0) return -1;
  int one = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (address->sa_family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  if (bind(descriptor, address, length) == 0 && listen(descriptor, backlog) == 0) return descriptor;
  int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

int nightjar_accept(int listener, void *client, socklen_t *length, int unsent) {
  int descriptor = accept4(listener, client, length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) return -1;
  int one = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
  return descriptor;
}

ssize_t nightjar_send_bytes(int socket, const void *bytes, size_t count) {
  return send(socket, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t nightjar_receive_bytes(int socket, void *memory, size_t capacity) {
  return recv(socket, memory, capacity, MSG_DONTWAIT);
}

int nightjar_has_room(int socket) {
  struct pollfd descriptor = {.fd = socket, .events = POLLOUT};
  return poll(&descriptor, 1, 0) > 0;
}

int nightjar_unsent_bytes(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

int nightjar_tcp_unsent_bytes(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQNSD, &bytes) == 0 ? bytes : -1;
}

int nightjar_tcp_state(int socket, struct nightjar_tcp_state *state) {
  struct tcp_info info;
  memset(&info, 0, sizeof info);
  socklen_t size = sizeof info;
  int waiting = 0;
  int unsent = nightjar_tcp_unsent_bytes(socket);
  if (unsent < 0 || ioctl(socket, SIOCOUTQ, &waiting) != 0) return -1;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return -1;
  state->unsent = (uint64_t)unsent;
  state->unacknowledged = (uint64_t)waiting;
  // Older kernels tell less, and then nothing is in what was not written.
  state->acknowledged = info.tcpi_bytes_acked;
  state->selective = (uint64_t)info.tcpi_sacked * info.tcpi_snd_mss;
  state->shortest_round_trip = info.tcpi_min_rtt == UINT32_MAX ? 0 : info.tcpi_min_rtt;
  state->smoothed_round_trip = info.tcpi_rtt;
  state->path = info.tcpi_delivery_rate / 1000 * state->shortest_round_trip / 1000;
  uint64_t congestion = (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss;
  state->window = congestion < info.tcpi_snd_wnd ? congestion : info.tcpi_snd_wnd;
  return 0;
}

ssize_t nightjar_receive(int socket, void *memory, size_t capacity) {
  return recv(socket, memory, capacity, MSG_DONTWAIT | MSG_TRUNC);
}

ssize_t nightjar_receive_from(int socket, void *memory, size_t capacity, void *sender, socklen_t *sender_length,
                              struct nightjar_local_address *local) {
  struct iovec vector = {.iov_base = memory, .iov_len = capacity};
  size_t control[32];
  struct msghdr header = {.msg_name = sender, .msg_namelen = *sender_length, .msg_iov = &vector,
                          .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t count = recvmsg(socket, &header, MSG_DONTWAIT | MSG_TRUNC);
  *sender_length = header.msg_namelen;
  local->count = 0;
  if (count < 0) return count;
  for (struct cmsghdr *item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_PKTINFO) {
      struct in_pktinfo information;
      memcpy(&information, CMSG_DATA(item), sizeof information);
      local->count = sizeof information.ipi_spec_dst;
      memcpy(local->bytes, &information.ipi_spec_dst, local->count);
    } else if (item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_PKTINFO) {
      struct in6_pktinfo information;
      memcpy(&information, CMSG_DATA(item), sizeof information);
      local->count = sizeof information.ipi6_addr;
      memcpy(local->bytes, &information.ipi6_addr, local->count);
    }
  }
  return count;
}

static int share(int socket) {
  int one = 1;
  return setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
}

static int bind_port(int socket, int family, uint16_t port) {
  if (family == AF_INET6) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    socklen_t length = sizeof address;
    if (bind(socket, (struct sockaddr *)&address, length) != 0) return -1;
    if (getsockname(socket, (struct sockaddr *)&address, &length) != 0) return -1;
    return ntohs(address.sin6_port);
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  socklen_t length = sizeof address;
  if (bind(socket, (struct sockaddr *)&address, length) != 0) return -1;
  if (getsockname(socket, (struct sockaddr *)&address, &length) != 0) return -1;
  return ntohs(address.sin_port);
}

int nightjar_bind_first(int socket, int family, uint16_t port) {
  int bound = bind_port(socket, family, port);
  return bound < 0 || share(socket) != 0 ? -1 : bound;
}

int nightjar_bind_shared(int socket, int family, uint16_t port) {
  return share(socket) != 0 ? -1 : bind_port(socket, family, port);
}

static int is_ignored(int number) {
  struct sigaction action;
  return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int nightjar_stop_signals(void) {
  signal(SIGPIPE, SIG_IGN);
  // A file that may grow no further (RLIMIT_FSIZE) is an error of its write, not the end of the stream.
  signal(SIGXFSZ, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  // Blocked, an ignored signal would be kept for the descriptor, and end what nohup was to keep alive.
  if (!is_ignored(SIGINT)) sigaddset(&signals, SIGINT);
  if (!is_ignored(SIGHUP)) sigaddset(&signals, SIGHUP);
  if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0) return -1;
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

void nightjar_end_by_signal(int number) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, number);
  signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
  raise(number);
  _exit(128 + number);
}

int nightjar_next_signal(int descriptor) {
  struct signalfd_siginfo information;
  if (read(descriptor, &information, sizeof information) != sizeof information) return 0;
  return (int)information.ssi_signo;
}
