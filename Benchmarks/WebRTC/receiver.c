// Many browsers in one process, by OpenSSL and libsrtp2: connectivity checks, DTLS, SRTP. Nothing is decoded.
//
//   receiver [loss=PERCENT] [timer=MS] [seed=NUMBER]
//
// The first line of output is the SHA-256 fingerprint of the certificate that all have. Then each line of input is a command:
//
//   PORT LOCAL REMOTE PASSWORD  begins to watch: the port of 127.0.0.1, both fragments, and the password of the answer.
//                               Answered once the handshake is complete, or 60 s are over: seconds, or -1
//   measure                     counts from now on. Answered at once
//   packets                     answered with the packets that all have got since then
//
// At the end of input the figures are printed as JSON. With "loss", this part of all datagrams gets lost in each direction
// until the handshake is complete; the seed says which. "timer" is the client's first time to wait for an answer of DTLS, which doubles: 50 ms in
// Chromium, 1000 ms in OpenSSL.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <srtp2/srtp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

enum { VIEWERS = 1024, BATCH = 32, ROOM = 2048, BUFFER = 8 << 20, PAUSE_MS = 2 };

struct viewer {
  int socket;
  char username[600], password[300];
  SSL *ssl;
  srtp_t srtp;
  int is_ready;
  double begun, next_check;
  int has_begun;         // whether a packet has come since "measure"
  uint16_t last;         // the highest sequence number
  uint64_t packets, missing, broken;
};

static struct viewer viewers[VIEWERS];
static int count, set;
static double loss;
static unsigned timer_us = 50000;
static SSL_CTX *context;
static uint64_t control_packets, bytes;

// Arrival and timestamp of each picture's last packet, at each viewer.
static struct {
  double arrival;
  uint32_t timestamp;
} *pictures;
static size_t picture_count, picture_room;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int is_lost(const struct viewer *viewer) { return !viewer->is_ready && drand48() * 100 < loss; }

static void transmit(struct viewer *viewer, const void *datagram, size_t size) {
  if (!is_lost(viewer)) (void)!send(viewer->socket, datagram, size, MSG_DONTWAIT);
}

static unsigned next_timer(SSL *ssl, unsigned former) {
  (void)ssl;
  return former == 0 ? timer_us : former * 2 < 5000000 ? former * 2 : 5000000;
}

static void make_context(void) {
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const unsigned char *)"receiver", -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  unsigned char hash[32];
  unsigned size = sizeof hash;
  X509_digest(certificate, EVP_sha256(), hash, &size);
  for (unsigned i = 0; i < size; i++) printf(i ? ":%02X" : "%02X", hash[i]);
  printf("\n");
  fflush(stdout);
  context = SSL_CTX_new(DTLS_client_method());
  if (!context || SSL_CTX_use_certificate(context, certificate) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1 ||
      SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM") != 0)
    exit(70);
  SSL_CTX_set_options(context, SSL_OP_NO_QUERY_MTU);
}

static unsigned char *put(unsigned char *place, unsigned type, const void *value, size_t size) {
  *place++ = (unsigned char)(type >> 8), *place++ = (unsigned char)type;
  *place++ = (unsigned char)(size >> 8), *place++ = (unsigned char)size;
  memcpy(place, value, size);
  memset(place + size, 0, 3);
  return place + (size + 3) / 4 * 4;
}

// A check that nominates the pair (RFC 8445 section 7.2.2).
static void check(struct viewer *viewer) {
  unsigned char message[1024] = {0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42}, *end = message + 20;
  RAND_bytes(message + 8, 12);
  end = put(end, 0x0006, viewer->username, strlen(viewer->username));
  end = put(end, 0x0024, "\x6e\x00\x01\xff", 4);
  end = put(end, 0x802a, "receiver", 8);
  end = put(end, 0x0025, "", 0);
  size_t length = (size_t)(end - message) + 4;
  message[2] = (unsigned char)(length >> 8), message[3] = (unsigned char)length;
  unsigned char code[20];
  unsigned size = sizeof code;
  HMAC(EVP_sha1(), viewer->password, (int)strlen(viewer->password), message, (size_t)(end - message), code, &size);
  end = put(end, 0x0008, code, sizeof code);
  transmit(viewer, message, (size_t)(end - message));
}

// Sends what DTLS has to say, a record in each datagram.
static void flush(struct viewer *viewer) {
  unsigned char memory[16384];
  int size = BIO_read(SSL_get_wbio(viewer->ssl), memory, sizeof memory);
  for (int place = 0; place + 13 <= size;) {
    int record = 13 + (memory[place + 11] << 8 | memory[place + 12]);
    transmit(viewer, memory + place, (size_t)record);
    place += record;
  }
}

