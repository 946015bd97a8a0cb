// What a picture must hold, and the sequence buffer: dimensions, cropping, profile.
#include <string.h>

#include "strict.h"

bool is_idr(const struct context *context) {
  const struct picture *picture = &context->picture;
  return is_hevc(context) ? picture->hevc.parameters.pic_fields.bits.idr_pic_flag
                          : picture->parameters.pic_fields.bits.idr_pic_flag;
}

VAStatus check_complete(struct driver *driver, struct context *context) {
  const struct picture *picture = &context->picture;
  const char *missing = NULL;
  if (!picture->has_picture) {
    missing = "picture";
  } else if (picture->slice_count == 0) {
    missing = "slice";
  } else if (!is_idr(context) && (!context->stream.started || context->stream.ended)) {
    violation(driver, "stream-start: a stream starts with an IDR picture");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  } else if (!picture->has_sequence && is_idr(context)) {
    missing = "sequence";
  }
  if (missing) {
    violation(driver, "missing-%s: picture without %s buffer", missing, missing);
    return VA_STATUS_ERROR_ENCODING_ERROR;
  }
  if (picture->picture_count > 1 || picture->sequence_count > 1) {
    violation(driver, "buffer-twice: %d sequence and %d picture buffers in one picture", picture->sequence_count,
              picture->picture_count);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  if (picture->packed_count && !picture->packed[picture->packed_count - 1].has_data) {
    violation(driver, "packed-order: packed header parameters with no data after them");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus refused(struct driver *driver, const char *what, long long value) {
  violation(driver, "sequence: %s (%lld)", what, value);
  return VA_STATUS_ERROR_INVALID_PARAMETER;
}

static VAStatus check_size(struct driver *driver, const struct context *context,
                           const VAEncSequenceParameterBufferH264 *s) {
  uint32_t width = s->picture_width_in_mbs * 16u, height = s->picture_height_in_mbs * 16u;
  // A context may be of the picture's size or of the whole macroblocks' size.
  if (width != (context->width + 15) / 16 * 16) return refused(driver, "picture_width_in_mbs", s->picture_width_in_mbs);
  if (height != (context->height + 15) / 16 * 16) {
    return refused(driver, "picture_height_in_mbs", s->picture_height_in_mbs);
  }
  uint32_t right = 0, bottom = 0;
  if (s->frame_cropping_flag) {
    if (s->frame_crop_left_offset) return refused(driver, "frame_crop_left_offset", s->frame_crop_left_offset);
    if (s->frame_crop_top_offset) return refused(driver, "frame_crop_top_offset", s->frame_crop_top_offset);
    right = s->frame_crop_right_offset * 2;
    bottom = s->frame_crop_bottom_offset * 2;
  }
  if (right >= 16 || bottom >= 16) return refused(driver, "cropping of a whole macroblock or more", right | bottom);
  bool whole = context->width % 16 == 0 && context->height % 16 == 0;
  if (!whole && (width - right != context->width || height - bottom != context->height)) {
    violation(driver, "cropping: %ux%u less %u and %u is not the context's %ux%u", width, height, right, bottom,
              context->width, context->height);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  const struct surface *input = object_find(driver, kind_surface, context->picture.input);
  if (input->width < width - right || input->height < height - bottom) {
    violation(driver, "dimensions: input surface of %ux%u for a picture of %ux%u", input->width, input->height,
              width - right, height - bottom);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  // A surface a whole macroblock larger than the picture is fine, one with lines that should be seen is not.
  if (input->width < width && input->width != width - right) return refused(driver, "cropped width", width - right);
  if (input->height < height && input->height != height - bottom) {
    return refused(driver, "cropped height", height - bottom);
  }
  return VA_STATUS_SUCCESS;
}

VAStatus check_sequence(struct driver *driver, struct context *context) {
  struct picture *picture = &context->picture;
  const struct stream *stream = &context->stream;
  const VAEncSequenceParameterBufferH264 *s = &picture->sequence;
  picture->pps = pps_of(&picture->parameters);
  if (!picture->has_sequence) {
    picture->sequence = stream->sequence;
    picture->sps = stream->sps;
    return check_size(driver, context, s);
  }
  if (s->seq_fields.bits.chroma_format_idc != 1) {
    return refused(driver, "chroma_format_idc", s->seq_fields.bits.chroma_format_idc);
  }
  if (!s->seq_fields.bits.frame_mbs_only_flag) return refused(driver, "frame_mbs_only_flag", 0);
  if (s->seq_fields.bits.seq_scaling_matrix_present_flag) return refused(driver, "scaling matrix", 1);
  if (s->bit_depth_luma_minus8 || s->bit_depth_chroma_minus8) return refused(driver, "bit depth", 8);
  // Intel's driver keeps the rates of SPS 0 alone.
  if (s->seq_parameter_set_id) return refused(driver, "seq_parameter_set_id, which is 0", s->seq_parameter_set_id);
  if (s->seq_fields.bits.log2_max_frame_num_minus4 > 12) return refused(driver, "log2_max_frame_num_minus4", 13);
  if (s->seq_fields.bits.log2_max_pic_order_cnt_lsb_minus4 > 12) return refused(driver, "log2_max_poc_lsb_minus4", 13);
  if (s->seq_fields.bits.pic_order_cnt_type == 1) return refused(driver, "pic_order_cnt_type", 1);
  if (s->max_num_ref_frames < 1 || s->max_num_ref_frames > 16) {
    return refused(driver, "max_num_ref_frames", s->max_num_ref_frames);
  }
  if (s->ip_period > 1) return refused(driver, "ip_period: B pictures are not offered", s->ip_period);
  static const uint8_t levels[] = {9, 10, 11, 12, 13, 20, 21, 22, 30, 31, 32, 40, 41, 42, 50, 51, 52, 60, 61, 62};
  if (!memchr(levels, s->level_idc, sizeof levels)) return refused(driver, "level_idc", s->level_idc);
  VAStatus status = check_size(driver, context, s);
  if (status != VA_STATUS_SUCCESS) return status;
  picture->sps = sps_of(context, s);
  if (!is_idr(context) && memcmp(&picture->sps, &stream->sps, sizeof picture->sps) != 0) {
    // Only what an SPS holds: rate control values may change at any picture.
    struct sps before = sps_of(context, &stream->sequence);
    if (memcmp(&picture->sps, &before, sizeof before) != 0) return refused(driver, "changed without an IDR picture", 0);
    picture->sps = stream->sps;
  }
  return VA_STATUS_SUCCESS;
}
