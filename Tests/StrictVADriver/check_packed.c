// Packed headers: present where the config promised them, in order, and saying what the VA buffers say.
#include <stdlib.h>
#include <string.h>

#include "strict.h"

static bool is_slice(const struct packed *packed) { return packed->type == VAEncPackedHeaderSlice; }

const struct packed *packed_slice(const struct context *context, int index) {
  const struct picture *picture = &context->picture;
  for (int i = 0; i < picture->packed_count; i++) {
    if (is_slice(&picture->packed[i]) && index-- == 0) return &picture->packed[i];
  }
  return NULL;
}

static size_t start_code(const uint8_t *data, size_t size) {
  if (size > 4 && data[0] == 0 && data[1] == 0 && data[2] == 0 && data[3] == 1) return 4;
  return size > 3 && data[0] == 0 && data[1] == 0 && data[2] == 1 ? 3 : 0;
}

uint8_t *packed_nal(const struct packed *packed, size_t *bits) {
  size_t size = (packed->bit_length + 7) / 8, start = start_code(packed->data, size);
  if (!start) return NULL;
  uint8_t *nal = calloc(1, size - start + 8);
  size_t length = size - start;
  if (packed->escaped) {
    length = unescape(packed->data + start, size - start, nal);
  } else {
    memcpy(nal, packed->data + start, length);
  }
  *bits = length * 8 - (size * 8 - packed->bit_length);
  return nal;
}

static uint32_t mask_of(uint32_t type) {
  if (type & VAEncPackedHeaderMiscMask) return VA_ENC_PACKED_HEADER_MISC;
  switch (type) {
    case VAEncPackedHeaderSequence: return VA_ENC_PACKED_HEADER_SEQUENCE;
    case VAEncPackedHeaderPicture: return VA_ENC_PACKED_HEADER_PICTURE;
    case VAEncPackedHeaderSlice: return VA_ENC_PACKED_HEADER_SLICE;
    // ffmpeg sends its SEI as raw data and configures MISC alone; real drivers take that.
    case VAEncPackedHeaderRawData: return VA_ENC_PACKED_HEADER_RAW_DATA | VA_ENC_PACKED_HEADER_MISC;
    default: return 0;
  }
}

static VAStatus refused(struct driver *driver, const char *what, long long value) {
  violation(driver, "packed: %s (%lld)", what, value);
  return VA_STATUS_ERROR_INVALID_PARAMETER;
}

static VAStatus check_sps(struct driver *driver, struct context *context, const uint8_t *nal, size_t length) {
  struct sps sps, wanted = context->picture.sps;
  if (!parse_sps(nal, length, &sps)) return refused(driver, "SPS does not parse", (long long)length);
  VAProfile profile = context->config->profile;
  bool wrong = differs(driver, "packed-sps", "profile_idc", sps.profile_idc, wanted.profile_idc);
  if (profile == VAProfileH264ConstrainedBaseline && !(sps.constraints & 0x40)) {
    violation(driver, "packed-sps: constraint_set1_flag is 0 in the constrained baseline profile");
    wrong = true;
  }
#define SAME(field) wrong = differs(driver, "packed-sps", #field, (int64_t)sps.field, (int64_t)wanted.field) || wrong
  SAME(level_idc);
  SAME(chroma_format_idc);
  SAME(bit_depth_luma);
  SAME(bit_depth_chroma);
  SAME(log2_max_frame_num);
  SAME(poc_type);
  SAME(log2_max_poc_lsb);
  SAME(max_num_ref_frames);
  SAME(gaps_in_frame_num);
  SAME(width_mbs);
  SAME(height_mbs);
  SAME(frame_mbs_only);
  SAME(direct_8x8_inference);
  SAME(cropping);
  SAME(crop_left);
  SAME(crop_right);
  SAME(crop_top);
  SAME(crop_bottom);
  SAME(vui);
  SAME(timing);
  SAME(num_units_in_tick);
  SAME(time_scale);
#undef SAME
  if (wrong) return VA_STATUS_ERROR_INVALID_PARAMETER;
  context->picture.sps = sps;
  context->picture.brings_sps = true;
  return VA_STATUS_SUCCESS;
}