static void finish_handshake(struct viewer *viewer) {
  unsigned char material[56], key[28];
  const char *label = "EXTRACTOR-dtls_srtp";
  if (SSL_export_keying_material(viewer->ssl, material, sizeof material, label, strlen(label), NULL, 0, 0) != 1) exit(70);
  // The server's key and salt.
  memcpy(key, material + 16, 16);
  memcpy(key + 16, material + 44, 12);
  srtp_policy_t policy = {.ssrc = {.type = ssrc_any_inbound}, .key = key, .window_size = 1024};
  srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
  srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
  if (srtp_create(&viewer->srtp, &policy) != srtp_err_status_ok) exit(70);
  viewer->is_ready = 1;
  viewer->next_check = now() + 4;
}

static void shake_hands(struct viewer *viewer) {
  ERR_clear_error();
  int result = SSL_do_handshake(viewer->ssl);
  flush(viewer);
  if (result == 1 && !viewer->is_ready) finish_handshake(viewer);
}

static void take_packet(struct viewer *viewer, unsigned char *packet, int size, double arrival) {
  if (packet[1] >= 192 && packet[1] <= 223) {
    control_packets++;
    return;
  }
  uint16_t number = (uint16_t)(packet[2] << 8 | packet[3]);
  uint32_t timestamp = (uint32_t)packet[4] << 24 | (uint32_t)packet[5] << 16 | (uint32_t)packet[6] << 8 | packet[7];
  int is_last = packet[1] >> 7;
  bytes += (uint64_t)size;
  if (srtp_unprotect(viewer->srtp, packet, &size) != srtp_err_status_ok) {
    viewer->broken++;
    return;
  }
  viewer->packets++;
  int16_t step = (int16_t)(number - viewer->last);
  if (!viewer->has_begun || step > 0) {
    if (viewer->has_begun) viewer->missing += (uint64_t)(step - 1);
    viewer->last = number;
    viewer->has_begun = 1;
  } else if (viewer->missing > 0) {
    viewer->missing--;
  }
  if (!is_last) return;
  if (picture_count == picture_room) {
    picture_room = picture_room ? picture_room * 2 : 65536;
    pictures = realloc(pictures, picture_room * sizeof *pictures);
  }
  pictures[picture_count].arrival = arrival;
  pictures[picture_count++].timestamp = timestamp;
}

static void drain(struct viewer *viewer) {
  static unsigned char memory[BATCH][ROOM];
  static struct mmsghdr messages[BATCH];
  static struct iovec vectors[BATCH];
  static char controls[BATCH][CMSG_SPACE(sizeof(struct timespec))];
  for (;;) {
    for (int i = 0; i < BATCH; i++) {
      vectors[i] = (struct iovec){memory[i], ROOM};
      messages[i].msg_hdr = (struct msghdr){
          .msg_iov = &vectors[i], .msg_iovlen = 1, .msg_control = controls[i], .msg_controllen = sizeof controls[i]};
    }
    int taken = recvmmsg(viewer->socket, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < taken; i++) {
      double arrival = now();
      for (struct cmsghdr *item = CMSG_FIRSTHDR(&messages[i].msg_hdr); item; item = CMSG_NXTHDR(&messages[i].msg_hdr, item))
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SO_TIMESTAMPNS) {
          struct timespec time;
          memcpy(&time, CMSG_DATA(item), sizeof time);
          arrival = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
        }
      int size = (int)messages[i].msg_len;
      unsigned first = size > 0 ? memory[i][0] : 255;
      if (size < 12 || is_lost(viewer)) continue;
      if (first >= 128 && first < 192 && viewer->is_ready) take_packet(viewer, memory[i], size, arrival);
      if (first >= 20 && first < 64) {
        BIO_write(SSL_get_rbio(viewer->ssl), memory[i], size);
        shake_hands(viewer);
      }
      if (first < 4 && !SSL_in_before(viewer->ssl)) continue;
      // The first answer to a check: DTLS begins.
      if (first < 4) shake_hands(viewer);
    }
    if (taken < BATCH) break;
  }
}

static void keep_time(struct viewer *viewer) {
  if (now() >= viewer->next_check) {
    check(viewer);
    viewer->next_check = now() + (viewer->is_ready ? 4 : 0.1);
  }
  struct timeval rest;
  if (!viewer->is_ready && DTLSv1_get_timeout(viewer->ssl, &rest) && rest.tv_sec == 0 && rest.tv_usec == 0) {
    DTLSv1_handle_timeout(viewer->ssl);
    flush(viewer);
  }
}

static void serve(void) {
  struct epoll_event events[256];
  for (int i = 0; i < count; i++) keep_time(&viewers[i]);
  int ready, rounds = 0;
  do {
    ready = epoll_wait(set, events, 256, 0);
    for (int i = 0; i < ready; i++) drain(&viewers[events[i].data.u32]);
  } while (ready == 256 && ++rounds < 16);
}

