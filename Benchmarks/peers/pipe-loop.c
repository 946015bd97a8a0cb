// The floor of a pipe to the wire: one thread that reads a picture of YUV4MPEG2 from standard input, encodes it by x264
// as the other programs do, and sends each packet of RTP (RFC 6184) by sendmsg. It does nothing else.
//
//   cc -O2 -o pipe-loop pipe-loop.c -lx264
//   pipe-loop PORT KBIT SLICES BUFFER_SECONDS KEY_FRAME_FRAMES MTU < clip.y4m
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <x264.h>

static int out;
static uint16_t sequence;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

/// Reads `count` bytes; 0 at the end of the input.
static int take(uint8_t *bytes, size_t count) {
  while (count > 0) {
    ssize_t got = read(STDIN_FILENO, bytes, count);
    if (got < 0) fail("read");
    if (got == 0) return 0;
    bytes += got;
    count -= (size_t)got;
  }
  return 1;
}

/// Reads a line without its end; 0 at the end of the input.
static int line(char *text, size_t room) {
  for (size_t index = 0; index + 1 < room; index++) {
    if (!take((uint8_t *)text + index, 1)) return 0;
    if (text[index] == '\n') {
      text[index] = 0;
      return 1;
    }
  }
  return 0;
}

static void packet(const uint8_t *head, size_t head_count, const uint8_t *bytes, size_t count, uint32_t time, int last) {
  uint8_t rtp[14] = {0x80, (uint8_t)(96 | (last ? 0x80 : 0)), (uint8_t)(sequence >> 8), (uint8_t)sequence,
                     (uint8_t)(time >> 24), (uint8_t)(time >> 16), (uint8_t)(time >> 8), (uint8_t)time, 1, 2, 3, 4};
  sequence++;
  memcpy(rtp + 12, head, head_count);
  struct iovec parts[2] = {{rtp, 12 + head_count}, {(void *)bytes, count}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  // Nobody may listen yet.
  (void)sendmsg(out, &message, 0);
}

/// Sends a NAL unit: alone, or in fragments.
static void nal_unit(const uint8_t *bytes, size_t count, uint32_t time, int last, size_t limit) {
  if (count <= limit) return packet(NULL, 0, bytes, count, time, last);
  uint8_t head[2] = {(uint8_t)((bytes[0] & 0xe0) | 28), (uint8_t)((bytes[0] & 0x1f) | 0x80)};
  for (size_t at = 1; at < count;) {
    size_t part = count - at < limit - 2 ? count - at : limit - 2;
    int ends = at + part == count;
    if (ends) head[1] |= 0x40;
    packet(head, 2, bytes + at, part, time, last && ends);
    head[1] &= 0x1f;
    at += part;
  }
}

int main(int count, char **words) {
  if (count != 7) return 64;
  int kbit = atoi(words[2]), slices = atoi(words[3]), key_frames = atoi(words[5]);
  size_t limit = (size_t)atoi(words[6]) - 12;
  char text[256];
  int width = 0, height = 0;
  if (!line(text, sizeof text) || sscanf(text, "YUV4MPEG2 W%d H%d", &width, &height) != 2) return 65;

  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out = socket(AF_INET, SOCK_DGRAM, 0);
  int room = 4 << 20;
  setsockopt(out, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  if (out < 0 || connect(out, (struct sockaddr *)&to, sizeof to) != 0) fail("socket");

  x264_param_t parameters;
  x264_param_default_preset(&parameters, "ultrafast", "zerolatency");
  parameters.i_log_level = X264_LOG_NONE;
  parameters.i_csp = X264_CSP_I420;
  parameters.i_width = width;
  parameters.i_height = height;
  parameters.i_threads = 1;
  parameters.b_sliced_threads = 0;
  parameters.i_slice_count = slices > 1 ? slices : 0;
  parameters.i_fps_num = 30;
  parameters.i_fps_den = 1;
  parameters.b_vfr_input = 0;
  parameters.i_keyint_max = parameters.i_keyint_min = key_frames;
  parameters.i_scenecut_threshold = 0;
  parameters.b_repeat_headers = 1;
  parameters.rc.i_rc_method = X264_RC_ABR;
  parameters.rc.i_bitrate = parameters.rc.i_vbv_max_bitrate = kbit;
  parameters.rc.i_vbv_buffer_size = (int)(kbit * atof(words[4]));
  x264_param_apply_profile(&parameters, "baseline");
  x264_t *encoder = x264_encoder_open(&parameters);
  if (!encoder) fail("x264");

  size_t luma = (size_t)width * (size_t)height;
  uint8_t *picture = malloc(luma * 3 / 2);
  x264_picture_t in, coded;
  x264_picture_init(&in);
  in.img.i_csp = X264_CSP_I420;
  in.img.i_plane = 3;
  in.img.i_stride[0] = width;
  in.img.i_stride[1] = in.img.i_stride[2] = width / 2;
  in.img.plane[0] = picture;
  in.img.plane[1] = picture + luma;
  in.img.plane[2] = picture + luma * 5 / 4;
  for (int64_t number = 0; line(text, sizeof text) && take(picture, luma * 3 / 2); number++) {
    in.i_pts = number;
    x264_nal_t *units;
    int unit_count;
    if (x264_encoder_encode(encoder, &units, &unit_count, &in, &coded) < 0) fail("x264");
    for (int index = 0; index < unit_count; index++) {
      size_t start = units[index].b_long_startcode ? 4 : 3;
      nal_unit(units[index].p_payload + start, (size_t)units[index].i_payload - start, (uint32_t)(number * 3000),
               index + 1 == unit_count, limit);
    }
  }
  x264_encoder_close(encoder);
  return 0;
}