// The ids aside: a device reads them in no VA buffer where the headers come packed.
static bool same_pps(struct driver *driver, const char *check, const struct pps *pps, const struct pps *wanted,
                     VAProfile profile) {
  bool wrong = false;
#define SAME(field) wrong = differs(driver, check, #field, (int64_t)pps->field, (int64_t)wanted->field) || wrong
  SAME(cabac);
  SAME(bottom_field_pic_order);
  SAME(num_ref_idx_l0_default);
  SAME(weighted_pred);
  SAME(weighted_bipred_idc);
  SAME(pic_init_qp);
  SAME(chroma_qp_offset);
  SAME(deblocking_control);
  SAME(constrained_intra);
  SAME(redundant_pic_cnt);
  SAME(transform_8x8);
  if (profile == VAProfileH264High) SAME(second_chroma_qp_offset);
#undef SAME
  return !wrong;
}

static VAStatus check_pps(struct driver *driver, struct context *context, const uint8_t *nal, size_t length) {
  struct pps pps;
  if (!parse_pps(nal, length, &pps)) return refused(driver, "PPS does not parse", (long long)length);
  if (!same_pps(driver, "packed-pps", &pps, &context->picture.pps, context->config->profile)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  if (differs(driver, "packed-pps", "seq_parameter_set_id", pps.sps_id, context->picture.sps.id)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  context->picture.pps = pps;
  context->picture.brings_pps = true;
  return VA_STATUS_SUCCESS;
}

// The NAL units of one packed header that is no slice's.
static VAStatus check_units(struct driver *driver, struct context *context, const struct packed *packed) {
  if (packed->bit_length % 8) return refused(driver, "bit_length is not of whole bytes", packed->bit_length);
  size_t size = packed->bit_length / 8, at = 0;
  uint8_t *rbsp = malloc(size + 8);
  VAStatus status = VA_STATUS_SUCCESS;
  while (at < size && status == VA_STATUS_SUCCESS) {
    size_t start = start_code(packed->data + at, size - at), end;
    if (!start) {
      status = refused(driver, "no start code", packed->type);
      break;
    }
    at += start;
    // Without emulation prevention a start code means nothing: the data are one NAL unit.
    end = packed->escaped ? at : size;
    while (end < size && !start_code(packed->data + end, size - end)) end++;
    size_t length = end - at;
    if (packed->escaped) {
      length = unescape(packed->data + at, length, rbsp);
    } else {
      memcpy(rbsp, packed->data + at, length);
    }
    uint32_t type = rbsp[0] & 0x1f;
    if (is_hevc(context)) {
      status = check_hevc_unit(driver, context, rbsp, length);
    } else if (type == 7) {
      status = check_sps(driver, context, rbsp, length);
    } else if (type == 8) {
      status = check_pps(driver, context, rbsp, length);
    } else if (type != 6 && type != 9) {
      status = refused(driver, "NAL unit type before the slices", type);
    }
    at = end;
  }
  free(rbsp);
  return status;
}

static VAStatus check_slice_header(struct driver *driver, struct context *context, const struct packed *packed,
                                   int index) {
  size_t bits;
  uint8_t *nal = packed_nal(packed, &bits);
  if (!nal) return refused(driver, "slice header without start code", index);
  struct slice_header h, wanted = slice_header_of(context, index);
  wanted.pps_id = context->picture.pps.id;
  bool parsed = parse_slice_header(nal, bits, &context->picture.sps, &context->picture.pps, &h);
  // ffmpeg adds the cabac_alignment_one_bits, GStreamer leaves them to the device.
  size_t expected = h.bits;
  if (parsed && context->picture.pps.cabac && bits == (h.bits + 7) / 8 * 8) {
    while (expected < bits && nal[expected / 8] >> (7 - expected % 8) & 1) expected++;
  }
  free(nal);
  if (!parsed) return refused(driver, "slice header does not parse", index);
  bool wrong = differs(driver, "packed-slice", "bits of the header", (int64_t)bits, (int64_t)expected);
  if ((h.nal_ref_idc != 0) != (wanted.nal_ref_idc != 0)) {
    violation(driver, "packed-slice: nal_ref_idc is %u, reference_pic_flag %u", h.nal_ref_idc, wanted.nal_ref_idc != 0);
    wrong = true;
  }
  h.slice_type %= 5;
  wanted.slice_type %= 5;
#define SAME(field) wrong = differs(driver, "packed-slice", #field, (int64_t)h.field, (int64_t)wanted.field) || wrong
  SAME(nal_unit_type);
  SAME(first_mb);
  SAME(slice_type);
  SAME(pps_id);
  SAME(frame_num);
  SAME(idr_pic_id);
  SAME(poc_lsb);
  SAME(delta_poc_bottom);
  SAME(num_ref_idx_l0);
  SAME(list0_modification);
  SAME(long_term_reference);
  SAME(other_marking);
  SAME(cabac_init_idc);
  SAME(qp_delta);
  SAME(disable_deblocking);
  SAME(alpha_c0_offset_div2);
  SAME(beta_offset_div2);
#undef SAME
  return wrong ? VA_STATUS_ERROR_INVALID_PARAMETER : VA_STATUS_SUCCESS;
}

// What the config promised and this picture lacks.
static VAStatus check_present(struct driver *driver, const struct context *context, int slices) {
  const struct picture *picture = &context->picture;
  uint32_t promised = context->config->packed;
  const char *missing = NULL;
  if (promised & VA_ENC_PACKED_HEADER_SLICE && slices != picture->slice_count) missing = "slice";
  bool brings_sequence = picture->brings_sps && (picture->hevc.brings_vps || !is_hevc(context));
  if (promised & VA_ENC_PACKED_HEADER_PICTURE && is_idr(context) && !picture->brings_pps) missing = "picture";
  if (promised & VA_ENC_PACKED_HEADER_SEQUENCE && is_idr(context) && !brings_sequence) missing = "sequence";
  if (missing) {
    violation(driver, "packed-missing: no packed %s header, which the config promised", missing);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  if (is_idr(context) || picture->brings_pps) return VA_STATUS_SUCCESS;
  bool same = is_hevc(context)
                  ? same_hevc_pps(driver, "picture", &picture->hevc.pps, &context->stream.hevc.pps)
                  : same_pps(driver, "picture", &picture->pps, &context->stream.pps, context->config->profile);
  return same ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_PARAMETER;
}

VAStatus check_packed(struct driver *driver, struct context *context) {
  const struct picture *picture = &context->picture;
  int slices = 0;
  for (int i = 0; i < picture->packed_count; i++) {
    const struct packed *packed = &picture->packed[i];
    uint32_t mask = mask_of(packed->type);
    if (!(mask & context->config->packed)) {
      violation(driver, "packed-not-configured: packed header of type %#x, the config has %#x", packed->type,
                context->config->packed);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    if (packed->bit_length == 0 || packed->bit_length > packed->size * 8ull) {
      return refused(driver, "bit_length against the data's size", packed->bit_length);
    }
    if (is_slice(packed)) {
      slices++;
    } else if (slices > 0) {
      return refused(driver, "header of this type behind a slice header", packed->type);
    } else {
      VAStatus status = check_units(driver, context, packed);
      if (status != VA_STATUS_SUCCESS) return status;
    }
  }
  VAStatus status = check_present(driver, context, slices);
  if (!is_hevc(context) && !is_idr(context) && !picture->brings_pps) {
    // Those of the PPS that came last.
    context->picture.pps.id = context->stream.pps.id;
    context->picture.pps.sps_id = context->stream.pps.sps_id;
  }
  for (int i = 0; i < slices && status == VA_STATUS_SUCCESS; i++) {
    const struct packed *packed = packed_slice(context, i);
    status = is_hevc(context) ? check_hevc_slice_header(driver, context, packed)
                              : check_slice_header(driver, context, packed, i);
  }
  return status;
}
