// The coded picture: the client's headers, or the driver's own, in front of x264's slice data.
#include <stdlib.h>
#include <string.h>

#include "strict.h"

static void append(struct output *output, const uint8_t *data, size_t size) {
  if (output->size + size > output->capacity) {
    output->capacity = (output->size + size) * 2;
    output->data = realloc(output->data, output->capacity);
  }
  memcpy(output->data + output->size, data, size);
  output->size += size;
}

void append_nal(struct output *output, const uint8_t *nal, size_t size) {
  static const uint8_t start[] = {0, 0, 0, 1};
  append(output, start, sizeof start);
  uint8_t *escaped = malloc(size * 3 / 2 + 8);
  append(output, escaped, escape(nal, size, escaped));
  free(escaped);
}

// The client's headers as they are, escaped if it left that to the driver.
void append_packed(struct output *output, const struct context *context) {
  const struct picture *picture = &context->picture;
  for (int i = 0; i < picture->packed_count; i++) {
    const struct packed *packed = &picture->packed[i];
    if (packed->type == VAEncPackedHeaderSlice) continue;
    if (packed->escaped) {
      append(output, packed->data, packed->bit_length / 8);
    } else {
      size_t bits;
      uint8_t *nal = packed_nal(packed, &bits);
      append_nal(output, nal, bits / 8);
      free(nal);
    }
  }
}

// SPS, PPS, SEI: the client's, and the driver's own where none came.
static void append_sets(struct output *output, const struct context *context) {
  const struct picture *picture = &context->picture;
  uint8_t set[256];
  if (is_idr(context) && !picture->brings_sps) {
    append_nal(output, set, write_sps(&picture->sps, set, sizeof set) / 8);
  }
  // A PPS of the driver's own follows the SPS that it belongs to.
  bool own_pps = is_idr(context) && !picture->brings_pps;
  if (own_pps && !picture->brings_sps) {
    append_nal(output, set, write_pps(&picture->pps, &picture->sps, set, sizeof set) / 8);
    own_pps = false;
  }
  append_packed(output, context);
  if (own_pps) append_nal(output, set, write_pps(&picture->pps, &picture->sps, set, sizeof set) / 8);
}

static size_t last_one_bit(const uint8_t *data, size_t bytes) {
  size_t bits = bytes * 8;
  while (bits > 0 && !(data[(bits - 1) / 8] >> (7 - (bits - 1) % 8) & 1)) bits--;
  return bits - 1;
}

static bool append_slice(struct output *output, const struct context *context, int index,
                         const struct coded_slice *coded) {
  const struct picture *picture = &context->picture;
  uint8_t own[256], *header = own;
  size_t header_bits;
  struct slice_header h;
  const struct packed *packed = packed_slice(context, index);
  if (packed) {
    header = packed_nal(packed, &header_bits);
  } else {
    h = slice_header_of(context, index);
    header_bits = write_slice_header(&h, &picture->sps, &picture->pps, own, sizeof own);
  }
  bool good = parse_slice_header(header, header_bits, &picture->sps, &picture->pps, &h);
  int32_t delta = coded->header.qp_delta - picture->pps.pic_init_qp;
  // Constant QP is what the client's header says, and what x264 was told.
  if (context->config->rate_control == VA_RC_CQP && delta != h.qp_delta) good = false;
  if (good) {
    struct bit_writer writer = {.capacity = coded->bytes + header_bits / 8 + 64};
    writer.data = malloc(writer.capacity);
    copy_bits(&writer, header, 0, h.qp_delta_from);
    write_se(&writer, delta);
    copy_bits(&writer, header, h.qp_delta_to, h.bits);
    if (coder_uses_cabac(context)) {
      while (writer.position % 8) write_bits(&writer, 1, 1);  // cabac_alignment_one_bit
      size_t from = (coded->header.bits + 7) / 8;
      memcpy(writer.data + writer.position / 8, coded->nal + from, coded->bytes - from);
      writer.position += (coded->bytes - from) * 8;
    } else {
      copy_bits(&writer, coded->nal, coded->header.bits, last_one_bit(coded->nal, coded->bytes));
      write_bits(&writer, 1, 1);
      while (writer.position % 8) write_bits(&writer, 0, 1);
    }
    append_nal(output, writer.data, writer.position / 8);
    free(writer.data);
  }
  if (header != own) free(header);
  return good;
}

