// x264 as the device: one instance a context, told by the VA buffers what to do.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <x264.h>

#include "strict.h"

// What x264 is opened with; another set of them needs another instance, which only an IDR picture may start.
struct tools {
  int32_t width, height, profile, level, cabac, transform_8x8, deblock, alpha, beta, constrained_intra, chroma_offset,
      cabac_init, slice_mbs, rate_control;
};

struct x264_coder {
  x264_t *x264;
  x264_param_t parameters;
  struct tools tools;
  struct sps sps;
  struct pps pps;                    // x264's own, for reading its slice headers
  double frame_rate;                 // that it was opened with
  struct misc misc;
  int64_t pts;
  uint8_t *padded, *rbsp;
  size_t rbsp_size;
};

void coder_close(struct x264_coder *coder) {
  if (!coder) return;
  if (coder->x264) x264_encoder_close(coder->x264);
  free(coder->padded);
  free(coder->rbsp);
  free(coder);
}

bool coder_uses_cabac(const struct context *context) { return context->coder->tools.cabac; }

static struct tools tools_of(const struct context *context) {
  const struct picture *picture = &context->picture;
  const VAEncSliceParameterBufferH264 *slice = &picture->slices[0];
  struct tools tools = {.width = picture->sequence.picture_width_in_mbs * 16,
                        .height = picture->sequence.picture_height_in_mbs * 16,
                        .profile = context->config->profile,
                        .level = picture->sps.level_idc,
                        .cabac = picture->pps.cabac,
                        .transform_8x8 = picture->pps.transform_8x8,
                        .deblock = slice->disable_deblocking_filter_idc != 1,
                        .alpha = slice->slice_alpha_c0_offset_div2,
                        .beta = slice->slice_beta_offset_div2,
                        .constrained_intra = picture->pps.constrained_intra,
                        .chroma_offset = picture->pps.chroma_qp_offset,
                        .cabac_init = picture->pps.cabac ? slice->cabac_init_idc : 0,
                        .slice_mbs = picture->slice_count > 1 ? (int32_t)slice->num_macroblocks : 0,
                        .rate_control = (int32_t)context->config->rate_control};
  return tools;
}

double frame_rate_of(const struct misc *misc) {
  uint32_t numerator = misc->frame_rate.framerate & 0xffff, denominator = misc->frame_rate.framerate >> 16;
  return (double)numerator / (denominator ? denominator : 1);
}

// Rates in kbit/s at the frame rate that x264 was opened with: it takes no other while it runs.
static void set_rates(const struct x264_coder *coder, x264_param_t *p, const struct misc *misc) {
  double scale = coder->frame_rate / frame_rate_of(misc) / 1000;
  double bits = misc->rate.bits_per_second, percent = misc->rate.target_percentage;
  if (coder->tools.rate_control == VA_RC_CBR || percent == 0) percent = 100;
  p->rc.i_rc_method = X264_RC_ABR;
  p->rc.i_vbv_max_bitrate = (int)(bits * scale) > 1 ? (int)(bits * scale) : 1;
  p->rc.i_bitrate = (int)(bits * percent / 100 * scale) > 1 ? (int)(bits * percent / 100 * scale) : 1;
  p->rc.i_vbv_buffer_size = (int)(misc->hrd.buffer_size * scale) > 1 ? (int)(misc->hrd.buffer_size * scale) : 1;
  // At least three pictures: x264 keeps no smaller buffer.
  int least = (int)(p->rc.i_vbv_max_bitrate * 3 / coder->frame_rate) + 1;
  if (p->rc.i_vbv_buffer_size < least) p->rc.i_vbv_buffer_size = least;
  if (misc->rate.max_qp) p->rc.i_qp_max = (int)misc->rate.max_qp;
  p->rc.i_qp_min = (int)misc->rate.min_qp;
}

static bool read_sets(struct x264_coder *coder) {
  x264_nal_t *units;
  int count;
  if (x264_encoder_headers(coder->x264, &units, &count) < 0) return false;
  bool sps = false, pps = false;
  for (int i = 0; i < count; i++) {
    int start = units[i].b_long_startcode ? 4 : 3;
    uint8_t nal[1024];
    if (units[i].i_payload > (int)sizeof nal) continue;
    size_t length = unescape(units[i].p_payload + start, (size_t)(units[i].i_payload - start), nal);
    if (units[i].i_type == NAL_SPS) sps = parse_sps(nal, length, &coder->sps);
    if (units[i].i_type == NAL_PPS) pps = parse_pps(nal, length, &coder->pps);
  }
  return sps && pps;
}

