// HEVC parameter sets and slice segment headers as the driver writes them itself where the client packs none.
#include "hevc_headers.h"

static size_t finish(struct bit_writer *w) {
  write_bits(w, 1, 1);
  while (w->position % 8) write_bits(w, 0, 1);
  return w->position;
}

static void begin(struct bit_writer *w, uint32_t type) {
  write_bits(w, type, 7);
  write_bits(w, 1, 9);
}

static void write_ptl(struct bit_writer *w, const struct hevc_ptl *ptl) {
  write_bits(w, 0, 2);
  write_bits(w, ptl->tier, 1);
  write_bits(w, ptl->profile_idc, 5);
  write_bits(w, ptl->compatibility, 32);
  write_bits(w, 0x900000, 24);  // a progressive source, frames only
  write_bits(w, 0, 24);
  write_bits(w, ptl->level_idc, 8);
}

static void write_ordering(struct bit_writer *w, const struct hevc_sps *sps) {
  write_bits(w, 1, 1);
  write_ue(w, sps->pictures - 1);
  write_ue(w, sps->reordered);
  write_ue(w, 0);
}

size_t write_hevc_vps(const struct hevc_sps *sps, uint8_t *target, size_t capacity) {
  struct bit_writer writer = {.data = target, .capacity = capacity}, *w = &writer;
  begin(w, hevc_vps);
  write_bits(w, sps->vps_id, 4);
  write_bits(w, 3, 2);
  write_bits(w, 0, 9);  // one layer, one sub-layer
  write_bits(w, 1, 1);
  write_bits(w, 0xffff, 16);
  write_ptl(w, &sps->ptl);
  write_ordering(w, sps);
  write_bits(w, 0, 6);
  write_ue(w, 0);
  write_bits(w, 0, 2);  // timing, extension
  return finish(w);
}

size_t write_hevc_sps(const struct hevc_sps *sps, uint8_t *target, size_t capacity) {
  struct bit_writer writer = {.data = target, .capacity = capacity}, *w = &writer;
  begin(w, hevc_sps_nal);
  write_bits(w, sps->vps_id, 4);
  write_bits(w, 1, 4);  // one sub-layer, nested
  write_ptl(w, &sps->ptl);
  write_ue(w, sps->id);
  write_ue(w, 1);
  write_ue(w, sps->width);
  write_ue(w, sps->height);
  write_bits(w, sps->window, 1);
  if (sps->window) {
    write_ue(w, sps->window_left);
    write_ue(w, sps->window_right);
    write_ue(w, sps->window_top);
    write_ue(w, sps->window_bottom);
  }
  write_ue(w, 0);
  write_ue(w, 0);
  write_ue(w, sps->log2_max_poc_lsb - 4);
  write_ordering(w, sps);
  write_ue(w, sps->log2_min_cb - 3);
  write_ue(w, sps->log2_ctb - sps->log2_min_cb);
  write_ue(w, sps->log2_min_tb - 2);
  write_ue(w, sps->log2_max_tb - sps->log2_min_tb);
  write_ue(w, sps->depth_inter);
  write_ue(w, sps->depth_intra);
  write_bits(w, 0, 1);
  write_bits(w, sps->amp, 1);
  write_bits(w, sps->sao, 1);
  write_bits(w, 0, 1);
  write_ue(w, 0);  // reference picture sets are in the slice headers
  write_bits(w, 0, 1);
  write_bits(w, sps->temporal_mvp, 1);
  write_bits(w, sps->strong_intra, 1);
  write_bits(w, sps->timing, 1);  // VUI
  if (sps->timing) {
    write_bits(w, 0, 8);  // aspect ratio to default display window
    write_bits(w, 1, 1);
    write_bits(w, sps->num_units_in_tick, 32);
    write_bits(w, sps->time_scale, 32);
    write_bits(w, 0, 3);  // proportional timing, HRD, bitstream restriction
  }
  write_bits(w, 0, 1);
  return finish(w);
}

