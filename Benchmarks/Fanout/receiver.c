// Many viewers in one process: VIEWERS pairs of UDP sockets on loopback, RTP on the even port and RTCP on the next.
// Counts by RTP sequence numbers what each viewer has got. A line of standard input is answered with the packets that all
// have got so far; once it ends, the figures are printed as JSON.
//
//   receiver VIEWERS [gro] [apart] [reports=MS]
//
// With "gro" the sockets take messages that the sender did not cut apart (UDP_GRO). With "apart" each viewer has sequence
// numbers of its own; otherwise one who has got less than another misses something. With "reports" a line `r` has each viewer
// send a receiver report in each so many milliseconds on average, and a line `s` has it stop. The first line of output is the first
// viewer's port; each next viewer's is two higher.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

enum { BATCH = 32, ROOM = 65536, BUFFER = 8 << 20, PAUSE_MS = 5 };

struct viewer {
  int media, control;
  int has_begun;
  uint16_t last;       // the highest sequence number
  int64_t first, high; // extended by wraps
  uint64_t packets, bytes, late, reports;
  uint32_t source;         // of the stream
  uint32_t sender_report;  // the middle of its NTP time
  double reported, due;    // when that came, and when the next report of ours is due
  struct sockaddr_in peer; // where its RTCP comes from
};

static uint64_t reports_sent;

static struct mmsghdr messages[BATCH];
static struct iovec vectors[BATCH];
static char controls[BATCH][CMSG_SPACE(sizeof(int))];

static int open_socket(uint16_t port, int takes_groups) {
  int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int size = BUFFER, one = 1;
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  if (takes_groups) setsockopt(descriptor, SOL_UDP, UDP_GRO, &one, sizeof one);
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
  close(descriptor);
  return -1;
}

