// Parameter sets and slice headers as the VA buffers describe them.
#include "strict.h"

struct sps sps_of(const struct context *context, const VAEncSequenceParameterBufferH264 *s) {
  struct sps sps = {0};
  switch ((int)context->config->profile) {
    case VAProfileH264ConstrainedBaseline: sps.profile_idc = 66, sps.constraints = 0xc0; break;
    case VAProfileH264Main: sps.profile_idc = 77, sps.constraints = 0x40; break;
    default: sps.profile_idc = 100;
  }
  sps.level_idc = s->level_idc;
  sps.id = s->seq_parameter_set_id;
  sps.chroma_format_idc = s->seq_fields.bits.chroma_format_idc;
  sps.log2_max_frame_num = s->seq_fields.bits.log2_max_frame_num_minus4 + 4;
  sps.poc_type = s->seq_fields.bits.pic_order_cnt_type;
  if (sps.poc_type == 0) sps.log2_max_poc_lsb = s->seq_fields.bits.log2_max_pic_order_cnt_lsb_minus4 + 4;
  sps.max_num_ref_frames = s->max_num_ref_frames;
  sps.width_mbs = s->picture_width_in_mbs;
  sps.height_mbs = s->picture_height_in_mbs;
  sps.frame_mbs_only = s->seq_fields.bits.frame_mbs_only_flag;
  sps.direct_8x8_inference = s->seq_fields.bits.direct_8x8_inference_flag;
  sps.cropping = s->frame_cropping_flag;
  if (sps.cropping) {
    sps.crop_left = s->frame_crop_left_offset;
    sps.crop_right = s->frame_crop_right_offset;
    sps.crop_top = s->frame_crop_top_offset;
    sps.crop_bottom = s->frame_crop_bottom_offset;
  }
  sps.vui = s->vui_parameters_present_flag;
  if (sps.vui && s->vui_fields.bits.timing_info_present_flag) {
    sps.timing = true;
    sps.num_units_in_tick = s->num_units_in_tick;
    sps.time_scale = s->time_scale;
    sps.fixed_frame_rate = s->vui_fields.bits.fixed_frame_rate_flag;
  }
  return sps;
}

struct pps pps_of(const VAEncPictureParameterBufferH264 *p) {
  return (struct pps){.id = p->pic_parameter_set_id,
                      .sps_id = p->seq_parameter_set_id,
                      .cabac = p->pic_fields.bits.entropy_coding_mode_flag,
                      .bottom_field_pic_order = p->pic_fields.bits.pic_order_present_flag,
                      .weighted_pred = p->pic_fields.bits.weighted_pred_flag,
                      .weighted_bipred_idc = p->pic_fields.bits.weighted_bipred_idc,
                      .slice_groups = 1,
                      .num_ref_idx_l0_default = p->num_ref_idx_l0_active_minus1 + 1u,
                      .num_ref_idx_l1_default = p->num_ref_idx_l1_active_minus1 + 1u,
                      .pic_init_qp = p->pic_init_qp,
                      .pic_init_qs = 26,
                      .chroma_qp_offset = p->chroma_qp_index_offset,
                      .second_chroma_qp_offset = p->second_chroma_qp_index_offset,
                      .deblocking_control = p->pic_fields.bits.deblocking_filter_control_present_flag,
                      .constrained_intra = p->pic_fields.bits.constrained_intra_pred_flag,
                      .redundant_pic_cnt = p->pic_fields.bits.redundant_pic_cnt_present_flag,
                      .transform_8x8 = p->pic_fields.bits.transform_8x8_mode_flag,
                      .scaling_matrix = p->pic_fields.bits.pic_scaling_matrix_present_flag};
}

struct slice_header slice_header_of(const struct context *context, int index) {
  const struct picture *picture = &context->picture;
  const VAEncPictureParameterBufferH264 *p = &picture->parameters;
  const VAEncSliceParameterBufferH264 *s = &picture->slices[index];
  bool idr = p->pic_fields.bits.idr_pic_flag, inter = s->slice_type % 5 == 0;
  struct slice_header h = {.nal_ref_idc = p->pic_fields.bits.reference_pic_flag ? (s->slice_type % 5 == 2 ? 3 : 2) : 0,
                           .nal_unit_type = idr ? 5 : 1,
                           .first_mb = s->macroblock_address,
                           .slice_type = s->slice_type,
                           .pps_id = s->pic_parameter_set_id,
                           .frame_num = p->frame_num,
                           .idr_pic_id = idr ? s->idr_pic_id : 0,
                           .poc_lsb = picture->sps.poc_type == 0 ? s->pic_order_cnt_lsb : 0,
                           .qp_delta = s->slice_qp_delta};
  if (inter) {
    h.num_ref_override = s->num_ref_idx_active_override_flag;
    h.num_ref_idx_l0 = h.num_ref_override ? s->num_ref_idx_l0_active_minus1 + 1u : picture->pps.num_ref_idx_l0_default;
    if (picture->pps.cabac) h.cabac_init_idc = s->cabac_init_idc;
  }
  if (picture->pps.deblocking_control) {
    h.disable_deblocking = s->disable_deblocking_filter_idc;
    if (h.disable_deblocking != 1) {
      h.alpha_c0_offset_div2 = s->slice_alpha_c0_offset_div2;
      h.beta_offset_div2 = s->slice_beta_offset_div2;
    }
  }
  return h;
}
