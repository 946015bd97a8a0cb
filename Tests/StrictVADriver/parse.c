// Parsing of parameter sets and slice headers. Frame pictures only; what this driver's streams cannot hold is refused.
#include <string.h>

#include "headers.h"

static bool high_profile(uint32_t profile) {
  return profile == 100 || profile == 110 || profile == 122 || profile == 244 || profile == 44;
}

static void skip_hrd(struct bit_reader *r) {
  uint32_t count = read_ue(r) + 1;
  read_bits(r, 8);
  for (uint32_t i = 0; i < count && i < 32 && !r->bad; i++) {
    read_ue(r);
    read_ue(r);
    read_bits(r, 1);
  }
  read_bits(r, 20);
}

static void parse_vui(struct bit_reader *r, struct sps *sps) {
  sps->aspect_ratio = read_bits(r, 1);
  if (sps->aspect_ratio && read_bits(r, 8) == 255) read_bits(r, 32);
  if (read_bits(r, 1)) read_bits(r, 1);  // overscan
  if (read_bits(r, 1)) {                 // video signal type
    read_bits(r, 4);
    if (read_bits(r, 1)) read_bits(r, 24);
  }
  if (read_bits(r, 1)) {  // chroma location
    read_ue(r);
    read_ue(r);
  }
  sps->timing = read_bits(r, 1);
  if (sps->timing) {
    sps->num_units_in_tick = read_bits(r, 32);
    sps->time_scale = read_bits(r, 32);
    sps->fixed_frame_rate = read_bits(r, 1);
  }
  bool nal_hrd = read_bits(r, 1);
  if (nal_hrd) skip_hrd(r);
  bool vcl_hrd = read_bits(r, 1);
  if (vcl_hrd) skip_hrd(r);
  if (nal_hrd || vcl_hrd) read_bits(r, 1);
  read_bits(r, 1);  // pic_struct_present_flag
  sps->bitstream_restriction = read_bits(r, 1);
  if (sps->bitstream_restriction) {
    read_bits(r, 1);
    for (int i = 0; i < 6; i++) read_ue(r);
  }
}

// rbsp_trailing_bits: a one, then zeros to the end of the last byte, and no byte after that.
static bool ends_here(struct bit_reader *r) {
  if (r->bad || read_bits(r, 1) != 1) return false;
  while (r->position % 8) {
    if (read_bits(r, 1)) return false;
  }
  return !r->bad && r->position == r->bits;
}

bool parse_sps(const uint8_t *nal, size_t length, struct sps *sps) {
  struct bit_reader reader = {.data = nal, .bits = length * 8}, *r = &reader;
  memset(sps, 0, sizeof *sps);
  if ((read_bits(r, 8) & 0x1f) != 7) return false;
  sps->profile_idc = read_bits(r, 8);
  sps->constraints = read_bits(r, 8);
  sps->level_idc = read_bits(r, 8);
  sps->id = read_ue(r);
  sps->chroma_format_idc = 1;
  if (high_profile(sps->profile_idc)) {
    sps->chroma_format_idc = read_ue(r);
    sps->bit_depth_luma = read_ue(r);
    sps->bit_depth_chroma = read_ue(r);
    read_bits(r, 1);
    sps->scaling_matrix = read_bits(r, 1);
    if (sps->scaling_matrix) return false;
  }
  sps->log2_max_frame_num = read_ue(r) + 4;
  sps->poc_type = read_ue(r);
  if (sps->poc_type == 0) {
    sps->log2_max_poc_lsb = read_ue(r) + 4;
  } else if (sps->poc_type == 1) {
    return false;
  }
  sps->max_num_ref_frames = read_ue(r);
  sps->gaps_in_frame_num = read_bits(r, 1);
  sps->width_mbs = read_ue(r) + 1;
  sps->height_mbs = read_ue(r) + 1;
  sps->frame_mbs_only = read_bits(r, 1);
  if (!sps->frame_mbs_only) return false;
  sps->direct_8x8_inference = read_bits(r, 1);
  sps->cropping = read_bits(r, 1);
  if (sps->cropping) {
    sps->crop_left = read_ue(r);
    sps->crop_right = read_ue(r);
    sps->crop_top = read_ue(r);
    sps->crop_bottom = read_ue(r);
  }
  sps->vui = read_bits(r, 1);
  if (sps->vui) parse_vui(r, sps);
  return ends_here(r) && sps->log2_max_frame_num <= 16 && sps->log2_max_poc_lsb <= 16;
}

