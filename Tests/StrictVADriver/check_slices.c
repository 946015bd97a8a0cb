// The slice buffers: they cover the picture once, in equal rows, and each says what the picture says.
#include "strict.h"

static VAStatus refused(struct driver *driver, int index, const char *what, long long value) {
  violation(driver, "slice: slice %d: %s (%lld)", index, what, value);
  return VA_STATUS_ERROR_INVALID_PARAMETER;
}

static VAStatus check_list(struct driver *driver, const struct context *context, int index, bool redo) {
  const VAEncSliceParameterBufferH264 *s = &context->picture.slices[index];
  const struct coded_picture *reference = redo ? &context->stream.previous : &context->stream.last;
  uint32_t active = s->num_ref_idx_active_override_flag ? s->num_ref_idx_l0_active_minus1 + 1u
                                                        : context->picture.pps.num_ref_idx_l0_default;
  bool inter = s->slice_type % 5 == 0;
  if (inter && active != 1) return refused(driver, index, "references: one is offered", active);
  for (int i = 0; i < 32; i++) {
    if (picture_given(&s->RefPicList1[i])) return refused(driver, index, "RefPicList1 has an entry", i);
    bool given = picture_given(&s->RefPicList0[i]);
    if (given != (inter && i == 0)) return refused(driver, index, given ? "RefPicList0 has an entry too many"
                                                                        : "RefPicList0 is empty in a P slice", i);
    if (!given) continue;
    const VAPictureH264 *entry = &s->RefPicList0[0];
    if (entry->picture_id != reference->reconstructed || entry->frame_idx != reference->frame_num ||
        entry->TopFieldOrderCnt != reference->poc || !(entry->flags & VA_PICTURE_H264_SHORT_TERM_REFERENCE)) {
      violation(driver, "RefPicList0: surface %#x frame_idx %u order count %d flags %#x, the reference is %#x %u %d",
                entry->picture_id, entry->frame_idx, entry->TopFieldOrderCnt, entry->flags, reference->reconstructed,
                reference->frame_num, reference->poc);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_identity(struct driver *driver, const struct context *context, int index, bool redo) {
  const VAEncSliceParameterBufferH264 *s = &context->picture.slices[index], *first = context->picture.slices;
  const VAEncPictureParameterBufferH264 *p = &context->picture.parameters;
  const struct sps *sps = &context->picture.sps;
  bool idr = is_idr(context);
  if (s->slice_type > 9 || (s->slice_type % 5 != 2 && (idr || s->slice_type % 5 != 0))) {
    return refused(driver, index, "slice_type", s->slice_type);
  }
  if (s->slice_type % 5 != first->slice_type % 5) return refused(driver, index, "slice types differ", s->slice_type);
  if (s->pic_parameter_set_id != p->pic_parameter_set_id) {
    return refused(driver, index, "pic_parameter_set_id", s->pic_parameter_set_id);
  }
  if (s->idr_pic_id != first->idr_pic_id) return refused(driver, index, "idr_pic_id differs", s->idr_pic_id);
  const struct coded_picture *last = &context->stream.last;
  if (idr && !redo && last->valid && last->idr && last->idr_pic_id == s->idr_pic_id) {
    violation(driver, "idr_pic_id: %u for two IDR pictures in a row (7.4.3)", s->idr_pic_id);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  if (sps->poc_type == 0) {
    uint32_t lsb = (uint32_t)p->CurrPic.TopFieldOrderCnt & ((1u << sps->log2_max_poc_lsb) - 1);
    if (differs(driver, "order-count", "pic_order_cnt_lsb", s->pic_order_cnt_lsb, lsb)) {
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
  }
  if (s->delta_pic_order_cnt_bottom || s->delta_pic_order_cnt[0] || s->delta_pic_order_cnt[1]) {
    return refused(driver, index, "delta_pic_order_cnt", s->delta_pic_order_cnt_bottom);
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_coding(struct driver *driver, const struct context *context, int index) {
  const VAEncSliceParameterBufferH264 *s = &context->picture.slices[index], *first = context->picture.slices;
  int qp = context->picture.pps.pic_init_qp + s->slice_qp_delta;
  if (qp < 0 || qp > 51) return refused(driver, index, "pic_init_qp + slice_qp_delta", qp);
  if (s->cabac_init_idc > 2) return refused(driver, index, "cabac_init_idc", s->cabac_init_idc);
  if (s->disable_deblocking_filter_idc > 1) {
    return refused(driver, index, "disable_deblocking_filter_idc", s->disable_deblocking_filter_idc);
  }
  if (s->slice_alpha_c0_offset_div2 < -6 || s->slice_alpha_c0_offset_div2 > 6) {
    return refused(driver, index, "slice_alpha_c0_offset_div2", s->slice_alpha_c0_offset_div2);
  }
  if (s->slice_beta_offset_div2 < -6 || s->slice_beta_offset_div2 > 6) {
    return refused(driver, index, "slice_beta_offset_div2", s->slice_beta_offset_div2);
  }
  if (!context->picture.pps.deblocking_control &&
      (s->disable_deblocking_filter_idc || s->slice_alpha_c0_offset_div2 || s->slice_beta_offset_div2)) {
    return refused(driver, index, "deblocking values without deblocking_filter_control_present_flag", 0);
  }
  if (s->slice_qp_delta != first->slice_qp_delta || s->cabac_init_idc != first->cabac_init_idc ||
      s->disable_deblocking_filter_idc != first->disable_deblocking_filter_idc ||
      s->slice_alpha_c0_offset_div2 != first->slice_alpha_c0_offset_div2 ||
      s->slice_beta_offset_div2 != first->slice_beta_offset_div2) {
    return refused(driver, index, "QP, CABAC or deblocking differ between slices, which is not offered", index);
  }
  if (s->macroblock_info != VA_INVALID_ID) return refused(driver, index, "macroblock_info", s->macroblock_info);
  return VA_STATUS_SUCCESS;
}

VAStatus check_slices(struct driver *driver, struct context *context, bool redo) {
  const struct picture *picture = &context->picture;
  uint32_t width = picture->sequence.picture_width_in_mbs, total = width * picture->sequence.picture_height_in_mbs;
  uint32_t next = 0, each = picture->slices[0].num_macroblocks;
  for (int i = 0; i < picture->slice_count; i++) {
    const VAEncSliceParameterBufferH264 *s = &picture->slices[i];
    bool final = i + 1 == picture->slice_count;
    if (s->macroblock_address != next || s->num_macroblocks == 0 || s->num_macroblocks > total - next) {
      violation(driver, "slice-cover: slice %d is of %u macroblocks from %u, expected from %u of %u", i,
                s->num_macroblocks, s->macroblock_address, next, total);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    next += s->num_macroblocks;
    if (s->num_macroblocks % width || (final ? s->num_macroblocks > each : s->num_macroblocks != each)) {
      return refused(driver, i, "not equal rows, which is all that is offered", s->num_macroblocks);
    }
    VAStatus status = check_identity(driver, context, i, redo);
    if (status == VA_STATUS_SUCCESS) status = check_list(driver, context, i, redo);
    if (status == VA_STATUS_SUCCESS) status = check_coding(driver, context, i);
    if (status != VA_STATUS_SUCCESS) return status;
  }
  if (next != total) {
    violation(driver, "slice-cover: %u of %u macroblocks are in slices", next, total);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}
