// HEVC parameter sets and slice segment headers at bit level (ITU-T H.265 7.3.2 and 7.3.6.1).
#ifndef HEVC_HEADERS_H
#define HEVC_HEADERS_H

#include "headers.h"

enum { hevc_trail_r = 1, hevc_idr_w_radl = 19, hevc_idr_n_lp = 20, hevc_vps = 32, hevc_sps_nal = 33, hevc_pps_nal = 34 };
enum { hevc_slice_b, hevc_slice_p, hevc_slice_i };
// Short-term reference picture sets in an SPS, and pictures in one.
enum { hevc_max_sets = 64, hevc_max_refs = 16 };

// st_ref_pic_set() without prediction from another set, which is all that is taken.
struct hevc_rps {
  uint32_t negative, positive;
  int32_t delta[hevc_max_refs];      // the negative ones first
  bool used[hevc_max_refs];
};

// profile_tier_level() of one temporal sub-layer.
struct hevc_ptl { uint32_t profile_idc, compatibility, tier, level_idc; };

struct hevc_vps {
  uint32_t id;
  struct hevc_ptl ptl;
};

struct hevc_sps {
  uint32_t vps_id, id, chroma_format_idc, width, height, bit_depth_luma, bit_depth_chroma, log2_max_poc_lsb;
  struct hevc_ptl ptl;
  bool window;
  uint32_t window_left, window_right, window_top, window_bottom;  // in chroma samples
  uint32_t pictures, reordered;      // sps_max_dec_pic_buffering_minus1 + 1, sps_max_num_reorder_pics
  uint32_t log2_min_cb, log2_ctb, log2_min_tb, log2_max_tb, depth_inter, depth_intra;
  bool scaling_list, amp, sao, pcm, long_term, temporal_mvp, strong_intra, vui, timing;
  uint32_t set_count, num_units_in_tick, time_scale;
  struct hevc_rps sets[hevc_max_sets];
};

struct hevc_pps {
  uint32_t id, sps_id, extra_bits, l0_default, l1_default, qp_delta_depth, log2_parallel_merge;
  bool dependent, output_flag, sign_hiding, cabac_init, constrained_intra, transform_skip, qp_delta;
  int32_t init_qp, cb_offset, cr_offset;
  bool slice_chroma_offsets, weighted_pred, weighted_bipred, transquant_bypass, tiles, wavefront;
  bool across_slices, deblocking_control, deblocking_override, deblocking_disabled, scaling_list, lists_modification;
  int32_t beta_offset_div2, tc_offset_div2;
  bool header_extension;
};

struct hevc_slice_header {
  uint32_t nal_unit_type, pps_id, address, type, poc_lsb;
  bool first, no_output_of_prior, dependent;
  struct hevc_rps rps;
  bool temporal_mvp, sao_luma, sao_chroma, ref_override, mvd_l1_zero, cabac_init, collocated_from_l0;
  uint32_t l0, l1, collocated_ref, merge_candidates;
  int32_t qp_delta, cb_offset, cr_offset;
  bool deblocking_disabled, across_slices;
  int32_t beta_offset_div2, tc_offset_div2;
  size_t qp_delta_from, qp_delta_to; // bit positions of slice_qp_delta, from the NAL unit's first byte
  size_t bits;                       // the header's length with the NAL unit's header, without byte_alignment()
};

// Each takes a NAL unit without start code and without emulation prevention, from its header on.
bool parse_hevc_vps(const uint8_t *nal, size_t length, struct hevc_vps *vps);
bool parse_hevc_sps(const uint8_t *nal, size_t length, struct hevc_sps *sps);
bool parse_hevc_pps(const uint8_t *nal, size_t length, struct hevc_pps *pps);
bool parse_hevc_slice(const uint8_t *nal, size_t bits, const struct hevc_sps *sps, const struct hevc_pps *pps,
                      struct hevc_slice_header *header);
// Each returns the NAL unit's bits, without start code and emulation prevention; sets end with trailing bits.
size_t write_hevc_vps(const struct hevc_sps *sps, uint8_t *target, size_t capacity);
size_t write_hevc_sps(const struct hevc_sps *sps, uint8_t *target, size_t capacity);
size_t write_hevc_pps(const struct hevc_pps *pps, uint8_t *target, size_t capacity);
size_t write_hevc_slice(const struct hevc_slice_header *header, const struct hevc_sps *sps, const struct hevc_pps *pps,
                        uint8_t *target, size_t capacity);

#endif
