// The sequence, picture and slice buffers of HEVC (ITU-T H.265 7.4.3, 7.4.7, 8.3).
#include <string.h>

#include "strict.h"

static VAStatus refused(struct driver *driver, const char *check, const char *what, long long value) {
  violation(driver, "%s: %s (%lld)", check, what, value);
  return VA_STATUS_ERROR_INVALID_PARAMETER;
}

// A tool against what is offered of it.
static bool mistaken(struct driver *driver, const char *tool, bool used, uint32_t offered) {
  if (used && offered == VA_FEATURE_NOT_SUPPORTED) {
    violation(driver, "tools: %s, which is not offered", tool);
    return true;
  }
  if (!used && offered == VA_FEATURE_REQUIRED) {
    violation(driver, "tools: no %s, which is required", tool);
    return true;
  }
  return false;
}

static VAStatus check_size(struct driver *driver, const struct context *context,
                           const VAEncSequenceParameterBufferHEVC *s) {
  uint32_t width = s->pic_width_in_luma_samples, height = s->pic_height_in_luma_samples;
  uint32_t block = 8u << s->log2_min_luma_coding_block_size_minus3, slack = 64;
  if (width % block) return refused(driver, "sequence", "pic_width_in_luma_samples", width);
  if (height % block) return refused(driver, "sequence", "pic_height_in_luma_samples", height);
  // A context may be of the picture's size, or of whole blocks up to the largest.
  if (width > (context->width + block - 1) / block * block || width + slack <= context->width) {
    return refused(driver, "sequence", "pic_width_in_luma_samples against the context's width", width);
  }
  if (height > (context->height + block - 1) / block * block || height + slack <= context->height) {
    return refused(driver, "sequence", "pic_height_in_luma_samples against the context's height", height);
  }
  const struct surface *input = object_find(driver, kind_surface, context->picture.input);
  // GStreamer rounds up to 16 samples, whatever the block.
  uint32_t padding = block > 16 ? block : 16;
  if (input->width + padding <= width || input->height + padding <= height) {
    violation(driver, "dimensions: input surface of %ux%u for a picture of %ux%u", input->width, input->height, width,
              height);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_blocks(struct driver *driver, const VAEncSequenceParameterBufferHEVC *s) {
  uint32_t min_cb = s->log2_min_luma_coding_block_size_minus3 + 3u, ctb = min_cb + s->log2_diff_max_min_luma_coding_block_size;
  uint32_t min_tb = s->log2_min_transform_block_size_minus2 + 2u, max_tb = min_tb + s->log2_diff_max_min_transform_block_size;
  if (min_cb < driver->knobs.hevc.log2_min_cb || min_cb > ctb) return refused(driver, "blocks", "MinCbLog2SizeY", min_cb);
  if (ctb < driver->knobs.hevc.log2_min_ctb || ctb > driver->knobs.hevc.log2_max_ctb) {
    return refused(driver, "blocks", "CtbLog2SizeY", ctb);
  }
  if (s->general_level_idc >= 150 && ctb < 5) return refused(driver, "blocks", "CtbLog2SizeY of level 5 or above", ctb);
  if (min_tb != 2) return refused(driver, "blocks", "MinTbLog2SizeY", min_tb);
  if (max_tb > 5 || max_tb > ctb || max_tb < min_cb) return refused(driver, "blocks", "MaxTbLog2SizeY", max_tb);
  if (s->max_transform_hierarchy_depth_inter > 3 || s->max_transform_hierarchy_depth_inter > ctb - min_tb) {
    return refused(driver, "blocks", "max_transform_hierarchy_depth_inter", s->max_transform_hierarchy_depth_inter);
  }
  if (s->max_transform_hierarchy_depth_intra > 3 || s->max_transform_hierarchy_depth_intra > ctb - min_tb) {
    return refused(driver, "blocks", "max_transform_hierarchy_depth_intra", s->max_transform_hierarchy_depth_intra);
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_sequence_values(struct driver *driver, const VAEncSequenceParameterBufferHEVC *s) {
  if (s->general_profile_idc != 1) return refused(driver, "sequence", "general_profile_idc", s->general_profile_idc);
  static const uint8_t levels[] = {30, 60, 63, 90, 93, 120, 123, 150, 153, 156, 180, 183, 186};
  if (!memchr(levels, s->general_level_idc, sizeof levels)) {
    return refused(driver, "sequence", "general_level_idc", s->general_level_idc);
  }
  if (s->general_tier_flag > 1 || (s->general_tier_flag && s->general_level_idc < 120)) {
    return refused(driver, "sequence", "general_tier_flag", s->general_tier_flag);
  }
  if (s->seq_fields.bits.chroma_format_idc != 1) {
    return refused(driver, "sequence", "chroma_format_idc", s->seq_fields.bits.chroma_format_idc);
  }
  if (s->seq_fields.bits.bit_depth_luma_minus8 || s->seq_fields.bits.bit_depth_chroma_minus8) {
    return refused(driver, "sequence", "bit depth", 8);
  }
  if (s->ip_period > 1) return refused(driver, "sequence", "ip_period: B pictures are not offered", s->ip_period);
  if (s->seq_fields.bits.separate_colour_plane_flag || s->seq_fields.bits.scaling_list_enabled_flag ||
      s->seq_fields.bits.pcm_enabled_flag || s->scc_fields.value) {
    return refused(driver, "tools", "separate planes, scaling lists, PCM or screen content, which are not offered", 1);
  }
  const VAConfigAttribValEncHEVCFeatures *offered = &driver->knobs.hevc.features;
  bool wrong = mistaken(driver, "amp_enabled_flag", s->seq_fields.bits.amp_enabled_flag, offered->bits.amp);
  wrong |= mistaken(driver, "sample_adaptive_offset_enabled_flag", s->seq_fields.bits.sample_adaptive_offset_enabled_flag,
                    offered->bits.sao);
  wrong |= mistaken(driver, "sps_temporal_mvp_enabled_flag", s->seq_fields.bits.sps_temporal_mvp_enabled_flag,
                    offered->bits.temporal_mvp);
  wrong |= mistaken(driver, "strong_intra_smoothing_enabled_flag", s->seq_fields.bits.strong_intra_smoothing_enabled_flag,
                    offered->bits.strong_intra_smoothing);
  return wrong ? VA_STATUS_ERROR_INVALID_PARAMETER : check_blocks(driver, s);
}

VAStatus check_hevc_sequence(struct driver *driver, struct context *context) {
  struct picture *picture = &context->picture;
  const struct stream *stream = &context->stream;
  const VAEncSequenceParameterBufferHEVC *s = &picture->hevc.sequence;
  picture->hevc.pps = hevc_pps_of(context);
  if (!picture->has_sequence) {
    picture->hevc.sequence = stream->hevc.sequence;
    picture->hevc.sps = stream->hevc.sps;
    return check_size(driver, context, s);
  }
  VAStatus status = check_sequence_values(driver, s);
  if (status == VA_STATUS_SUCCESS) status = check_size(driver, context, s);
  if (status != VA_STATUS_SUCCESS) return status;
  picture->hevc.sps = hevc_sps_of(context, s);
  if (is_idr(context)) return status;
  struct hevc_sps before = hevc_sps_of(context, &stream->hevc.sequence);
  if (memcmp(&picture->hevc.sps, &before, sizeof before) != 0) {
    return refused(driver, "sequence", "changed without an IDR picture", 0);
  }
  picture->hevc.sps = stream->hevc.sps;
  return status;
}

static bool given(const VAPictureHEVC *picture) {
  return picture->picture_id != VA_INVALID_SURFACE && !(picture->flags & VA_PICTURE_HEVC_INVALID);
}

static VAStatus check_tools(struct driver *driver, const struct context *context) {
  const VAEncPictureParameterBufferHEVC *p = &context->picture.hevc.parameters;
  const struct hevc_pps *pps = &context->picture.hevc.pps;
  const VAConfigAttribValEncHEVCFeatures *offered = &driver->knobs.hevc.features;
  const char *wrong = NULL;
  if (pps->dependent || pps->tiles || pps->wavefront) wrong = "dependent slices, tiles or wavefronts, not offered";
  if (pps->weighted_pred || pps->weighted_bipred) wrong = "weighted prediction, which is not offered";
  if (pps->transquant_bypass || pps->scaling_list) wrong = "a transquant bypass or scaling lists, not offered";
  if (pps->constrained_intra) wrong = "constrained intra prediction, which is not offered";
  if (pps->l0_default != 1 || pps->l1_default != 1) wrong = "num_ref_idx_default_active_minus1: one reference is offered";
  if (pps->cb_offset < -12 || pps->cb_offset > 12 || pps->cr_offset < -12 || pps->cr_offset > 12) wrong = "a chroma QP offset";
  if (pps->init_qp < 0 || pps->init_qp > 51) wrong = "pic_init_qp";
  if (pps->log2_parallel_merge != 2) wrong = "log2_parallel_merge_level_minus2, which must be 0";
  const struct hevc_sps *sps = &context->picture.hevc.sps;
  if (pps->qp_delta_depth > sps->log2_ctb - sps->log2_min_cb) wrong = "diff_cu_qp_delta_depth";
  if (!p->pic_fields.bits.reference_pic_flag) wrong = "a picture that is no reference, which is not offered";
  if (p->scc_fields.value || p->pic_fields.bits.screen_content_flag) wrong = "screen content, which is not offered";
  if (p->slice_pic_parameter_set_id > 63) wrong = "slice_pic_parameter_set_id";
  if (wrong) {
    violation(driver, "picture: %s", wrong);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  bool mistake = mistaken(driver, "sign_data_hiding_enabled_flag", pps->sign_hiding, offered->bits.sign_data_hiding);
  mistake |= mistaken(driver, "transform_skip_enabled_flag", pps->transform_skip, offered->bits.transform_skip);
  mistake |= mistaken(driver, "cu_qp_delta_enabled_flag", pps->qp_delta, offered->bits.cu_qp_delta);
  return mistake ? VA_STATUS_ERROR_INVALID_PARAMETER : VA_STATUS_SUCCESS;
}

static VAStatus check_types(struct driver *driver, const struct context *context) {
  const VAEncPictureParameterBufferHEVC *p = &context->picture.hevc.parameters;
  bool idr = is_idr(context), idr_unit = p->nal_unit_type == hevc_idr_w_radl || p->nal_unit_type == hevc_idr_n_lp;
  if (idr ? !idr_unit : p->nal_unit_type != hevc_trail_r) return refused(driver, "picture", "nal_unit_type", p->nal_unit_type);
  uint32_t type = p->pic_fields.bits.coding_type;
  bool inter = type == 2 || (type == 3 && driver->knobs.hevc.both_lists);
  if (idr ? type != 1 : !inter) return refused(driver, "picture", "coding_type", type);
  return VA_STATUS_SUCCESS;
}

static VAStatus check_order(struct driver *driver, const struct context *context,
                            const struct coded_picture *reference) {
  int32_t poc = context->picture.hevc.parameters.decoded_curr_pic.pic_order_cnt;
  if (is_idr(context)) {
    return differs(driver, "order-count", "pic_order_cnt of an IDR picture", poc, 0) ? VA_STATUS_ERROR_INVALID_PARAMETER
                                                                                     : VA_STATUS_SUCCESS;
  }
  if (poc <= reference->poc || poc - reference->poc >= 128) {
    violation(driver, "order-count: pic_order_cnt is %d after %d", poc, reference->poc);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  // The device scales motion vectors by distances of one picture.
  bool temporal = context->picture.hevc.sequence.seq_fields.bits.sps_temporal_mvp_enabled_flag;
  if (temporal && differs(driver, "order-count", "pic_order_cnt", poc, reference->poc + 1)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_references(struct driver *driver, const struct context *context,
                                 const struct coded_picture *reference) {
  const VAEncPictureParameterBufferHEVC *p = &context->picture.hevc.parameters;
  int seen = -1;
  for (int i = 0; i < 15; i++) {
    const VAPictureHEVC *entry = &p->reference_frames[i];
    if (!given(entry)) continue;
    // Of a B slice whose lists are the same, ffmpeg gives the picture twice.
    bool again = seen >= 0 && !driver->knobs.hevc.both_lists;
    if (is_idr(context) || again || entry->picture_id != reference->reconstructed) {
      violation(driver, "reference: reference_frames[%d] is surface %#x, which is no reference of this picture", i,
                entry->picture_id);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    // GStreamer leaves the flags 0.
    if ((entry->flags && entry->flags != VA_PICTURE_HEVC_RPS_ST_CURR_BEFORE) || entry->pic_order_cnt != reference->poc) {
      violation(driver, "reference: reference_frames[%d] has order count %d, flags %#x; not %d, %#x", i,
                entry->pic_order_cnt, entry->flags, reference->poc, VA_PICTURE_HEVC_RPS_ST_CURR_BEFORE);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    if (seen < 0) seen = i;
  }
  if (!is_idr(context) && seen < 0) {
    violation(driver, "reference: a P picture without the last picture in reference_frames");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  bool temporal = !is_idr(context) && context->picture.hevc.slice.slice_fields.bits.slice_temporal_mvp_enabled_flag;
  int collocated = temporal ? seen : 0xff;
  // ffmpeg leaves it in IDR pictures, where no device reads it.
  bool idle = is_idr(context) && p->collocated_ref_pic_index == 0;
  if (!idle &&
      differs(driver, "reference", "collocated_ref_pic_index", p->collocated_ref_pic_index, collocated)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

VAStatus check_hevc_picture(struct driver *driver, struct context *context, bool *redo) {
  const VAEncPictureParameterBufferHEVC *p = &context->picture.hevc.parameters;
  const VAEncSequenceParameterBufferHEVC *s = &context->picture.hevc.sequence;
  bool replaces = p->decoded_curr_pic.pic_order_cnt == context->stream.last.poc;
  const struct coded_picture *reference = reference_of(driver, context, replaces, redo);
  if (!reference) return VA_STATUS_ERROR_INVALID_PARAMETER;
  VAStatus status = check_reconstructed(driver, context, p->decoded_curr_pic.picture_id, given(&p->decoded_curr_pic),
                                        s->pic_width_in_luma_samples, s->pic_height_in_luma_samples, reference);
  if (status == VA_STATUS_SUCCESS) status = check_coded_buffer(driver, context, p->coded_buf);
  if (status == VA_STATUS_SUCCESS && p->decoded_curr_pic.flags) {
    status = refused(driver, "picture", "flags of decoded_curr_pic", p->decoded_curr_pic.flags);
  }
  if (status == VA_STATUS_SUCCESS) status = check_tools(driver, context);
  if (status == VA_STATUS_SUCCESS) status = check_types(driver, context);
  if (status == VA_STATUS_SUCCESS) status = check_order(driver, context, reference);
  if (status == VA_STATUS_SUCCESS) status = check_references(driver, context, reference);
  return status;
}
