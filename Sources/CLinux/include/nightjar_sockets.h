// Sending many datagrams in one call, and receiving signals by descriptor.
#ifndef NIGHTJAR_SOCKETS_H
#define NIGHTJAR_SOCKETS_H

#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <sys/uio.h>

// struct mmsghdr, which the headers hide without _GNU_SOURCE.
struct nightjar_message {
  struct msghdr header;
  unsigned int sent;
};

// sendmmsg(2) with MSG_DONTWAIT: how many messages were sent, or -1 and errno where the first one failed.
int nightjar_send_messages(int socket, struct nightjar_message *messages, unsigned int count);

// A UDP socket of the family, close-on-exec and non-blocking.
int nightjar_udp_socket(int family);

// A descriptor that becomes readable when SIGINT, SIGTERM or SIGHUP (the terminal is gone) arrives; all are blocked
// in the calling thread and in all that it starts afterwards. SIGINT and SIGHUP stay ignored where the program was
// started so (nohup, a shell's background job). SIGPIPE is ignored.
int nightjar_stop_signals(void);

// Ends the process at once as the signal's default action does, so that the parent sees which one it was.
_Noreturn void nightjar_end_by_signal(int number);

// Takes the signal that arrived: its number, or 0 where there is none.
int nightjar_next_signal(int descriptor);

#endif
