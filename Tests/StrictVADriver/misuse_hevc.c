// One picture of the client in HEVC: its buffers, as they should be and as a mistake has them.
#include <string.h>

#include "misuse.h"

struct shot {
  VAEncSequenceParameterBufferHEVC sequence;
  VAEncPictureParameterBufferHEVC picture;
  VAEncSliceParameterBufferHEVC slice;
  struct hevc_sps sps, vps;          // the VPS has a part of the fields of an SPS
  struct hevc_pps pps;
  struct hevc_slice_header header;
};

static const VAPictureHEVC none = {.picture_id = VA_INVALID_SURFACE, .flags = VA_PICTURE_HEVC_INVALID};

enum { coded_width = width_mbs * 16, coded_height = height_mbs * 16, tree_units = (width_mbs / 2) * ((height_mbs + 1) / 2) };

static void fill_sequence(struct shot *s, const struct client *c) {
  s->sequence = (VAEncSequenceParameterBufferHEVC){.general_profile_idc = 1,
                                                   .general_level_idc = 60,
                                                   .intra_period = 30,
                                                   .intra_idr_period = 30,
                                                   .ip_period = 1,
                                                   .bits_per_second = c->rate_control == VA_RC_CQP ? 0 : c->bit_rate,
                                                   .pic_width_in_luma_samples = coded_width,
                                                   .pic_height_in_luma_samples = coded_height,
                                                   .log2_diff_max_min_luma_coding_block_size = 2,
                                                   .log2_diff_max_min_transform_block_size = 3,
                                                   .max_transform_hierarchy_depth_inter = 2,
                                                   .max_transform_hierarchy_depth_intra = 2};
  s->sequence.seq_fields.bits.chroma_format_idc = 1;
  s->sequence.seq_fields.bits.amp_enabled_flag = 1;
  s->sequence.seq_fields.bits.sps_temporal_mvp_enabled_flag = 1;
  s->sequence.seq_fields.bits.strong_intra_smoothing_enabled_flag = 1;
  s->sps = (struct hevc_sps){.ptl = {.profile_idc = 1, .compatibility = 3u << 29, .level_idc = 60},
                             .width = coded_width,
                             .height = coded_height,
                             .window = true,
                             .window_right = (coded_width - width) / 2,
                             .window_bottom = (coded_height - height) / 2,
                             .log2_max_poc_lsb = 6,
                             .pictures = 2,
                             .log2_min_cb = 3,
                             .log2_ctb = 5,
                             .log2_min_tb = 2,
                             .log2_max_tb = 5,
                             .depth_inter = 2,
                             .depth_intra = 2,
                             .amp = true,
                             .temporal_mvp = true,
                             .strong_intra = true};
}

static void fill_picture(struct shot *s, const struct client *c, int input, int number, bool idr, bool redo) {
  // With the order count of a lost picture, the next one would take its place.
  int32_t order = idr ? 0 : is("overflow-ignored") ? number : order_of_reference + 1;
  // Taking the place of a lost picture: its own surface again, and the reference that it had.
  int target = redo ? c->reference : 1 - c->reference, reference = 1 - target;
  VAPictureHEVC entry = {.picture_id = c->reconstructed[reference],
                         .pic_order_cnt = order_of_reference,
                         .flags = VA_PICTURE_HEVC_RPS_ST_CURR_BEFORE};
  s->picture = (VAEncPictureParameterBufferHEVC){
      .decoded_curr_pic = {.picture_id = c->reconstructed[target], .pic_order_cnt = order},
      .coded_buf = c->coded[input],
      .collocated_ref_pic_index = idr ? 0xff : 0,
      .pic_init_qp = 26,
      .nal_unit_type = idr ? hevc_idr_w_radl : hevc_trail_r};
  s->picture.pic_fields.bits.idr_pic_flag = idr;
  s->picture.pic_fields.bits.coding_type = idr ? 1 : 2;
  s->picture.pic_fields.bits.reference_pic_flag = 1;
  s->picture.pic_fields.bits.sign_data_hiding_enabled_flag = 1;
  s->picture.pic_fields.bits.pps_loop_filter_across_slices_enabled_flag = 1;
  s->slice = (VAEncSliceParameterBufferHEVC){.num_ctu_in_slice = tree_units,
                                             .slice_type = idr ? hevc_slice_i : hevc_slice_p,
                                             .max_num_merge_cand = 3,
                                             .slice_qp_delta = -6};
  s->slice.slice_fields.bits.last_slice_of_pic_flag = 1;
  s->slice.slice_fields.bits.slice_temporal_mvp_enabled_flag = !idr;
  s->slice.slice_fields.bits.slice_loop_filter_across_slices_enabled_flag = 1;
  s->slice.slice_fields.bits.collocated_from_l0_flag = 1;
  for (int i = 0; i < 15; i++) {
    s->picture.reference_frames[i] = s->slice.ref_pic_list0[i] = s->slice.ref_pic_list1[i] = none;
  }
  if (!idr) s->picture.reference_frames[0] = s->slice.ref_pic_list0[0] = entry;
  s->pps = (struct hevc_pps){.l0_default = 1,
                             .l1_default = 1,
                             .init_qp = 26,
                             .sign_hiding = true,
                             .across_slices = true,
                             .log2_parallel_merge = 2};
  s->header = (struct hevc_slice_header){.nal_unit_type = s->picture.nal_unit_type,
                                         .first = true,
                                         .type = s->slice.slice_type,
                                         .poc_lsb = (uint32_t)order & 63,
                                         .rps = {.negative = 1, .delta = {order_of_reference - order}, .used = {true}},
                                         .temporal_mvp = !idr,
                                         .l0 = 1,
                                         .collocated_from_l0 = true,
                                         .merge_candidates = 3,
                                         .qp_delta = -6,
                                         .across_slices = true};
}