static void watch(int port, const char *local, const char *remote, const char *password) {
  if (count == VIEWERS) exit(64);
  struct viewer *viewer = &viewers[count];
  snprintf(viewer->username, sizeof viewer->username, "%s:%s", remote, local);
  snprintf(viewer->password, sizeof viewer->password, "%s", password);
  viewer->socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  int size = BUFFER, one = 1;
  if (setsockopt(viewer->socket, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)
    setsockopt(viewer->socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(viewer->socket, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (connect(viewer->socket, (struct sockaddr *)&address, sizeof address) != 0) exit(69);
  viewer->ssl = SSL_new(context);
  SSL_set_bio(viewer->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  BIO_set_mem_eof_return(SSL_get_rbio(viewer->ssl), -1);
  SSL_set_mtu(viewer->ssl, 1200);
  SSL_set_connect_state(viewer->ssl);
  DTLS_set_timer_cb(viewer->ssl, next_timer);
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)count};
  epoll_ctl(set, EPOLL_CTL_ADD, viewer->socket, &event);
  viewer->begun = now();
  count++;
  while (!viewer->is_ready && now() - viewer->begun < 60) {
    serve();
    usleep(1000);
  }
  printf("%.4f\n", viewer->is_ready ? now() - viewer->begun : -1);
}

static void measure(void) {
  serve();
  picture_count = 0;
  bytes = control_packets = 0;
  for (int i = 0; i < count; i++) {
    struct viewer *viewer = &viewers[i];
    viewer->has_begun = 0;
    viewer->packets = viewer->missing = viewer->broken = 0;
  }
  printf("ok\n");
}

static int compare(const void *one, const void *other) {
  double left = *(const double *)one, right = *(const double *)other;
  return left < right ? -1 : left > right;
}

static void report(void) {
  uint64_t packets = 0, missing = 0, broken = 0, full = 0, idle = 0;
  for (int i = 0; i < count; i++) {
    packets += viewers[i].packets;
    missing += viewers[i].missing;
    broken += viewers[i].broken;
    idle += viewers[i].packets == 0;
    uint32_t memory[SK_MEMINFO_VARS];
    socklen_t size = sizeof memory;
    if (getsockopt(viewers[i].socket, SOL_SOCKET, SO_MEMINFO, memory, &size) == 0) full += memory[SK_MEMINFO_DROPS];
  }
  // How much later than the earliest one each picture was complete, by the stream's own clock.
  double *delays = malloc((picture_count + 1) * sizeof *delays), least = 1e300;
  for (size_t i = 0; i < picture_count; i++) {
    delays[i] = pictures[i].arrival - (double)(int32_t)(pictures[i].timestamp - pictures[0].timestamp) / 90000;
    if (delays[i] < least) least = delays[i];
  }
  size_t late = 0;
  for (size_t i = 0; i < picture_count; i++) {
    delays[i] = (delays[i] - least) * 1000;
    late += delays[i] > 1000.0 / 30;
  }
  qsort(delays, picture_count, sizeof *delays, compare);
  double at[3] = {0, 0, 0}, parts[3] = {0.5, 0.99, 1};
  for (int i = 0; i < 3 && picture_count > 0; i++) at[i] = delays[(size_t)((double)(picture_count - 1) * parts[i])];
  printf("{\"viewers\": %d, \"without_stream\": %lu, \"packets\": %lu, \"bytes\": %lu, \"missing\": %lu, \"not_authentic\": %lu, "
         "\"rtcp\": %lu, \"dropped_by_full_receiver\": %lu, \"pictures\": %zu, \"late\": %zu, \"p50_ms\": %.2f, "
         "\"p99_ms\": %.2f, \"max_ms\": %.2f}\n",
         count, idle, packets, bytes, missing, broken, control_packets, full, picture_count, late, at[0], at[1], at[2]);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "loss=", 5) == 0) loss = atof(argv[i] + 5);
    if (strncmp(argv[i], "timer=", 6) == 0) timer_us = (unsigned)atoi(argv[i] + 6) * 1000;
    if (strncmp(argv[i], "seed=", 5) == 0) srand48(atol(argv[i] + 5));
  }
  srtp_init();
  set = epoll_create1(0);
  make_context();
  char line[2048];
  setvbuf(stdin, NULL, _IONBF, 0);
  struct pollfd input = {.fd = 0, .events = POLLIN};
  for (;;) {
    if (poll(&input, 1, PAUSE_MS) == 0) {
      serve();
      continue;
    }
    if (!fgets(line, sizeof line, stdin)) break;
    int port;
    char local[256], remote[257], password[257];
    if (sscanf(line, "%d %255s %256s %256s", &port, local, remote, password) == 4) {
      watch(port, local, remote, password);
    } else if (strcmp(line, "measure\n") == 0) {
      measure();
    } else if (strcmp(line, "packets\n") == 0) {
      uint64_t packets = 0;
      serve();
      for (int i = 0; i < count; i++) packets += viewers[i].packets;
      printf("%lu\n", packets);
    }
    fflush(stdout);
  }
  serve();
  report();
  return 0;
}