size_t write_hevc_pps(const struct hevc_pps *pps, uint8_t *target, size_t capacity) {
  struct bit_writer writer = {.data = target, .capacity = capacity}, *w = &writer;
  begin(w, hevc_pps_nal);
  write_ue(w, pps->id);
  write_ue(w, pps->sps_id);
  write_bits(w, 0, 5);
  write_bits(w, pps->sign_hiding, 1);
  write_bits(w, 0, 1);
  write_ue(w, pps->l0_default - 1);
  write_ue(w, pps->l1_default - 1);
  write_se(w, pps->init_qp - 26);
  write_bits(w, pps->constrained_intra, 1);
  write_bits(w, pps->transform_skip, 1);
  write_bits(w, pps->qp_delta, 1);
  if (pps->qp_delta) write_ue(w, pps->qp_delta_depth);
  write_se(w, pps->cb_offset);
  write_se(w, pps->cr_offset);
  write_bits(w, 0, 6);  // slice offsets to wavefronts
  write_bits(w, pps->across_slices, 1);
  write_bits(w, pps->deblocking_control, 1);
  if (pps->deblocking_control) {
    write_bits(w, pps->deblocking_override, 1);
    write_bits(w, pps->deblocking_disabled, 1);
    if (!pps->deblocking_disabled) {
      write_se(w, pps->beta_offset_div2);
      write_se(w, pps->tc_offset_div2);
    }
  }
  write_bits(w, 0, 2);
  write_ue(w, pps->log2_parallel_merge - 2);
  write_bits(w, 0, 2);
  return finish(w);
}

static void write_references(struct bit_writer *w, const struct hevc_slice_header *h, const struct hevc_sps *sps) {
  write_bits(w, h->poc_lsb, (int)sps->log2_max_poc_lsb);
  write_bits(w, 0, 1);
  if (sps->set_count > 0) write_bits(w, 0, 1);
  write_ue(w, h->rps.negative);
  write_ue(w, h->rps.positive);
  int32_t last = 0;
  for (uint32_t i = 0; i < h->rps.negative + h->rps.positive; i++) {
    if (i == h->rps.negative) last = 0;
    int32_t step = h->rps.delta[i] - last;
    write_ue(w, (uint32_t)(step < 0 ? -step : step) - 1);
    write_bits(w, h->rps.used[i], 1);
    last = h->rps.delta[i];
  }
  if (sps->temporal_mvp) write_bits(w, h->temporal_mvp, 1);
}

size_t write_hevc_slice(const struct hevc_slice_header *h, const struct hevc_sps *sps, const struct hevc_pps *pps,
                        uint8_t *target, size_t capacity) {
  struct bit_writer writer = {.data = target, .capacity = capacity}, *w = &writer;
  begin(w, h->nal_unit_type);
  write_bits(w, h->first, 1);
  if (h->nal_unit_type >= 16) write_bits(w, h->no_output_of_prior, 1);
  write_ue(w, h->pps_id);
  write_ue(w, h->type);
  if (h->nal_unit_type < 16) write_references(w, h, sps);
  if (sps->sao) {
    write_bits(w, h->sao_luma, 1);
    write_bits(w, h->sao_chroma, 1);
  }
  if (h->type != hevc_slice_i) {
    write_bits(w, h->ref_override, 1);
    if (h->ref_override) {
      write_ue(w, h->l0 - 1);
      if (h->type == hevc_slice_b) write_ue(w, h->l1 - 1);
    }
    if (h->type == hevc_slice_b) write_bits(w, h->mvd_l1_zero, 1);
    if (h->temporal_mvp && h->type == hevc_slice_b) write_bits(w, h->collocated_from_l0, 1);
    write_ue(w, 5 - h->merge_candidates);
  }
  write_se(w, h->qp_delta);
  if (pps->deblocking_override) {
    bool differs = h->deblocking_disabled != pps->deblocking_disabled || h->beta_offset_div2 != pps->beta_offset_div2 ||
                   h->tc_offset_div2 != pps->tc_offset_div2;
    write_bits(w, differs, 1);
    if (differs) {
      write_bits(w, h->deblocking_disabled, 1);
      if (!h->deblocking_disabled) {
        write_se(w, h->beta_offset_div2);
        write_se(w, h->tc_offset_div2);
      }
    }
  }
  if (pps->across_slices && (h->sao_luma || h->sao_chroma || !h->deblocking_disabled)) {
    write_bits(w, h->across_slices, 1);
  }
  return w->position;
}
