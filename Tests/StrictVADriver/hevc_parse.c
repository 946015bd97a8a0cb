// Parsing of HEVC parameter sets and slice segment headers. What this driver's streams cannot hold is refused.
#include <string.h>

#include "hevc_headers.h"

static bool ends_here(struct bit_reader *r) {
  if (r->bad || read_bits(r, 1) != 1) return false;
  while (r->position % 8) {
    if (read_bits(r, 1)) return false;
  }
  return !r->bad && r->position == r->bits;
}

// The NAL unit's header: of the base layer, and of the lowest sub-layer.
static bool begins(struct bit_reader *r, uint32_t *type) {
  if (read_bits(r, 1)) return false;
  *type = read_bits(r, 6);
  return read_bits(r, 6) == 0 && read_bits(r, 3) == 1;
}

static void parse_ptl(struct bit_reader *r, struct hevc_ptl *ptl) {
  read_bits(r, 2);
  ptl->tier = read_bits(r, 1);
  ptl->profile_idc = read_bits(r, 5);
  ptl->compatibility = read_bits(r, 32);
  read_bits(r, 24);
  read_bits(r, 24);
  ptl->level_idc = read_bits(r, 8);
}

static void parse_ordering(struct bit_reader *r, uint32_t *pictures, uint32_t *reordered) {
  read_bits(r, 1);
  *pictures = read_ue(r) + 1;
  *reordered = read_ue(r);
  read_ue(r);
}

bool parse_hevc_vps(const uint8_t *nal, size_t length, struct hevc_vps *vps) {
  struct bit_reader reader = {.data = nal, .bits = length * 8}, *r = &reader;
  uint32_t type, ignored;
  memset(vps, 0, sizeof *vps);
  if (!begins(r, &type) || type != hevc_vps) return false;
  vps->id = read_bits(r, 4);
  if (read_bits(r, 2) != 3 || read_bits(r, 6) != 0 || read_bits(r, 3) != 0) return false;
  read_bits(r, 1);
  if (read_bits(r, 16) != 0xffff) return false;
  parse_ptl(r, &vps->ptl);
  parse_ordering(r, &ignored, &ignored);
  if (read_bits(r, 6) != 0 || read_ue(r) != 0) return false;
  if (read_bits(r, 1)) {
    read_bits(r, 32);
    read_bits(r, 32);
    if (read_bits(r, 1)) read_ue(r);
    if (read_ue(r) != 0) return false;  // HRD parameters
  }
  return read_bits(r, 1) == 0 && ends_here(r);
}

static bool parse_rps(struct bit_reader *r, uint32_t index, struct hevc_rps *rps) {
  memset(rps, 0, sizeof *rps);
  if (index > 0 && read_bits(r, 1)) return false;  // inter_ref_pic_set_prediction_flag
  rps->negative = read_ue(r);
  rps->positive = read_ue(r);
  if (rps->negative > hevc_max_refs || rps->positive > hevc_max_refs - rps->negative) return false;
  int32_t delta = 0;
  for (uint32_t i = 0; i < rps->negative + rps->positive; i++) {
    if (i == rps->negative) delta = 0;
    delta += (int32_t)(read_ue(r) + 1) * (i < rps->negative ? -1 : 1);
    rps->delta[i] = delta;
    rps->used[i] = read_bits(r, 1);
  }
  return !r->bad;
}

static bool parse_vui(struct bit_reader *r, struct hevc_sps *sps) {
  if (read_bits(r, 1) && read_bits(r, 8) == 255) read_bits(r, 32);
  if (read_bits(r, 1)) read_bits(r, 1);  // overscan
  if (read_bits(r, 1)) {                 // video signal type
    read_bits(r, 4);
    if (read_bits(r, 1)) read_bits(r, 24);
  }
  if (read_bits(r, 1)) {  // chroma location
    read_ue(r);
    read_ue(r);
  }
  read_bits(r, 3);
  if (read_bits(r, 1)) {  // default display window
    for (int i = 0; i < 4; i++) read_ue(r);
  }
  sps->timing = read_bits(r, 1);
  if (sps->timing) {
    sps->num_units_in_tick = read_bits(r, 32);
    sps->time_scale = read_bits(r, 32);
    if (read_bits(r, 1)) read_ue(r);
    if (read_bits(r, 1)) return false;  // HRD parameters
  }
  if (read_bits(r, 1)) {  // bitstream restriction
    read_bits(r, 3);
    for (int i = 0; i < 5; i++) read_ue(r);
  }
  return !r->bad;
}