static void count(struct viewer *viewer, const unsigned char *packet, size_t size) {
  if (size < 12 || packet[0] >> 6 != 2) return;
  uint16_t number = (uint16_t)(packet[2] << 8 | packet[3]);
  memcpy(&viewer->source, packet + 8, sizeof viewer->source);
  viewer->packets++;
  viewer->bytes += size;
  if (!viewer->has_begun) {
    viewer->has_begun = 1;
    viewer->last = number;
    viewer->first = viewer->high = number;
    return;
  }
  int16_t step = (int16_t)(number - viewer->last);
  if (step > 0) {
    viewer->last = number;
    viewer->high += step;
  } else {
    viewer->late++; // out of order, or twice
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void drain_control(struct viewer *viewer) {
  unsigned char datagram[2048];
  socklen_t length = sizeof viewer->peer;
  for (ssize_t size; (size = recvfrom(viewer->control, datagram, sizeof datagram, MSG_DONTWAIT,
                                      (struct sockaddr *)&viewer->peer, &length)) > 0;) {
    viewer->reports++;
    if (size < 28 || datagram[1] != 200) continue;
    memcpy(&viewer->sender_report, datagram + 10, sizeof viewer->sender_report);
    viewer->reported = now();
  }
}

// Takes all that a viewer has got.
static void drain(struct viewer *viewer) {
  for (;;) {
    for (int i = 0; i < BATCH; i++) messages[i].msg_hdr.msg_controllen = sizeof controls[i];
    int taken = recvmmsg(viewer->media, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < taken; i++) {
      size_t length = messages[i].msg_len, step = length;
      for (struct cmsghdr *c = CMSG_FIRSTHDR(&messages[i].msg_hdr); c; c = CMSG_NXTHDR(&messages[i].msg_hdr, c))
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) step = (size_t)*(int *)(void *)CMSG_DATA(c);
      const unsigned char *bytes = vectors[i].iov_base;
      for (size_t offset = 0; offset < length; offset += step)
        count(viewer, bytes + offset, length - offset < step ? length - offset : step);
    }
    if (taken < BATCH) break;
  }
  drain_control(viewer);
}

// A receiver report and the name of the receiver (RFC 3550 sections 6.4.2 and 6.5): all that came in order has come.
static void report(struct viewer *viewer, uint32_t own) {
  if (!viewer->has_begun || !viewer->peer.sin_port) return;
  uint32_t delay = viewer->sender_report ? (uint32_t)((now() - viewer->reported) * 65536) : 0;
  uint32_t words[12] = {htonl(0x81c90007), htonl(own), viewer->source, 0, htonl((uint32_t)viewer->high), 0,
                        viewer->sender_report, htonl(delay), htonl(0x81ca0003), htonl(own)};
  // CNAME of four letters, and the end of the items.
  memcpy(&words[10], "\1\4many\0", 8);
  if (sendto(viewer->control, words, sizeof words, MSG_DONTWAIT, (struct sockaddr *)&viewer->peer, sizeof viewer->peer) > 0)
    reports_sent++;
}

int main(int argc, char **argv) {
  int number = argc > 1 ? atoi(argv[1]) : 0;
  int takes_groups = 0, apart = 0, is_reporting = 0;
  double interval = 0;
  for (int i = 2; i < argc; i++) {
    takes_groups |= strcmp(argv[i], "gro") == 0;
    apart |= strcmp(argv[i], "apart") == 0;
    if (strncmp(argv[i], "reports=", 8) == 0) interval = atof(argv[i] + 8) / 1000;
  }
  if (number < 1 || number > 4096) return fprintf(stderr, "receiver: choose 1 to 4096 viewers\n"), 64;
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);

  struct viewer *viewers = calloc((size_t)number, sizeof *viewers);
  int base = 0;
  for (int start = 20000; start + 2 * number < 60000 && !base; start += 2 * number) {
    int open = 0;
    for (; open < number; open++) {
      viewers[open].media = open_socket((uint16_t)(start + 2 * open), takes_groups);
      viewers[open].control = viewers[open].media < 0 ? -1 : open_socket((uint16_t)(start + 2 * open + 1), 0);
      if (viewers[open].control < 0) break;
    }
    if (open == number) base = start;
    if (!base)
      for (int i = 0; i <= open; i++) {
        if (viewers[i].media >= 0) close(viewers[i].media);
        if (viewers[i].control >= 0) close(viewers[i].control);
      }
  }
  if (!base) return fprintf(stderr, "receiver: no row of %d free ports: %s\n", 2 * number, strerror(errno)), 69;
  for (int i = 0; i < BATCH; i++) {
    vectors[i] = (struct iovec){malloc(ROOM), ROOM};
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_control = controls[i];
  }
  int set = epoll_create1(0);
  for (int i = 0; i < number; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
    epoll_ctl(set, EPOLL_CTL_ADD, viewers[i].media, &event);
  }
  printf("%d\n", base);
  fflush(stdout);

  // Looks by the clock and never waits on the sockets, so that no sender pays for waking it.
  struct pollfd input = {.fd = 0, .events = POLLIN};
  struct epoll_event events[256];
  for (;;) {
    int asked = poll(&input, 1, PAUSE_MS);
    char question;
    if (asked > 0 && read(0, &question, 1) <= 0) break;
    if (asked > 0 && question != '\n') {
      is_reporting = question == 'r' && interval > 0;
      for (int i = 0; i < number; i++) viewers[i].due = now() + interval * i / number;
      continue;
    }
    if (asked > 0) {
      uint64_t packets = 0;
      for (int i = 0; i < number; i++) {
        drain(&viewers[i]);
        packets += viewers[i].packets;
      }
      printf("%lu\n", packets);
      fflush(stdout);
      continue;
    }
    int ready, rounds = 0;
    do {
      ready = epoll_wait(set, events, 256, 0);
      for (int i = 0; i < ready; i++) drain(&viewers[events[i].data.u32]);
    } while (ready == 256 && ++rounds < 16);
    for (int i = 0; is_reporting && i < number; i++)
      if (now() >= viewers[i].due) {
        report(&viewers[i], 0x6d000000u + (uint32_t)i);
        // RFC 3550 section 6.3.1. Reports after as many bytes each time would be those of a player that counts bytes, which is
        // missed as soon as these have left.
        viewers[i].due += interval * (0.5 + drand48());
      }
  }
  for (int i = 0; i < number; i++) drain(&viewers[i]);

  // One stream goes to all: what anybody has got, everybody should have.
  int64_t first = INT64_MAX, high = INT64_MIN;
  for (int i = 0; i < number; i++)
    if (viewers[i].has_begun) {
      if (viewers[i].first < first) first = viewers[i].first;
      if (viewers[i].high > high) high = viewers[i].high;
    }
  uint64_t packets = 0, bytes = 0, late = 0, missing = 0, unlucky = 0, without = 0, full = 0, reports = 0;
  for (int i = 0; i < number; i++) {
    struct viewer *viewer = &viewers[i];
    packets += viewer->packets;
    bytes += viewer->bytes;
    late += viewer->late;
    reports += viewer->reports;
    if (!viewer->has_begun) without++;
    int64_t from = apart ? viewer->first : first, to = apart ? viewer->high : high;
    int64_t expected = first <= high && (!apart || viewer->has_begun) ? to - from + 1 : 0;
    int64_t absent = expected - (int64_t)(viewer->packets - viewer->late);
    if (absent > 0) missing += (uint64_t)absent, unlucky++;
    uint32_t memory[SK_MEMINFO_VARS];
    socklen_t size = sizeof memory;
    if (getsockopt(viewer->media, SOL_SOCKET, SO_MEMINFO, memory, &size) == 0) full += memory[SK_MEMINFO_DROPS];
  }
  printf("{\"viewers\": %d, \"packets\": %lu, \"bytes\": %lu, \"missing\": %lu, \"viewers_with_loss\": %lu, "
         "\"viewers_without_stream\": %lu, \"late\": %lu, \"dropped_by_full_receiver\": %lu, \"rtcp_datagrams\": %lu, "
         "\"reports_sent\": %lu}\n",
         number, packets, bytes, missing, unlucky, without, late, full, reports, reports_sent);
  return 0;
}