static void mistake_in_sets(struct shot *s) {
  VAEncSequenceParameterBufferHEVC *q = &s->sequence;
  if (is("sequence-width")) q->pic_width_in_luma_samples += 4;
  if (is("sequence-beyond")) q->pic_height_in_luma_samples += 8;
  if (is("level")) q->general_level_idc = s->sps.ptl.level_idc = 61;
  if (is("tier")) q->general_tier_flag = s->sps.ptl.tier = 1;
  if (is("profile")) q->general_profile_idc = s->sps.ptl.profile_idc = 2;
  if (is("coding-block")) q->log2_diff_max_min_luma_coding_block_size = 0, s->sps.log2_ctb = 3;
  if (is("transform-block")) q->log2_min_transform_block_size_minus2 = 1, s->sps.log2_min_tb = 3;
  if (is("sao")) q->seq_fields.bits.sample_adaptive_offset_enabled_flag = s->sps.sao = true;
  s->vps = s->sps;
  if (is("vps-level")) s->vps.ptl.level_idc = 63;
  if (is("sps-width")) s->sps.width += 8;
  if (is("sps-level")) s->sps.ptl.level_idc = 63;
  if (is("sps-block")) s->sps.log2_ctb = 4, s->sps.log2_max_tb = 4;
  if (is("sps-vps")) s->sps.vps_id = 1;
  if (is("window")) s->sps.window_bottom += 8;
  if (is("pps-qp")) s->pps.init_qp = 25;
  if (is("pps-signs")) s->pps.sign_hiding = false;
  if (is("pps-sps")) s->pps.sps_id = 1;
}

static void mistake_in_picture(struct shot *s, const struct client *c, int input, int number) {
  VAEncPictureParameterBufferHEVC *p = &s->picture;
  if (is("transform-skip")) p->pic_fields.bits.transform_skip_enabled_flag = s->pps.transform_skip = true;
  if (is("weighted")) p->pic_fields.bits.weighted_pred_flag = s->pps.weighted_pred = true;
  if (is("unit-type")) p->nal_unit_type = s->header.nal_unit_type = 21;
  if (is("coding-type")) p->pic_fields.bits.coding_type = 3;
  if (is("order-in-idr")) p->decoded_curr_pic.pic_order_cnt = 4;
  if (is("reconstructed-is-input")) p->decoded_curr_pic.picture_id = c->inputs[input];
  if (number == 0) return;
  if (is("order-count")) p->decoded_curr_pic.pic_order_cnt = 0;
  if (is("order-step")) p->decoded_curr_pic.pic_order_cnt++;
  if (is("reference-frames")) p->reference_frames[0].picture_id = p->decoded_curr_pic.picture_id;
  if (is("reference-missing")) p->reference_frames[0] = none;
  if (is("reference-in-idr")) {
    p->reference_frames[0] = (VAPictureHEVC){.picture_id = c->reconstructed[c->reference]};
  }
  if (is("reference-after")) p->reference_frames[0].flags = VA_PICTURE_HEVC_RPS_ST_CURR_AFTER;
  if (is("collocated")) p->collocated_ref_pic_index = 1;
  if (is("reconstructed-is-reference")) p->decoded_curr_pic.picture_id = c->reconstructed[c->reference];
}