bool parse_hevc_sps(const uint8_t *nal, size_t length, struct hevc_sps *sps) {
  struct bit_reader reader = {.data = nal, .bits = length * 8}, *r = &reader;
  uint32_t type;
  memset(sps, 0, sizeof *sps);
  if (!begins(r, &type) || type != hevc_sps_nal) return false;
  sps->vps_id = read_bits(r, 4);
  if (read_bits(r, 3) != 0) return false;
  read_bits(r, 1);
  parse_ptl(r, &sps->ptl);
  sps->id = read_ue(r);
  sps->chroma_format_idc = read_ue(r);
  if (sps->chroma_format_idc != 1) return false;
  sps->width = read_ue(r);
  sps->height = read_ue(r);
  sps->window = read_bits(r, 1);
  if (sps->window) {
    sps->window_left = read_ue(r);
    sps->window_right = read_ue(r);
    sps->window_top = read_ue(r);
    sps->window_bottom = read_ue(r);
  }
  sps->bit_depth_luma = read_ue(r) + 8;
  sps->bit_depth_chroma = read_ue(r) + 8;
  sps->log2_max_poc_lsb = read_ue(r) + 4;
  if (sps->log2_max_poc_lsb > 16) return false;
  parse_ordering(r, &sps->pictures, &sps->reordered);
  sps->log2_min_cb = read_ue(r) + 3;
  sps->log2_ctb = sps->log2_min_cb + read_ue(r);
  sps->log2_min_tb = read_ue(r) + 2;
  sps->log2_max_tb = sps->log2_min_tb + read_ue(r);
  if (sps->log2_ctb > 6 || sps->log2_ctb < 4 || sps->log2_max_tb > 5) return false;
  sps->depth_inter = read_ue(r);
  sps->depth_intra = read_ue(r);
  sps->scaling_list = read_bits(r, 1);
  if (sps->scaling_list && read_bits(r, 1)) return false;
  sps->amp = read_bits(r, 1);
  sps->sao = read_bits(r, 1);
  sps->pcm = read_bits(r, 1);
  if (sps->pcm) {
    read_bits(r, 8);
    read_ue(r);
    read_ue(r);
    read_bits(r, 1);
  }
  sps->set_count = read_ue(r);
  if (sps->set_count > hevc_max_sets) return false;
  for (uint32_t i = 0; i < sps->set_count; i++) {
    if (!parse_rps(r, i, &sps->sets[i])) return false;
  }
  sps->long_term = read_bits(r, 1);
  if (sps->long_term) return false;
  sps->temporal_mvp = read_bits(r, 1);
  sps->strong_intra = read_bits(r, 1);
  sps->vui = read_bits(r, 1);
  if (sps->vui && !parse_vui(r, sps)) return false;
  return read_bits(r, 1) == 0 && ends_here(r);
}

bool parse_hevc_pps(const uint8_t *nal, size_t length, struct hevc_pps *pps) {
  struct bit_reader reader = {.data = nal, .bits = length * 8}, *r = &reader;
  uint32_t type;
  memset(pps, 0, sizeof *pps);
  if (!begins(r, &type) || type != hevc_pps_nal) return false;
  pps->id = read_ue(r);
  pps->sps_id = read_ue(r);
  pps->dependent = read_bits(r, 1);
  pps->output_flag = read_bits(r, 1);
  pps->extra_bits = read_bits(r, 3);
  pps->sign_hiding = read_bits(r, 1);
  pps->cabac_init = read_bits(r, 1);
  pps->l0_default = read_ue(r) + 1;
  pps->l1_default = read_ue(r) + 1;
  pps->init_qp = 26 + read_se(r);
  pps->constrained_intra = read_bits(r, 1);
  pps->transform_skip = read_bits(r, 1);
  pps->qp_delta = read_bits(r, 1);
  if (pps->qp_delta) pps->qp_delta_depth = read_ue(r);
  pps->cb_offset = read_se(r);
  pps->cr_offset = read_se(r);
  pps->slice_chroma_offsets = read_bits(r, 1);
  pps->weighted_pred = read_bits(r, 1);
  pps->weighted_bipred = read_bits(r, 1);
  pps->transquant_bypass = read_bits(r, 1);
  pps->tiles = read_bits(r, 1);
  pps->wavefront = read_bits(r, 1);
  if (pps->tiles) return false;
  pps->across_slices = read_bits(r, 1);
  pps->deblocking_control = read_bits(r, 1);
  if (pps->deblocking_control) {
    pps->deblocking_override = read_bits(r, 1);
    pps->deblocking_disabled = read_bits(r, 1);
    if (!pps->deblocking_disabled) {
      pps->beta_offset_div2 = read_se(r);
      pps->tc_offset_div2 = read_se(r);
    }
  }
  pps->scaling_list = read_bits(r, 1);
  if (pps->scaling_list) return false;
  pps->lists_modification = read_bits(r, 1);
  pps->log2_parallel_merge = read_ue(r) + 2;
  pps->header_extension = read_bits(r, 1);
  return read_bits(r, 1) == 0 && ends_here(r);
}

