// A correct small VA-API client of one slice a picture, and the mistakes it makes when asked.
#ifndef MISUSE_H
#define MISUSE_H

#include <stdbool.h>
#include <stdio.h>
#include <va/va.h>
#include <va/va_drm.h>
#include <va/va_drmcommon.h>
#include <va/va_enc_h264.h>
#include <va/va_enc_hevc.h>

#include "hevc_headers.h"

enum { width = 318, height = 238, width_mbs = 20, height_mbs = 15, input_count = 2, picture_total = 6 };

struct client {
  VADisplay display;
  VAConfigID config;
  VAContextID context;
  VASurfaceID inputs[input_count], reconstructed[2];
  VABufferID coded[input_count];
  bool hevc;                         // HEVC Main, not H.264 High
  uint32_t rate_control, packed;
  int fd;
  FILE *stream, *pictures;           // what was coded, and what was to be
  uint32_t frame_num;                // of the picture next
  uint32_t bit_rate, frame_rate;
  bool new_rates;                    // to be told with the next picture
  uint64_t bytes;                    // coded so far
  int reference;                     // index of the last reconstructed surface
  VAStatus last;
  const char *call;                  // the first call refused, and its status
  VAStatus refused;
  uint32_t coded_status;             // of the segment read last
  bool begun, mapped;                // a picture; the first coded buffer: to be ended and unmapped at the end
};

// Whether this run is to make the mistake named.
bool is(const char *name);
// Notes the status of a call; true if it was accepted.
bool accepted(struct client *client, VAStatus status, const char *call);
bool setup(struct client *client);
void teardown(struct client *client);
bool upload(struct client *client, int input, int picture);
// Codes one picture; false as soon as a call is refused.
bool submit(struct client *client, int input, int picture, bool idr, bool redo);
bool collect(struct client *client, int input, bool keep);
bool import_input(struct client *client, int input);

// misuse_picture.c
bool add(struct client *client, VABufferType type, const void *data, size_t size);
bool add_packed(struct client *client, uint32_t type, const uint8_t *nal, size_t bits);
bool add_rates(struct client *client, bool idr);
// Picture order counts of the last picture whose data arrived, and of the last submitted.
extern int32_t order_of_reference, order_submitted;
// misuse_hevc.c: renders the buffers of a picture of HEVC.
bool add_hevc(struct client *client, int input, int number, bool idr, bool redo);

#endif
