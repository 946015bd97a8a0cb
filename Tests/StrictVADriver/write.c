// Parameter sets and slice headers as the driver writes them itself where the client packs none.
#include "headers.h"

static size_t finish(struct bit_writer *w) {
  write_bits(w, 1, 1);
  while (w->position % 8) write_bits(w, 0, 1);
  return w->position;
}

size_t write_sps(const struct sps *sps, uint8_t *target, size_t capacity) {
  struct bit_writer writer = {.data = target, .capacity = capacity}, *w = &writer;
  write_bits(w, 0x67, 8);
  write_bits(w, sps->profile_idc, 8);
  write_bits(w, sps->constraints, 8);
  write_bits(w, sps->level_idc, 8);
  write_ue(w, sps->id);
  if (sps->profile_idc == 100) {
    write_ue(w, 1);
    write_ue(w, 0);
    write_ue(w, 0);
    write_bits(w, 0, 2);
  }
  write_ue(w, sps->log2_max_frame_num - 4);
  write_ue(w, sps->poc_type);
  if (sps->poc_type == 0) write_ue(w, sps->log2_max_poc_lsb - 4);
  write_ue(w, sps->max_num_ref_frames);
  write_bits(w, 0, 1);
  write_ue(w, sps->width_mbs - 1);
  write_ue(w, sps->height_mbs - 1);
  write_bits(w, 1, 1);
  write_bits(w, sps->direct_8x8_inference, 1);
  write_bits(w, sps->cropping, 1);
  if (sps->cropping) {
    write_ue(w, sps->crop_left);
    write_ue(w, sps->crop_right);
    write_ue(w, sps->crop_top);
    write_ue(w, sps->crop_bottom);
  }
  write_bits(w, sps->timing, 1);  // VUI
  if (sps->timing) {
    write_bits(w, 0, 4);  // aspect ratio, overscan, signal type, chroma location
    write_bits(w, 1, 1);
    write_bits(w, sps->num_units_in_tick, 32);
    write_bits(w, sps->time_scale, 32);
    write_bits(w, sps->fixed_frame_rate, 1);
    write_bits(w, 0, 4);  // HRDs, pic_struct, bitstream restriction
  }
  return finish(w);
}

size_t write_pps(const struct pps *pps, const struct sps *sps, uint8_t *target, size_t capacity) {
  struct bit_writer writer = {.data = target, .capacity = capacity}, *w = &writer;
  write_bits(w, 0x68, 8);
  write_ue(w, pps->id);
  write_ue(w, pps->sps_id);
  write_bits(w, pps->cabac, 1);
  write_bits(w, 0, 1);
  write_ue(w, 0);
  write_ue(w, pps->num_ref_idx_l0_default - 1);
  write_ue(w, pps->num_ref_idx_l1_default - 1);
  write_bits(w, 0, 3);
  write_se(w, pps->pic_init_qp - 26);
  write_se(w, 0);
  write_se(w, pps->chroma_qp_offset);
  write_bits(w, pps->deblocking_control, 1);
  write_bits(w, pps->constrained_intra, 1);
  write_bits(w, 0, 1);
  if (sps->profile_idc == 100) {
    write_bits(w, pps->transform_8x8, 1);
    write_bits(w, 0, 1);
    write_se(w, pps->second_chroma_qp_offset);
  }
  return finish(w);
}

size_t write_slice_header(const struct slice_header *h, const struct sps *sps, const struct pps *pps,
                          uint8_t *target, size_t capacity) {
  struct bit_writer writer = {.data = target, .capacity = capacity}, *w = &writer;
  bool inter = h->slice_type % 5 == 0;
  write_bits(w, h->nal_ref_idc << 5 | h->nal_unit_type, 8);
  write_ue(w, h->first_mb);
  write_ue(w, h->slice_type);
  write_ue(w, h->pps_id);
  write_bits(w, h->frame_num, (int)sps->log2_max_frame_num);
  if (h->nal_unit_type == 5) write_ue(w, h->idr_pic_id);
  if (sps->poc_type == 0) write_bits(w, h->poc_lsb, (int)sps->log2_max_poc_lsb);
  if (inter) {
    write_bits(w, h->num_ref_override, 1);
    if (h->num_ref_override) write_ue(w, h->num_ref_idx_l0 - 1);
    write_bits(w, 0, 1);
  }
  if (h->nal_ref_idc != 0) write_bits(w, 0, h->nal_unit_type == 5 ? 2 : 1);
  if (pps->cabac && inter) write_ue(w, h->cabac_init_idc);
  write_se(w, h->qp_delta);
  if (pps->deblocking_control) {
    write_ue(w, h->disable_deblocking);
    if (h->disable_deblocking != 1) {
      write_se(w, h->alpha_c0_offset_div2);
      write_se(w, h->beta_offset_div2);
    }
  }
  return w->position;
}
