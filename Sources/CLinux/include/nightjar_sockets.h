// Sending many datagrams in one call, TCP connections that carry them, and receiving signals by descriptor.
#ifndef NIGHTJAR_SOCKETS_H
#define NIGHTJAR_SOCKETS_H

#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

// struct mmsghdr, which the headers hide without _GNU_SOURCE.
struct nightjar_message {
  struct msghdr header;
  unsigned int sent;
};

// sendmmsg(2) with MSG_DONTWAIT: how many messages were sent, or -1 and errno where the first one failed.
int nightjar_send_messages(int socket, struct nightjar_message *messages, unsigned int count);

// A UDP socket of the family, close-on-exec and non-blocking; of IPv6 alone where it is of that family.
int nightjar_udp_socket(int family);

// Room for the control messages of nightjar_set_segment_size and nightjar_set_source, aligned as these are. A struct
// in6_pktinfo, which the headers hide without _GNU_SOURCE, has 20 bytes.
struct nightjar_message_control {
  size_t bytes[(CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(20) + sizeof(size_t) - 1) / sizeof(size_t)];
};

// Has the kernel cut the message into datagrams of size bytes each, the last one of the rest (UDP_SEGMENT, udp(7)).
void nightjar_set_segment_size(struct nightjar_message *message, struct nightjar_message_control *control,
                               uint16_t size);

// Has the message leave from a local address, 4 or 16 bytes (IP_PKTINFO, ip(7); IPV6_PKTINFO, RFC 3542 section 6.2). Called
// after nightjar_set_segment_size, with the same control, where the message has both.
void nightjar_set_source(struct nightjar_message *message, struct nightjar_message_control *control,
                         const void *address, size_t count);

// Has the socket of the family tell at which local address a datagram came. 0, or -1 and errno.
int nightjar_tell_local_address(int socket, int family);

// The local address at which a datagram came; count is 4, 16, or 0 where it is not known.
struct nightjar_local_address {
  unsigned char bytes[16];
  size_t count;
};

// Like nightjar_receive, and tells the datagram's sender, a struct sockaddr_storage, and its local address.
ssize_t nightjar_receive_from(int socket, void *memory, size_t capacity, void *sender, socklen_t *sender_length,
                              struct nightjar_local_address *local);

// The most bytes of one message of several segments: those of an IPv4 packet.
static const int nightjar_segmented_bytes_limit = 65507;

// A TCP socket that listens at the address, close-on-exec and non-blocking; of IPv6 alone where the address is of that family.
// -1 and errno.
int nightjar_tcp_listener(const struct sockaddr *address, socklen_t length, int backlog);

// Takes a connection, whose client is told as a struct sockaddr_storage: close-on-exec, non-blocking, without Nagle's
// algorithm, and with room for `unsent` bytes that have not been sent even once. -1 and errno.
int nightjar_accept(int listener, void *client, socklen_t *length, int unsent);

// send(2) and recv(2) on a connection without waiting: how many bytes, or -1 and errno.
ssize_t nightjar_send_bytes(int socket, const void *bytes, size_t count);
ssize_t nightjar_receive_bytes(int socket, void *memory, size_t capacity);

// 1 if the connection takes bytes now, or has failed.
int nightjar_has_room(int socket);

// Bytes that were sent on the socket and have not left the machine, with what the kernel needs to keep them; -1 and
// errno.
int nightjar_unsent_bytes(int socket);

// The kernel's state of a TCP connection.
struct nightjar_tcp_state {
  // Bytes that were taken and have not been sent even once.
  uint64_t unsent;
  // Bytes that were taken and that the peer has not acknowledged, those among them too.
  uint64_t unacknowledged;
  // Bytes that the peer has acknowledged since the connection began.
  uint64_t acknowledged;
  // Bytes that the peer has received behind a gap, and has not acknowledged otherwise.
  uint64_t selective;
  // Bytes that the path carries in one round trip while nothing waits on it, as far as was seen.
  uint64_t path;
  // Bytes that may be on their way at once, by the congestion window and by the peer's; 0 where the kernel does not tell.
  uint64_t window;
  // The shortest round trip that was seen, in microseconds; 0 before one was seen.
  uint64_t shortest_round_trip;
  // The smoothed round trip (RFC 6298 section 2), in microseconds; 0 before one was measured.
  uint64_t smoothed_round_trip;
};

// Bytes that a TCP socket has taken and not sent even once; -1 where it cannot be told.
int nightjar_tcp_unsent_bytes(int socket);
// 0, or -1 with errno.
int nightjar_tcp_state(int socket, struct nightjar_tcp_state *state);

// recv(2) without waiting, of a datagram; -1 and errno. More than capacity is the datagram's own length.
ssize_t nightjar_receive(int socket, void *memory, size_t capacity);

// Binds to a port of every local address of the family that no socket has; any port if `port` is 0. Then others of this
// user may bind it too (SO_REUSEPORT). Returns the port, or -1 and errno. With SO_REUSEPORT from the start, the kernel may
// give a port that another program of this user shares.
int nightjar_bind_first(int socket, int family, uint16_t port);

// Binds to a port that nightjar_bind_first has bound, at every local address. Returns the port, or -1 and errno.
int nightjar_bind_shared(int socket, int family, uint16_t port);

// A descriptor that becomes readable when SIGINT, SIGTERM or SIGHUP (terminal closed, or reload) arrives. The calling thread
// and all threads that it starts later block these signals. SIGINT and SIGHUP stay ignored if the program was started so
// (nohup, a shell's background job). SIGPIPE is ignored.
int nightjar_stop_signals(void);

// Ends the process at once as the signal's default action does, so that the parent sees which one it was.
_Noreturn void nightjar_end_by_signal(int number);

// Takes the signal that arrived: its number, or 0 where there is none.
int nightjar_next_signal(int descriptor);

#endif
