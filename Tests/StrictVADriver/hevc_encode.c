// The coded picture of HEVC: the client's headers, or the driver's own, in front of the slice data.
#include <stdlib.h>
#include <string.h>

#include "strict.h"

// VPS, SPS, PPS, SEI: the client's, and the driver's own where none came, each in its place.
static void append_sets(struct output *output, const struct context *context) {
  const struct picture *picture = &context->picture;
  const struct hevc_sps *sps = &picture->hevc.sps;
  uint8_t set[512];
  bool idr = is_idr(context);
  if (idr && !picture->hevc.brings_vps) append_nal(output, set, write_hevc_vps(sps, set, sizeof set) / 8);
  if (idr && !picture->brings_sps) append_nal(output, set, write_hevc_sps(sps, set, sizeof set) / 8);
  bool own_pps = idr && !picture->brings_pps;
  if (own_pps && !picture->brings_sps) {
    append_nal(output, set, write_hevc_pps(&picture->hevc.pps, set, sizeof set) / 8);
    own_pps = false;
  }
  append_packed(output, context);
  if (own_pps) append_nal(output, set, write_hevc_pps(&picture->hevc.pps, set, sizeof set) / 8);
}

static bool append_slice(struct output *output, const struct context *context, const struct hevc_data *data) {
  const struct picture *picture = &context->picture;
  uint8_t own[256], *header = own;
  size_t header_bits;
  struct hevc_slice_header h;
  const struct packed *packed = packed_slice(context, 0);
  if (packed) {
    header = packed_nal(packed, &header_bits);
  } else {
    h = hevc_slice_header_of(context);
    header_bits = write_hevc_slice(&h, &picture->hevc.sps, &picture->hevc.pps, own, sizeof own);
  }
  bool good = parse_hevc_slice(header, header_bits, &picture->hevc.sps, &picture->hevc.pps, &h);
  int32_t delta = data->qp - picture->hevc.pps.init_qp;
  // Constant QP is what the client's header says, and what the coder was told.
  if (context->config->rate_control == VA_RC_CQP && delta != h.qp_delta) good = false;
  if (good) {
    struct bit_writer writer = {.capacity = data->bytes + header_bits / 8 + 64};
    writer.data = malloc(writer.capacity);
    copy_bits(&writer, header, 0, h.qp_delta_from);
    write_se(&writer, delta);
    copy_bits(&writer, header, h.qp_delta_to, h.bits);
    write_bits(&writer, 1, 1);  // byte_alignment()
    while (writer.position % 8) write_bits(&writer, 0, 1);
    memcpy(writer.data + writer.position / 8, data->data, data->bytes);
    append_nal(output, writer.data, writer.position / 8 + data->bytes);
    free(writer.data);
  }
  if (header != own) free(header);
  return good;
}

VAStatus encode_hevc(struct driver *driver, struct context *context, bool redo, uint64_t frame) {
  const VAEncPictureParameterBufferHEVC *p = &context->picture.hevc.parameters;
  struct hevc_data data;
  VAStatus status = code_hevc(driver, context, redo, &data);
  if (status != VA_STATUS_SUCCESS) return status;
  struct output output = {0};
  append_sets(&output, context);
  if (append_slice(&output, context, &data)) {
    struct coded_picture coded = {.valid = true,
                                  .idr = is_idr(context),
                                  .reference = true,
                                  .reconstructed = p->decoded_curr_pic.picture_id,
                                  .poc = p->decoded_curr_pic.pic_order_cnt};
    hevc_coded(context, output.size, redo);
    deliver(driver, context, &output, p->coded_buf, data.qp, redo, frame, coded, p->last_picture != 0);
  } else {
    status = VA_STATUS_ERROR_ENCODING_ERROR;
  }
  free(output.data);
  return status;
}
