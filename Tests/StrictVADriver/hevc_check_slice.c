// The slice buffer of HEVC, and packed headers that say what the VA buffers say.
#include <stdlib.h>

#include "strict.h"

static VAStatus refused(struct driver *driver, const char *what, long long value) {
  violation(driver, "slice: %s (%lld)", what, value);
  return VA_STATUS_ERROR_INVALID_PARAMETER;
}

static bool given(const VAPictureHEVC *picture) {
  return picture->picture_id != VA_INVALID_SURFACE && !(picture->flags & VA_PICTURE_HEVC_INVALID);
}

static VAStatus check_list(struct driver *driver, const struct context *context, const VAPictureHEVC *list,
                           const char *name, bool wanted, bool redo) {
  const struct coded_picture *reference = redo ? &context->stream.previous : &context->stream.last;
  for (int i = 0; i < 15; i++) {
    if (given(&list[i]) != (wanted && i == 0)) return refused(driver, given(&list[i]) ? "a list has an entry too many"
                                                                                      : "a list is empty", i);
    if (!given(&list[i])) continue;
    if (list[i].picture_id != reference->reconstructed || list[i].pic_order_cnt != reference->poc) {
      violation(driver, "%s: surface %#x order count %d, the reference is %#x %d", name, list[i].picture_id,
                list[i].pic_order_cnt, reference->reconstructed, reference->poc);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_cover(struct driver *driver, const struct context *context) {
  const VAEncSliceParameterBufferHEVC *s = &context->picture.hevc.slice;
  const struct hevc_sps *sps = &context->picture.hevc.sps;
  uint32_t block = 1u << sps->log2_ctb;
  uint32_t total = ((sps->width + block - 1) / block) * ((sps->height + block - 1) / block);
  if (s->slice_segment_address != 0 || s->num_ctu_in_slice != total) {
    violation(driver, "slice-cover: the slice is of %u coding tree units from %u, expected %u from 0", s->num_ctu_in_slice,
              s->slice_segment_address, total);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_values(struct driver *driver, const struct context *context) {
  const VAEncSliceParameterBufferHEVC *s = &context->picture.hevc.slice;
  const struct hevc_sps *sps = &context->picture.hevc.sps;
  const struct hevc_pps *pps = &context->picture.hevc.pps;
  int inter = driver->knobs.hevc.both_lists ? hevc_slice_b : hevc_slice_p;
  int wanted = is_idr(context) ? hevc_slice_i : inter, qp = pps->init_qp + s->slice_qp_delta;
  if (s->slice_type != wanted) return refused(driver, "slice_type", s->slice_type);
  if (s->slice_pic_parameter_set_id != context->picture.hevc.parameters.slice_pic_parameter_set_id) {
    return refused(driver, "slice_pic_parameter_set_id", s->slice_pic_parameter_set_id);
  }
  if (!s->slice_fields.bits.last_slice_of_pic_flag) return refused(driver, "last_slice_of_pic_flag", 0);
  if (s->slice_fields.bits.dependent_slice_segment_flag) return refused(driver, "dependent_slice_segment_flag", 1);
  if (s->num_ref_idx_l0_active_minus1 || s->num_ref_idx_l1_active_minus1) {
    return refused(driver, "num_ref_idx_active_minus1: one reference is offered", s->num_ref_idx_l0_active_minus1);
  }
  if (qp < 0 || qp > 51) return refused(driver, "pic_init_qp + slice_qp_delta", qp);
  if (s->slice_cb_qp_offset || s->slice_cr_qp_offset) return refused(driver, "chroma QP offsets, not offered", 1);
  if (s->slice_beta_offset_div2 < -6 || s->slice_beta_offset_div2 > 6 || s->slice_tc_offset_div2 < -6 ||
      s->slice_tc_offset_div2 > 6) {
    return refused(driver, "deblocking offsets", s->slice_beta_offset_div2);
  }
  if (s->slice_fields.bits.slice_deblocking_filter_disabled_flag > 1) return refused(driver, "deblocking", 2);
  if ((s->slice_fields.bits.slice_sao_luma_flag || s->slice_fields.bits.slice_sao_chroma_flag) && !sps->sao) {
    return refused(driver, "slice_sao_flag without sample_adaptive_offset_enabled_flag", 1);
  }
  if (s->slice_fields.bits.slice_temporal_mvp_enabled_flag && !sps->temporal_mvp) {
    return refused(driver, "slice_temporal_mvp_enabled_flag without that of the sequence", 1);
  }
  // The device predicts as the sequence allows it.
  if (!is_idr(context) && sps->temporal_mvp && !s->slice_fields.bits.slice_temporal_mvp_enabled_flag) {
    return refused(driver, "slice_temporal_mvp_enabled_flag", 0);
  }
  if (s->slice_fields.bits.cabac_init_flag) return refused(driver, "cabac_init_flag, which is not offered", 1);
  if (!is_idr(context) && (s->max_num_merge_cand < 1 || s->max_num_merge_cand > 5)) {
    return refused(driver, "max_num_merge_cand", s->max_num_merge_cand);
  }
  return VA_STATUS_SUCCESS;
}

VAStatus check_hevc_slice(struct driver *driver, struct context *context, bool redo) {
  const VAEncSliceParameterBufferHEVC *s = &context->picture.hevc.slice;
  bool inter = !is_idr(context);
  VAStatus status = check_cover(driver, context);
  if (status == VA_STATUS_SUCCESS) status = check_values(driver, context);
  if (status == VA_STATUS_SUCCESS) status = check_list(driver, context, s->ref_pic_list0, "RefPicList0", inter, redo);
  if (status == VA_STATUS_SUCCESS) {
    status = check_list(driver, context, s->ref_pic_list1, "RefPicList1", inter && driver->knobs.hevc.both_lists, redo);
  }
  return status;
}

static bool check_ptl(struct driver *driver, const char *check, const struct hevc_ptl *ptl, const struct hevc_ptl *wanted) {
  bool wrong = differs(driver, check, "general_profile_idc", ptl->profile_idc, wanted->profile_idc);
  wrong |= differs(driver, check, "general_profile_compatibility_flag[1]", ptl->compatibility >> 30 & 1, 1);
  wrong |= differs(driver, check, "general_tier_flag", ptl->tier, wanted->tier);
  wrong |= differs(driver, check, "general_level_idc", ptl->level_idc, wanted->level_idc);
  return !wrong;
}

static bool check_sps(struct driver *driver, struct context *context, const struct hevc_sps *sps) {
  const struct hevc_sps *wanted = &context->picture.hevc.sps;
  bool wrong = !check_ptl(driver, "packed-sps", &sps->ptl, &wanted->ptl);
#define SAME(field) wrong = differs(driver, "packed-sps", #field, (int64_t)sps->field, (int64_t)wanted->field) || wrong
  SAME(width);
  SAME(height);
  SAME(bit_depth_luma);
  SAME(bit_depth_chroma);
  SAME(log2_min_cb);
  SAME(log2_ctb);
  SAME(log2_min_tb);
  SAME(log2_max_tb);
  SAME(depth_inter);
  SAME(depth_intra);
  SAME(scaling_list);
  SAME(amp);
  SAME(sao);
  SAME(pcm);
  SAME(temporal_mvp);
  SAME(strong_intra);
  if (wanted->timing) {
    SAME(timing);
    SAME(num_units_in_tick);
    SAME(time_scale);
  }
#undef SAME
  wrong |= differs(driver, "packed-sps", "sps_max_num_reorder_pics", sps->reordered, 0);
  if (wrong) return false;
  uint32_t block = 1u << sps->log2_min_cb, width = sps->width - 2 * sps->window_right;
  uint32_t height = sps->height - 2 * sps->window_bottom;
  const struct surface *input = object_find(driver, kind_surface, context->picture.input);
  if (block < 16) block = 16;  // to which GStreamer rounds up
  if (sps->window_left || sps->window_top || 2 * sps->window_right >= block || 2 * sps->window_bottom >= block) {
    violation(driver, "cropping: a conformance window of whole blocks, or from the left or the top");
    return false;
  }
  if (input->width < width || input->height < height) {
    violation(driver, "cropping: a picture of %ux%u from an input of %ux%u", width, height, input->width, input->height);
    return false;
  }
  return true;
}

bool same_hevc_pps(struct driver *driver, const char *check, const struct hevc_pps *pps, const struct hevc_pps *wanted) {
  bool wrong = false;
#define SAME(field) wrong = differs(driver, check, #field, (int64_t)pps->field, (int64_t)wanted->field) || wrong
  SAME(id);
  SAME(dependent);
  SAME(sign_hiding);
  SAME(l0_default);
  SAME(init_qp);
  SAME(constrained_intra);
  SAME(transform_skip);
  SAME(qp_delta);
  SAME(qp_delta_depth);
  SAME(cb_offset);
  SAME(cr_offset);
  SAME(weighted_pred);
  SAME(weighted_bipred);
  SAME(transquant_bypass);
  SAME(wavefront);
  SAME(log2_parallel_merge);
#undef SAME
  return !wrong;
}

VAStatus check_hevc_unit(struct driver *driver, struct context *context, const uint8_t *rbsp, size_t length) {
  struct picture *picture = &context->picture;
  uint32_t type = length > 2 ? rbsp[0] >> 1 : 0;
  bool good = false;
  if (type == hevc_vps) {
    struct hevc_vps vps;
    good = parse_hevc_vps(rbsp, length, &vps);
    if (!good) violation(driver, "packed: VPS does not parse (%zu)", length);
    good = good && check_ptl(driver, "packed-vps", &vps.ptl, &picture->hevc.sps.ptl);
    picture->hevc.brings_vps = picture->hevc.brings_vps || good;
    // The driver writes the same id into an SPS of its own.
    if (good) picture->hevc.sps.vps_id = vps.id;
  } else if (type == hevc_sps_nal) {
    struct hevc_sps sps;
    good = parse_hevc_sps(rbsp, length, &sps);
    if (!good) violation(driver, "packed: SPS does not parse (%zu)", length);
    good = good && check_sps(driver, context, &sps);
    if (good && differs(driver, "packed-sps", "sps_video_parameter_set_id", sps.vps_id, picture->hevc.sps.vps_id)) good = false;
    if (good) picture->hevc.sps = sps, picture->brings_sps = true;
  } else if (type == hevc_pps_nal) {
    struct hevc_pps pps;
    good = parse_hevc_pps(rbsp, length, &pps);
    if (!good) violation(driver, "packed: PPS does not parse (%zu)", length);
    good = good && same_hevc_pps(driver, "packed-pps", &pps, &picture->hevc.pps);
    if (good && differs(driver, "packed-pps", "pps_seq_parameter_set_id", pps.sps_id, picture->hevc.sps.id)) good = false;
    if (good) picture->hevc.pps = pps, picture->brings_pps = true;
  } else if (type == 35 || type == 39) {
    good = true;  // delimiter, SEI
  } else {
    violation(driver, "packed: NAL unit type before the slices (%u)", type);
  }
  return good ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_PARAMETER;
}

size_t hevc_header_bits(const uint8_t *nal, size_t bits, size_t parsed) {
  size_t aligned = parsed / 8 * 8 + 8;
  if (bits != aligned || !(nal[parsed / 8] >> (7 - parsed % 8) & 1)) return parsed;
  for (size_t i = parsed + 1; i < aligned; i++) {
    if (nal[i / 8] >> (7 - i % 8) & 1) return parsed;
  }
  return aligned;
}

VAStatus check_hevc_slice_header(struct driver *driver, struct context *context, const struct packed *packed) {
  size_t bits;
  uint8_t *nal = packed_nal(packed, &bits);
  if (!nal) {
    violation(driver, "packed: slice header without start code");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  struct hevc_slice_header h, wanted = hevc_slice_header_of(context);
  bool parsed = parse_hevc_slice(nal, bits, &context->picture.hevc.sps, &context->picture.hevc.pps, &h);
  size_t expected = parsed ? hevc_header_bits(nal, bits, h.bits) : 0;
  free(nal);
  if (!parsed) {
    violation(driver, "packed: slice header does not parse");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  bool wrong = differs(driver, "packed-slice", "bits of the header", (int64_t)bits, (int64_t)expected);
#define SAME(field) wrong = differs(driver, "packed-slice", #field, (int64_t)h.field, (int64_t)wanted.field) || wrong
  SAME(nal_unit_type);
  SAME(first);
  SAME(pps_id);
  SAME(type);
  SAME(poc_lsb);
  SAME(rps.negative);
  SAME(rps.positive);
  SAME(rps.delta[0]);
  SAME(rps.used[0]);
  SAME(temporal_mvp);
  SAME(sao_luma);
  SAME(sao_chroma);
  SAME(l0);
  SAME(l1);
  SAME(mvd_l1_zero);
  SAME(cabac_init);
  SAME(merge_candidates);
  SAME(qp_delta);
  SAME(deblocking_disabled);
  SAME(beta_offset_div2);
  SAME(tc_offset_div2);
  if (h.type == hevc_slice_b && h.temporal_mvp) SAME(collocated_from_l0);
#undef SAME
  return wrong ? VA_STATUS_ERROR_INVALID_PARAMETER : VA_STATUS_SUCCESS;
}