static void mistake_in_slice(struct shot *s, int number) {
  if (is("slice-short")) s->slice.num_ctu_in_slice--;
  if (is("slice-qp")) s->slice.slice_qp_delta = -27;
  if (is("slice-not-last")) s->slice.slice_fields.bits.last_slice_of_pic_flag = 0;
  if (is("header-qp")) s->header.qp_delta++;
  if (is("header-type")) s->header.nal_unit_type = 20;
  if (is("header-deblocking")) {
    s->pps.deblocking_control = s->pps.deblocking_disabled = s->header.deblocking_disabled = true;
  }
  if (number == 0) return;
  if (is("list-wrong")) s->slice.ref_pic_list0[0].picture_id = s->picture.decoded_curr_pic.picture_id;
  if (is("list-empty")) s->slice.ref_pic_list0[0] = none;
  if (is("list-of-two")) s->slice.ref_pic_list0[1] = s->slice.ref_pic_list0[0];
  if (is("list-other")) s->slice.ref_pic_list1[0] = s->slice.ref_pic_list0[0];
  if (is("slice-type")) s->slice.slice_type = hevc_slice_b;
  if (is("merge")) s->slice.max_num_merge_cand = 6;
  if (is("no-temporal")) {
    s->slice.slice_fields.bits.slice_temporal_mvp_enabled_flag = s->header.temporal_mvp = false;
    s->picture.collocated_ref_pic_index = 0xff;
  }
  if (is("header-order-count")) s->header.poc_lsb++;
  if (is("header-references")) s->header.rps.delta[0]--;
  if (is("header-merge")) s->header.merge_candidates++;
}

static bool add_headers(struct client *c, const struct shot *s, bool idr) {
  uint8_t nal[256];
  if (idr && !is("no-packed-sequence")) {
    if (!is("no-vps") && !add_packed(c, VAEncPackedHeaderSequence, nal, write_hevc_vps(&s->vps, nal, sizeof nal))) return false;
    if (!add_packed(c, VAEncPackedHeaderSequence, nal, write_hevc_sps(&s->sps, nal, sizeof nal))) return false;
  }
  if (idr && !is("no-packed-picture") &&
      !add_packed(c, VAEncPackedHeaderPicture, nal, write_hevc_pps(&s->pps, nal, sizeof nal))) {
    return false;
  }
  return is("no-packed-slice") ||
         add_packed(c, VAEncPackedHeaderSlice, nal, write_hevc_slice(&s->header, &s->sps, &s->pps, nal, sizeof nal));
}

bool add_hevc(struct client *c, int input, int number, bool idr, bool redo) {
  struct shot s;
  fill_sequence(&s, c);
  fill_picture(&s, c, input, number, idr, redo);
  mistake_in_sets(&s);
  mistake_in_picture(&s, c, input, number);
  mistake_in_slice(&s, number);
  order_submitted = s.picture.decoded_curr_pic.pic_order_cnt;
  if ((idr || is("p-first")) && !is("no-sequence") &&
      !add(c, VAEncSequenceParameterBufferType, &s.sequence, sizeof s.sequence)) {
    return false;
  }
  if (is("sequence-twice") && !add(c, VAEncSequenceParameterBufferType, &s.sequence, sizeof s.sequence)) return false;
  if (is("misc-first") && !add_rates(c, idr)) return false;
  if (!is("no-picture") && !add(c, VAEncPictureParameterBufferType, &s.picture, sizeof s.picture)) return false;
  if (!is("misc-first") && !add_rates(c, idr)) return false;
  if (c->packed && !add_headers(c, &s, idr)) return false;
  if (is("no-slice")) return true;
  if (!add(c, VAEncSliceParameterBufferType, &s.slice, sizeof s.slice)) return false;
  return !is("slice-twice") || add(c, VAEncSliceParameterBufferType, &s.slice, sizeof s.slice);
}