bool parse_pps(const uint8_t *nal, size_t length, struct pps *pps) {
  struct bit_reader reader = {.data = nal, .bits = length * 8}, *r = &reader;
  memset(pps, 0, sizeof *pps);
  if ((read_bits(r, 8) & 0x1f) != 8) return false;
  pps->id = read_ue(r);
  pps->sps_id = read_ue(r);
  pps->cabac = read_bits(r, 1);
  pps->bottom_field_pic_order = read_bits(r, 1);
  pps->slice_groups = read_ue(r) + 1;
  if (pps->slice_groups > 1) return false;
  pps->num_ref_idx_l0_default = read_ue(r) + 1;
  pps->num_ref_idx_l1_default = read_ue(r) + 1;
  pps->weighted_pred = read_bits(r, 1);
  pps->weighted_bipred_idc = read_bits(r, 2);
  pps->pic_init_qp = 26 + read_se(r);
  pps->pic_init_qs = 26 + read_se(r);
  pps->chroma_qp_offset = read_se(r);
  pps->second_chroma_qp_offset = pps->chroma_qp_offset;
  pps->deblocking_control = read_bits(r, 1);
  pps->constrained_intra = read_bits(r, 1);
  pps->redundant_pic_cnt = read_bits(r, 1);
  if (more_rbsp_data(r)) {
    pps->transform_8x8 = read_bits(r, 1);
    pps->scaling_matrix = read_bits(r, 1);
    if (pps->scaling_matrix) return false;
    pps->second_chroma_qp_offset = read_se(r);
  }
  return ends_here(r);
}

bool parse_slice_header(const uint8_t *nal, size_t bits, const struct sps *sps, const struct pps *pps,
                        struct slice_header *h) {
  struct bit_reader reader = {.data = nal, .bits = bits}, *r = &reader;
  memset(h, 0, sizeof *h);
  if (read_bits(r, 1)) return false;
  h->nal_ref_idc = read_bits(r, 2);
  h->nal_unit_type = read_bits(r, 5);
  if (h->nal_unit_type != 1 && h->nal_unit_type != 5) return false;
  h->first_mb = read_ue(r);
  h->slice_type = read_ue(r);
  bool inter = h->slice_type % 5 == 0;
  if (!inter && h->slice_type % 5 != 2) return false;
  h->pps_id = read_ue(r);
  h->frame_num = read_bits(r, (int)sps->log2_max_frame_num);
  if (h->nal_unit_type == 5) h->idr_pic_id = read_ue(r);
  if (sps->poc_type == 0) {
    h->poc_lsb = read_bits(r, (int)sps->log2_max_poc_lsb);
    if (pps->bottom_field_pic_order) h->delta_poc_bottom = read_se(r);
  }
  if (pps->redundant_pic_cnt) read_ue(r);
  h->num_ref_idx_l0 = inter ? pps->num_ref_idx_l0_default : 0;
  if (inter) {
    h->num_ref_override = read_bits(r, 1);
    if (h->num_ref_override) h->num_ref_idx_l0 = read_ue(r) + 1;
    h->list0_modification = read_bits(r, 1);
    if (h->list0_modification) {
      uint32_t operation;
      while (!r->bad && (operation = read_ue(r)) != 3) {
        if (operation > 2) return false;
        read_ue(r);
      }
    }
    if (pps->weighted_pred) return false;
  }
  if (h->nal_ref_idc != 0) {
    if (h->nal_unit_type == 5) {
      h->no_output_of_prior = read_bits(r, 1);
      h->long_term_reference = read_bits(r, 1);
    } else {
      h->adaptive_marking = read_bits(r, 1);
      uint32_t operation;
      while (h->adaptive_marking && !r->bad && (operation = read_ue(r)) != 0) {
        if (operation > 6) return false;
        // ffmpeg unmarks the last picture by operation 1, where a sliding window would do the same.
        uint32_t value = operation != 5 ? read_ue(r) : 0;
        if (operation == 3) read_ue(r);
        if (operation != 1 || value != 0) h->other_marking = true;
      }
    }
  }
  if (pps->cabac && inter) h->cabac_init_idc = read_ue(r);
  h->qp_delta_from = r->position;
  h->qp_delta = read_se(r);
  h->qp_delta_to = r->position;
  if (pps->deblocking_control) {
    h->disable_deblocking = read_ue(r);
    if (h->disable_deblocking != 1) {
      h->alpha_c0_offset_div2 = read_se(r);
      h->beta_offset_div2 = read_se(r);
    }
  }
  h->bits = r->position;
  return !r->bad;
}