static struct x264_coder *coder_open(const struct tools *tools, const struct misc *misc) {
  struct x264_coder *coder = calloc(1, sizeof *coder);
  x264_param_t *p = &coder->parameters;
  coder->tools = *tools;
  coder->misc = *misc;
  coder->frame_rate = misc->has_frame_rate ? frame_rate_of(misc) : 30;
  x264_param_default_preset(p, "ultrafast", "zerolatency");
  p->i_log_level = X264_LOG_NONE;
  p->i_threads = p->i_lookahead_threads = 1;
  p->b_sliced_threads = 0;
  p->i_width = tools->width;
  p->i_height = tools->height;
  p->i_csp = X264_CSP_NV12;
  p->i_level_idc = tools->level;
  p->i_fps_num = (uint32_t)(coder->frame_rate * 1000 + 0.5);
  p->i_fps_den = 1000;
  p->b_vfr_input = 0;
  p->i_keyint_max = X264_KEYINT_MAX_INFINITE;
  p->i_scenecut_threshold = 0;
  p->i_bframe = 0;
  p->i_frame_reference = 1;
  // Pictures before the last are kept so that a lost one can be coded again from its own reference.
  p->i_dpb_size = 4;
  p->b_repeat_headers = 0;
  p->b_aud = 0;
  p->b_annexb = 1;
  p->b_cabac = tools->cabac;
  p->i_cabac_init_idc = tools->cabac_init;
  p->analyse.b_transform_8x8 = tools->transform_8x8;
  p->analyse.intra = X264_ANALYSE_I4x4 | (tools->transform_8x8 ? X264_ANALYSE_I8x8 : 0);
  p->analyse.i_weighted_pred = X264_WEIGHTP_NONE;
  p->analyse.b_psy = 0;
  p->analyse.i_chroma_qp_offset = tools->chroma_offset;
  p->analyse.i_subpel_refine = 1;
  p->b_deblocking_filter = tools->deblock;
  p->i_deblocking_filter_alphac0 = tools->alpha;
  p->i_deblocking_filter_beta = tools->beta;
  p->b_constrained_intra = tools->constrained_intra;
  p->i_slice_max_mbs = tools->slice_mbs;
  p->i_slice_count = 0;
  p->rc.i_aq_mode = X264_AQ_NONE;
  p->rc.b_mb_tree = 0;
  p->rc.i_lookahead = 0;
  if (tools->rate_control == VA_RC_CQP) {
    // Constant QP by forcing it: x264's own constant QP mode would clip the QP to the one it was opened with.
    p->rc.i_rc_method = X264_RC_CRF;
    p->rc.f_rf_constant = 23;
  } else {
    set_rates(coder, p, misc);
  }
  coder->x264 = x264_encoder_open(p);
  coder->padded = malloc((size_t)tools->width * (size_t)tools->height * 3 / 2);
  if (coder->x264 && coder->padded && read_sets(coder)) return coder;
  coder_close(coder);
  return NULL;
}

// One plane into whole macroblocks, the last column and line repeated; pixels of `step` bytes.
static void pad(uint8_t *to, uint32_t to_width, uint32_t to_height, const uint8_t *from, uint32_t pitch, uint32_t width,
                uint32_t height, uint32_t step) {
  if (width > to_width) width = to_width;
  if (height > to_height) height = to_height;
  for (uint32_t y = 0; y < to_height; y++) {
    uint8_t *row = to + (size_t)y * to_width;
    if (y >= height) {
      memcpy(row, row - to_width, to_width);
      continue;
    }
    memcpy(row, from + (size_t)y * pitch, width);
    for (uint32_t x = width; x < to_width; x++) row[x] = row[x - step];
  }
}

void padded_input(struct driver *driver, const struct context *context, uint8_t *to, uint32_t width, uint32_t height) {
  struct surface *input = object_find(driver, kind_surface, context->picture.input);
  surface_access(input, true, false);
  pad(to, width, height, input->luma, input->pitch, input->width, input->height, 1);
  pad(to + (size_t)width * height, width, height / 2, input->chroma, input->chroma_pitch, (input->width + 1) / 2 * 2,
      (input->height + 1) / 2, 2);
  surface_access(input, false, false);
}

struct misc misc_of(const struct context *context) {
  struct misc misc = context->stream.misc;
  const struct misc *new = &context->picture.misc;
  if (new->has_rate) misc.rate = new->rate, misc.has_rate = true;
  if (new->has_hrd) misc.hrd = new->hrd, misc.has_hrd = true;
  if (new->has_frame_rate) misc.frame_rate = new->frame_rate, misc.has_frame_rate = true;
  return misc;
}

