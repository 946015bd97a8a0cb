#define _GNU_SOURCE
#include "nightjar_sockets.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

_Static_assert(sizeof(struct nightjar_message) == sizeof(struct mmsghdr), "struct mmsghdr has changed");
_Static_assert(offsetof(struct nightjar_message, sent) == offsetof(struct mmsghdr, msg_len),
               "struct mmsghdr has changed");

int nightjar_send_messages(int socket, struct nightjar_message *messages, unsigned int count) {
  return sendmmsg(socket, (struct mmsghdr *)messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int nightjar_udp_socket(int family) {
  return socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
}

static int is_ignored(int number) {
  struct sigaction action;
  return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int nightjar_stop_signals(void) {
  signal(SIGPIPE, SIG_IGN);
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
