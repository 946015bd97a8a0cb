// H.264 parameter sets and slice headers at bit level (7.3.2.1, 7.3.2.2, 7.3.3).
#ifndef HEADERS_H
#define HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bit_reader {
  const uint8_t *data;
  size_t bits, position;
  bool bad;                          // read past the end, or a code that is not one
};

struct bit_writer {
  uint8_t *data;
  size_t capacity, position;         // bytes, bits
};

uint32_t read_bits(struct bit_reader *reader, int count);
uint32_t read_ue(struct bit_reader *reader);
int32_t read_se(struct bit_reader *reader);
// True while there is more before the rbsp_trailing_bits (7.2).
bool more_rbsp_data(const struct bit_reader *reader);
void write_bits(struct bit_writer *writer, uint32_t value, int count);
void write_ue(struct bit_writer *writer, uint32_t value);
void write_se(struct bit_writer *writer, int32_t value);
void copy_bits(struct bit_writer *writer, const uint8_t *data, size_t from, size_t to);
// Emulation prevention (7.4.1.1) taken out and put in; both return the new length. escape's target needs 3/2 of it.
size_t unescape(const uint8_t *data, size_t length, uint8_t *target);
size_t escape(const uint8_t *data, size_t length, uint8_t *target);

struct sps {
  uint32_t profile_idc, constraints, level_idc, id, chroma_format_idc, bit_depth_luma, bit_depth_chroma;
  bool scaling_matrix;
  uint32_t log2_max_frame_num, poc_type, log2_max_poc_lsb;
  bool delta_pic_order_always_zero;
  uint32_t max_num_ref_frames, width_mbs, height_mbs;
  bool gaps_in_frame_num, frame_mbs_only, direct_8x8_inference, cropping;
  uint32_t crop_left, crop_right, crop_top, crop_bottom;
  bool vui, aspect_ratio, timing, fixed_frame_rate, bitstream_restriction;
  uint32_t num_units_in_tick, time_scale;
};

struct pps {
  uint32_t id, sps_id;
  bool cabac, bottom_field_pic_order, weighted_pred;
  uint32_t slice_groups, num_ref_idx_l0_default, num_ref_idx_l1_default, weighted_bipred_idc;
  int32_t pic_init_qp, pic_init_qs, chroma_qp_offset, second_chroma_qp_offset;
  bool deblocking_control, constrained_intra, redundant_pic_cnt, transform_8x8, scaling_matrix;
};

struct slice_header {
  uint32_t nal_ref_idc, nal_unit_type;
  uint32_t first_mb, slice_type, pps_id, frame_num, idr_pic_id, poc_lsb;
  int32_t delta_poc_bottom;
  bool num_ref_override, list0_modification, long_term_reference, no_output_of_prior, adaptive_marking;
  bool other_marking;                // by anything but operation 1 on the last reference picture
  uint32_t num_ref_idx_l0, cabac_init_idc, disable_deblocking;
  int32_t qp_delta, alpha_c0_offset_div2, beta_offset_div2;
  size_t qp_delta_from, qp_delta_to; // bit positions of slice_qp_delta, from the NAL unit's first byte
  size_t bits;                       // the header's length with the NAL unit's byte
};

// Each takes a NAL unit without start code and without emulation prevention, from its header byte on.
bool parse_sps(const uint8_t *nal, size_t length, struct sps *sps);
bool parse_pps(const uint8_t *nal, size_t length, struct pps *pps);
bool parse_slice_header(const uint8_t *nal, size_t bits, const struct sps *sps, const struct pps *pps,
                        struct slice_header *header);
// Each returns the NAL unit's bits, without start code and emulation prevention; sets end with trailing bits.
size_t write_sps(const struct sps *sps, uint8_t *target, size_t capacity);
size_t write_pps(const struct pps *pps, const struct sps *sps, uint8_t *target, size_t capacity);
size_t write_slice_header(const struct slice_header *header, const struct sps *sps, const struct pps *pps,
                          uint8_t *target, size_t capacity);

#endif