// From slice_pic_order_cnt_lsb to slice_temporal_mvp_enabled_flag.
static bool parse_references(struct bit_reader *r, const struct hevc_sps *sps, struct hevc_slice_header *h) {
  h->poc_lsb = read_bits(r, (int)sps->log2_max_poc_lsb);
  if (!read_bits(r, 1)) {  // short_term_ref_pic_set_sps_flag
    if (!parse_rps(r, sps->set_count, &h->rps)) return false;
  } else {
    if (sps->set_count == 0) return false;
    int bits = 0;
    while (1u << bits < sps->set_count) bits++;
    uint32_t index = read_bits(r, bits);
    if (index >= sps->set_count) return false;
    h->rps = sps->sets[index];
  }
  if (sps->temporal_mvp) h->temporal_mvp = read_bits(r, 1);
  return true;
}

static bool parse_inter(struct bit_reader *r, const struct hevc_pps *pps, struct hevc_slice_header *h) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < h->rps.negative + h->rps.positive; i++) used += h->rps.used[i];
  h->ref_override = read_bits(r, 1);
  h->l0 = pps->l0_default;
  h->l1 = h->type == hevc_slice_b ? pps->l1_default : 0;
  if (h->ref_override) {
    h->l0 = read_ue(r) + 1;
    if (h->type == hevc_slice_b) h->l1 = read_ue(r) + 1;
  }
  if (pps->lists_modification && used > 1) return false;
  if (h->type == hevc_slice_b) h->mvd_l1_zero = read_bits(r, 1);
  if (pps->cabac_init) h->cabac_init = read_bits(r, 1);
  h->collocated_from_l0 = true;
  if (h->temporal_mvp) {
    if (h->type == hevc_slice_b) h->collocated_from_l0 = read_bits(r, 1);
    if ((h->collocated_from_l0 ? h->l0 : h->l1) > 1) h->collocated_ref = read_ue(r);
  }
  if ((pps->weighted_pred && h->type == hevc_slice_p) || (pps->weighted_bipred && h->type == hevc_slice_b)) return false;
  h->merge_candidates = 5 - read_ue(r);
  return true;
}

bool parse_hevc_slice(const uint8_t *nal, size_t bits, const struct hevc_sps *sps, const struct hevc_pps *pps,
                      struct hevc_slice_header *h) {
  struct bit_reader reader = {.data = nal, .bits = bits}, *r = &reader;
  memset(h, 0, sizeof *h);
  if (!begins(r, &h->nal_unit_type) || h->nal_unit_type > 21) return false;
  bool idr = h->nal_unit_type == hevc_idr_w_radl || h->nal_unit_type == hevc_idr_n_lp;
  h->first = read_bits(r, 1);
  if (h->nal_unit_type >= 16) h->no_output_of_prior = read_bits(r, 1);
  h->pps_id = read_ue(r);
  if (!h->first) return false;  // pictures of one slice
  read_bits(r, (int)pps->extra_bits);
  h->type = read_ue(r);
  if (h->type > hevc_slice_i) return false;
  if (pps->output_flag) read_bits(r, 1);
  if (!idr && !parse_references(r, sps, h)) return false;
  if (sps->sao) {
    h->sao_luma = read_bits(r, 1);
    h->sao_chroma = read_bits(r, 1);
  }
  if (h->type != hevc_slice_i && !parse_inter(r, pps, h)) return false;
  h->qp_delta_from = r->position;
  h->qp_delta = read_se(r);
  h->qp_delta_to = r->position;
  if (pps->slice_chroma_offsets) {
    h->cb_offset = read_se(r);
    h->cr_offset = read_se(r);
  }
  bool overrides = pps->deblocking_override && read_bits(r, 1);
  h->deblocking_disabled = pps->deblocking_disabled;
  h->beta_offset_div2 = pps->beta_offset_div2;
  h->tc_offset_div2 = pps->tc_offset_div2;
  if (overrides) {
    h->deblocking_disabled = read_bits(r, 1);
    if (!h->deblocking_disabled) {
      h->beta_offset_div2 = read_se(r);
      h->tc_offset_div2 = read_se(r);
    }
  }
  h->across_slices = pps->across_slices;
  if (pps->across_slices && (h->sao_luma || h->sao_chroma || !h->deblocking_disabled)) {
    h->across_slices = read_bits(r, 1);
  }
  if (pps->wavefront) return false;
  if (pps->header_extension && read_ue(r) != 0) return false;
  h->bits = r->position;
  return !r->bad;
}