static VAStatus reconfigure(struct driver *driver, struct context *context) {
  struct x264_coder *coder = context->coder;
  struct tools tools = tools_of(context);
  struct misc misc = misc_of(context);
  if (coder && memcmp(&tools, &coder->tools, sizeof tools) != 0) {
    if (!is_idr(context)) {
      violation(driver, "tools: deblocking, slices or another coding tool change without an IDR picture, not offered");
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    coder_close(coder);
    coder = context->coder = NULL;
  }
  if (!coder) {
    context->coder = coder_open(&tools, &misc);
    return context->coder ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_ALLOCATION_FAILED;
  }
  if (tools.rate_control != VA_RC_CQP && memcmp(&misc, &coder->misc, sizeof misc) != 0) {
    set_rates(coder, &coder->parameters, &misc);
    coder->misc = misc;
    if (x264_encoder_reconfig(coder->x264, &coder->parameters) < 0) return VA_STATUS_ERROR_ENCODING_ERROR;
  }
  return VA_STATUS_SUCCESS;
}

static bool take_slice(struct x264_coder *coder, const x264_nal_t *unit, uint8_t **room, struct coded_slice *slice) {
  int start = unit->b_long_startcode ? 4 : 3;
  slice->nal = *room;
  slice->bytes = unescape(unit->p_payload + start, (size_t)(unit->i_payload - start), slice->nal);
  // Read past the end by copy_bits.
  memset(slice->nal + slice->bytes, 0, 8);
  *room += slice->bytes + 8;
  return parse_slice_header(slice->nal, slice->bytes * 8, &coder->sps, &coder->pps, &slice->header);
}

VAStatus code_picture(struct driver *driver, struct context *context, bool redo, struct coded_slice *slices,
                      int *count) {
  VAStatus status = reconfigure(driver, context);
  if (status != VA_STATUS_SUCCESS) return status;
  struct x264_coder *coder = context->coder;
  struct picture *picture = &context->picture;
  uint32_t width = (uint32_t)coder->tools.width, height = (uint32_t)coder->tools.height;
  uint8_t *chroma = coder->padded + (size_t)width * height;
  padded_input(driver, context, coder->padded, width, height);

  x264_picture_t in, out;
  x264_picture_init(&in);
  in.img.i_csp = X264_CSP_NV12;
  in.img.i_plane = 2;
  in.img.i_stride[0] = in.img.i_stride[1] = (int)width;
  in.img.plane[0] = coder->padded;
  in.img.plane[1] = chroma;
  bool intra = picture->slices[0].slice_type % 5 == 2;
  in.i_type = is_idr(context) ? X264_TYPE_IDR : intra ? X264_TYPE_I : X264_TYPE_P;
  if (coder->tools.rate_control == VA_RC_CQP) {
    in.i_qpplus1 = picture->pps.pic_init_qp + picture->slices[0].slice_qp_delta + 1;
  }
  if (redo && !is_idr(context)) x264_encoder_invalidate_reference(coder->x264, coder->pts - 1);
  in.i_pts = coder->pts++;

  x264_nal_t *units;
  int unit_count, bytes = x264_encoder_encode(coder->x264, &units, &unit_count, &in, &out);
  if (bytes <= 0) return VA_STATUS_ERROR_ENCODING_ERROR;
  if (coder->rbsp_size < (size_t)bytes + 8 * max_slices) {
    free(coder->rbsp);
    coder->rbsp_size = (size_t)bytes * 2 + 8 * max_slices;
    coder->rbsp = malloc(coder->rbsp_size);
  }
  uint8_t *room = coder->rbsp;
  *count = 0;
  for (int i = 0; i < unit_count; i++) {
    if (units[i].i_type != NAL_SLICE && units[i].i_type != NAL_SLICE_IDR) continue;
    if (*count == picture->slice_count || !take_slice(coder, &units[i], &room, &slices[*count])) {
      return VA_STATUS_ERROR_ENCODING_ERROR;
    }
    struct coded_slice *slice = &slices[(*count)++];
    slice->header.qp_delta += coder->pps.pic_init_qp;  // now the slice's QP
    bool same = slice->header.first_mb == picture->slices[*count - 1].macroblock_address &&
                slice->header.slice_type % 5 == picture->slices[*count - 1].slice_type % 5 &&
                (intra || slice->header.num_ref_idx_l0 == 1);
    if (!same) return VA_STATUS_ERROR_ENCODING_ERROR;
  }
  return *count == picture->slice_count ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_ENCODING_ERROR;
}