// A device writes into the reconstructed surface: a client that still needs what was there finds out.
static void scribble(struct surface *surface, uint64_t frame) {
  if (surface->memory) memset(surface->memory, (int)(frame * 37 & 0xff), surface->memory_size);
}

static void commit(struct context *context, bool redo, bool lost, struct coded_picture coded, bool ends) {
  struct stream *stream = &context->stream;
  const struct picture *picture = &context->picture;
  if (!redo) stream->previous = stream->last;
  stream->last = coded;
  stream->started = true;
  stream->ended = ends;
  if (is_idr(context) || redo) stream->lost = stream->lost_seen = false;
  stream->redo_allowed = lost;
  stream->lost = stream->lost || lost;
  stream->sps = picture->sps;
  stream->pps = picture->pps;
  stream->sequence = picture->sequence;
  stream->hevc.sps = picture->hevc.sps;
  stream->hevc.pps = picture->hevc.pps;
  stream->hevc.sequence = picture->hevc.sequence;
  stream->misc = misc_of(context);
  if (level_of(context) != stream->level) {
    stream->level = level_of(context);
    stream->levels++;
    if (!is_idr(context)) stream->levels_between++;
  }
  stream->pictures++;
  if (is_idr(context)) stream->idrs++;
  if (lost) stream->overflows++;
}

void deliver(struct driver *driver, struct context *context, const struct output *output, VABufferID coded_buffer, int qp,
             bool redo, uint64_t frame, struct coded_picture picture, bool ends) {
  struct buffer *coded = object_find(driver, kind_buffer, coded_buffer);
  uint32_t room = coded->element_size;
  if (injection.coded_limit && injection.coded_limit < room) room = injection.coded_limit;
  bool garbage = injection.garbage_at && injection.garbage_at == frame;
  bool lost = output->size > room || overflows(frame);
  coded->filled = (uint32_t)(output->size > room ? room : output->size);
  // As real devices do it: success, and what fits; only the status bit tells.
  if (lost && coded->filled == output->size) coded->filled /= 2;
  memcpy(coded->data, output->data, coded->filled);
  if (garbage) memset(coded->data, 0xb6, coded->filled);
  coded->segments[0].status = (uint32_t)qp & VA_CODED_BUF_STATUS_PICTURE_AVE_QP_MASK;
  if (lost) coded->segments[0].status |= VA_CODED_BUF_STATUS_SLICE_OVERFLOW_MASK;
  coded->surface = context->picture.input;
  coded->frame = frame;
  coded->state = coded_pending;
  struct surface *input = object_find(driver, kind_surface, context->picture.input);
  input->in_flight = true;
  input->frame = frame;
  // A device does one picture after another.
  uint64_t now = now_ns();
  uint32_t last = driver->knobs.quality, level = level_of(context);
  // The driver's own level is the middle one.
  uint64_t above = level ? last - level : last / 2, ms = (uint64_t)injection.slow_ms + above * driver->knobs.quality_ms;
  context->ready_ns = (context->ready_ns > now ? context->ready_ns : now) + ms * 1000000;
  input->ready_ns = context->ready_ns;
  scribble(object_find(driver, kind_surface, picture.reconstructed), frame);
  context->stream.bytes += coded->filled;
  commit(context, redo, lost || garbage, picture, ends);
}

VAStatus encode_picture(struct driver *driver, struct context *context, bool redo, uint64_t frame) {
  struct coded_slice slices[max_slices];
  int count = 0;
  VAStatus status = code_picture(driver, context, redo, slices, &count);
  if (status != VA_STATUS_SUCCESS) return status;
  struct output output = {0};
  append_sets(&output, context);
  for (int i = 0; i < count && status == VA_STATUS_SUCCESS; i++) {
    if (!append_slice(&output, context, i, &slices[i])) status = VA_STATUS_ERROR_ENCODING_ERROR;
  }
  const VAEncPictureParameterBufferH264 *p = &context->picture.parameters;
  if (status == VA_STATUS_SUCCESS) {
    struct coded_picture coded = {.valid = true,
                                  .idr = is_idr(context),
                                  .reference = true,
                                  .reconstructed = p->CurrPic.picture_id,
                                  .frame_num = p->frame_num,
                                  .idr_pic_id = context->picture.slices[0].idr_pic_id,
                                  .poc = p->CurrPic.TopFieldOrderCnt};
    deliver(driver, context, &output, p->coded_buf, slices[0].header.qp_delta, redo, frame, coded, p->last_picture != 0);
  }
  free(output.data);
  return status;
}
