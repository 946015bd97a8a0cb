// HEVC parameter sets and slice segment headers as the VA buffers describe them.
#include "strict.h"

struct hevc_sps hevc_sps_of(const struct context *context, const VAEncSequenceParameterBufferHEVC *s) {
  (void)context;
  struct hevc_sps sps = {.ptl = {.profile_idc = s->general_profile_idc,
                                 .compatibility = 3u << 29,
                                 .tier = s->general_tier_flag,
                                 .level_idc = s->general_level_idc},
                         .chroma_format_idc = s->seq_fields.bits.chroma_format_idc,
                         .width = s->pic_width_in_luma_samples,
                         .height = s->pic_height_in_luma_samples,
                         .bit_depth_luma = s->seq_fields.bits.bit_depth_luma_minus8 + 8,
                         .bit_depth_chroma = s->seq_fields.bits.bit_depth_chroma_minus8 + 8,
                         .log2_max_poc_lsb = 8,
                         .pictures = 2,
                         .log2_min_cb = s->log2_min_luma_coding_block_size_minus3 + 3u,
                         .scaling_list = s->seq_fields.bits.scaling_list_enabled_flag,
                         .amp = s->seq_fields.bits.amp_enabled_flag,
                         .sao = s->seq_fields.bits.sample_adaptive_offset_enabled_flag,
                         .pcm = s->seq_fields.bits.pcm_enabled_flag,
                         .temporal_mvp = s->seq_fields.bits.sps_temporal_mvp_enabled_flag,
                         .strong_intra = s->seq_fields.bits.strong_intra_smoothing_enabled_flag,
                         .depth_inter = s->max_transform_hierarchy_depth_inter,
                         .depth_intra = s->max_transform_hierarchy_depth_intra};
  sps.log2_ctb = sps.log2_min_cb + s->log2_diff_max_min_luma_coding_block_size;
  sps.log2_min_tb = s->log2_min_transform_block_size_minus2 + 2u;
  sps.log2_max_tb = sps.log2_min_tb + s->log2_diff_max_min_transform_block_size;
  sps.vui = s->vui_parameters_present_flag;
  if (sps.vui && s->vui_fields.bits.vui_timing_info_present_flag) {
    sps.timing = true;
    sps.num_units_in_tick = s->vui_num_units_in_tick;
    sps.time_scale = s->vui_time_scale;
  }
  return sps;
}

struct hevc_pps hevc_pps_of(const struct context *context) {
  const VAEncPictureParameterBufferHEVC *p = &context->picture.hevc.parameters;
  const VAEncSliceParameterBufferHEVC *s = &context->picture.hevc.slice;
  bool deblocks = !s->slice_fields.bits.slice_deblocking_filter_disabled_flag;
  return (struct hevc_pps){.id = p->slice_pic_parameter_set_id,
                           .dependent = p->pic_fields.bits.dependent_slice_segments_enabled_flag,
                           .sign_hiding = p->pic_fields.bits.sign_data_hiding_enabled_flag,
                           .l0_default = p->num_ref_idx_l0_default_active_minus1 + 1u,
                           .l1_default = p->num_ref_idx_l1_default_active_minus1 + 1u,
                           .init_qp = p->pic_init_qp,
                           .constrained_intra = p->pic_fields.bits.constrained_intra_pred_flag,
                           .transform_skip = p->pic_fields.bits.transform_skip_enabled_flag,
                           .qp_delta = p->pic_fields.bits.cu_qp_delta_enabled_flag,
                           // Without the flag it is not written; GStreamer gives it all the same.
                           .qp_delta_depth = p->pic_fields.bits.cu_qp_delta_enabled_flag ? p->diff_cu_qp_delta_depth : 0u,
                           .cb_offset = p->pps_cb_qp_offset,
                           .cr_offset = p->pps_cr_qp_offset,
                           .weighted_pred = p->pic_fields.bits.weighted_pred_flag,
                           .weighted_bipred = p->pic_fields.bits.weighted_bipred_flag,
                           .transquant_bypass = p->pic_fields.bits.transquant_bypass_enabled_flag,
                           .tiles = p->pic_fields.bits.tiles_enabled_flag,
                           .wavefront = p->pic_fields.bits.entropy_coding_sync_enabled_flag,
                           .across_slices = p->pic_fields.bits.pps_loop_filter_across_slices_enabled_flag,
                           .scaling_list = p->pic_fields.bits.scaling_list_data_present_flag,
                           .log2_parallel_merge = p->log2_parallel_merge_level_minus2 + 2u,
                           // Written only into a PPS of the driver's own: the structure has no such field.
                           .deblocking_control = !deblocks || s->slice_beta_offset_div2 || s->slice_tc_offset_div2,
                           .deblocking_disabled = !deblocks,
                           .beta_offset_div2 = deblocks ? s->slice_beta_offset_div2 : 0,
                           .tc_offset_div2 = deblocks ? s->slice_tc_offset_div2 : 0};
}

struct hevc_slice_header hevc_slice_header_of(const struct context *context) {
  const struct picture *picture = &context->picture;
  const VAEncPictureParameterBufferHEVC *p = &picture->hevc.parameters;
  const VAEncSliceParameterBufferHEVC *s = &picture->hevc.slice;
  struct hevc_slice_header h = {.nal_unit_type = p->nal_unit_type,
                                .pps_id = s->slice_pic_parameter_set_id,
                                .type = s->slice_type,
                                .first = true,
                                .sao_luma = s->slice_fields.bits.slice_sao_luma_flag,
                                .sao_chroma = s->slice_fields.bits.slice_sao_chroma_flag,
                                .qp_delta = s->slice_qp_delta,
                                .cb_offset = s->slice_cb_qp_offset,
                                .cr_offset = s->slice_cr_qp_offset,
                                .deblocking_disabled = s->slice_fields.bits.slice_deblocking_filter_disabled_flag,
                                .across_slices = s->slice_fields.bits.slice_loop_filter_across_slices_enabled_flag};
  if (!h.deblocking_disabled) {
    h.beta_offset_div2 = s->slice_beta_offset_div2;
    h.tc_offset_div2 = s->slice_tc_offset_div2;
  }
  if (is_idr(context)) return h;
  int32_t poc = p->decoded_curr_pic.pic_order_cnt;
  h.poc_lsb = (uint32_t)poc & ((1u << picture->hevc.sps.log2_max_poc_lsb) - 1);
  h.rps = (struct hevc_rps){.negative = 1, .delta = {s->ref_pic_list0[0].pic_order_cnt - poc}, .used = {true}};
  h.temporal_mvp = s->slice_fields.bits.slice_temporal_mvp_enabled_flag;
  h.ref_override = s->slice_fields.bits.num_ref_idx_active_override_flag;
  h.l0 = h.ref_override ? s->num_ref_idx_l0_active_minus1 + 1u : picture->hevc.pps.l0_default;
  if (h.type == hevc_slice_b) h.l1 = h.ref_override ? s->num_ref_idx_l1_active_minus1 + 1u : picture->hevc.pps.l1_default;
  h.mvd_l1_zero = h.type == hevc_slice_b && s->slice_fields.bits.mvd_l1_zero_flag;
  h.collocated_from_l0 = h.type != hevc_slice_b || s->slice_fields.bits.collocated_from_l0_flag || !h.temporal_mvp;
  h.merge_candidates = s->max_num_merge_cand;
  return h;
}
