// x265 as the device: one instance a context, told by the VA buffers what to do. Its rate control takes no new rate while it
// runs, so each picture's QP is chosen here.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <x265.h>

#include "strict.h"

// What x265 is opened with; another set of them needs another instance, which only an IDR picture may start.
struct tools {
  int32_t width, height, min_cb, ctb, max_tb, depth_inter, depth_intra, amp, temporal_mvp, strong_intra, sign_hiding,
      transform_skip, qp_delta, qp_delta_depth, cb_offset, cr_offset, merge, deblock, beta, tc;
};

// A picture since the last IDR picture: what one that replaces the last needs to code it with the same reference.
struct past { uint8_t *planes; int qp; };
enum { past_bytes = 256 << 20 };

struct x265_coder {
  x265_encoder *x265;
  x265_picture *picture;
  struct tools tools;
  struct hevc_sps sps;
  struct hevc_pps pps;               // x265's own, for reading its slice headers
  int64_t pts;
  uint8_t *padded, *rbsp;
  size_t frame_bytes, rbsp_size;
  struct past *past;
  size_t past_count, past_room;
  bool forgotten;                    // there are more pictures than are kept
  // Rate control: the bits of a picture at QP 0, and what was spent beyond the rate.
  double intra_cost, inter_cost, debt;
  bool known;
  int qp;
};

// x265 opens and closes one instance at a time.
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void forget(struct x265_coder *coder, size_t count) {
  while (coder->past_count > count) free(coder->past[--coder->past_count].planes);
}

static void close_x265(struct x265_coder *coder) {
  pthread_mutex_lock(&opening);
  if (coder->x265) x265_encoder_close(coder->x265);
  coder->x265 = NULL;
  pthread_mutex_unlock(&opening);
}

void hevc_coder_close(struct x265_coder *coder) {
  if (!coder) return;
  close_x265(coder);
  if (coder->picture) x265_picture_free(coder->picture);
  forget(coder, 0);
  free(coder->past);
  free(coder->padded);
  free(coder->rbsp);
  free(coder);
}

static struct tools tools_of(const struct context *context) {
  const struct hevc_sps *sps = &context->picture.hevc.sps;
  const struct hevc_pps *pps = &context->picture.hevc.pps;
  const VAEncSliceParameterBufferHEVC *slice = &context->picture.hevc.slice;
  // An I slice has no merge candidates: those of the P slices, which are the same for all of them, stay.
  int merge = context->hevc_coder ? context->hevc_coder->tools.merge : 5;
  if (!is_idr(context)) merge = slice->max_num_merge_cand;
  return (struct tools){.width = (int32_t)sps->width,
                        .height = (int32_t)sps->height,
                        .min_cb = (int32_t)sps->log2_min_cb,
                        .ctb = (int32_t)sps->log2_ctb,
                        .max_tb = (int32_t)sps->log2_max_tb,
                        .depth_inter = (int32_t)sps->depth_inter,
                        .depth_intra = (int32_t)sps->depth_intra,
                        .amp = sps->amp,
                        .temporal_mvp = sps->temporal_mvp,
                        .strong_intra = sps->strong_intra,
                        .sign_hiding = pps->sign_hiding,
                        .transform_skip = pps->transform_skip,
                        .qp_delta = pps->qp_delta,
                        .qp_delta_depth = (int32_t)pps->qp_delta_depth,
                        .cb_offset = pps->cb_offset,
                        .cr_offset = pps->cr_offset,
                        .merge = merge,
                        .deblock = !slice->slice_fields.bits.slice_deblocking_filter_disabled_flag,
                        .beta = slice->slice_beta_offset_div2,
                        .tc = slice->slice_tc_offset_div2};
}

// x265's NAL units have their length in four bytes before them.
static size_t unit_bytes(const x265_nal *unit, uint8_t *target) {
  return unescape(unit->payload + 4, unit->sizeBytes - 4, target);
}

static bool read_sets(struct x265_coder *coder) {
  x265_nal *units;
  uint32_t count;
  if (x265_encoder_headers(coder->x265, &units, &count) < 0) return false;
  bool sps = false, pps = false;
  for (uint32_t i = 0; i < count; i++) {
    uint8_t nal[1024];
    if (units[i].sizeBytes > sizeof nal) continue;
    size_t length = unit_bytes(&units[i], nal);
    if (units[i].type == NAL_UNIT_SPS) sps = parse_hevc_sps(nal, length, &coder->sps);
    if (units[i].type == NAL_UNIT_PPS) pps = parse_hevc_pps(nal, length, &coder->pps);
  }
  return sps && pps;
}

// Whether x265 took each tool: it drops some that do not go together.
static bool has_tools(const struct x265_coder *coder) {
  const struct tools *t = &coder->tools;
  const struct hevc_sps *sps = &coder->sps;
  const struct hevc_pps *pps = &coder->pps;
  return (int32_t)sps->width == t->width && (int32_t)sps->height == t->height && (int32_t)sps->log2_min_cb == t->min_cb &&
         (int32_t)sps->log2_ctb == t->ctb && sps->log2_min_tb == 2 && (int32_t)sps->log2_max_tb == t->max_tb &&
         (int32_t)sps->depth_inter == t->depth_inter && (int32_t)sps->depth_intra == t->depth_intra && sps->amp == t->amp &&
         !sps->sao && sps->temporal_mvp == t->temporal_mvp && sps->strong_intra == t->strong_intra &&
         pps->sign_hiding == t->sign_hiding && pps->transform_skip == t->transform_skip && pps->qp_delta == t->qp_delta &&
         (int32_t)pps->qp_delta_depth == t->qp_delta_depth && pps->cb_offset == t->cb_offset &&
         pps->cr_offset == t->cr_offset && !pps->weighted_pred && !pps->constrained_intra && !pps->transquant_bypass;
}

static void fill(x265_param *p, const struct tools *tools) {
  x265_param_default_preset(p, "ultrafast", "zerolatency");
  x265_param_parse(p, "pools", "none");
  p->logLevel = X265_LOG_NONE;
  p->frameNumThreads = 1;
  p->bEnableWavefront = p->bDistributeModeAnalysis = p->bDistributeMotionEstimation = 0;
  p->lookaheadSlices = 0;
  p->maxSlices = 1;
  p->internalCsp = X265_CSP_I420;
  p->sourceWidth = tools->width;
  p->sourceHeight = tools->height;
  p->fpsNum = 30;
  p->fpsDenom = 1;
  p->bframes = p->lookaheadDepth = p->scenecutThreshold = p->bHistBasedSceneCut = p->bOpenGOP = p->radl = 0;
  p->keyframeMax = -1;
  p->bRepeatHeaders = p->bEmitInfoSEI = p->bEmitHRDSEI = p->decodedPictureHashSEI = p->bEnableAccessUnitDelimiters = 0;
  p->bAnnexB = 0;
  p->bAllowNonConformance = 1;
  p->maxNumReferences = 1;
  p->maxCUSize = 1u << tools->ctb;
  p->minCUSize = 1u << tools->min_cb;
  p->maxTUSize = 1u << tools->max_tb;
  p->tuQTMaxInterDepth = (uint32_t)tools->depth_inter + 1;
  p->tuQTMaxIntraDepth = (uint32_t)tools->depth_intra + 1;
  p->bEnableRectInter = p->bEnableAMP = tools->amp;
  p->bEnableTemporalMvp = tools->temporal_mvp;
  p->bEnableStrongIntraSmoothing = tools->strong_intra;
  p->bEnableSignHiding = tools->sign_hiding;
  p->bEnableTransformSkip = tools->transform_skip;
  p->cbQpOffset = tools->cb_offset;
  p->crQpOffset = tools->cr_offset;
  p->maxNumMergeCand = (uint32_t)tools->merge;
  p->bEnableLoopFilter = tools->deblock;
  p->deblockingFilterBetaOffset = tools->beta;
  p->deblockingFilterTCOffset = tools->tc;
  p->bEnableSAO = p->bEnableWeightedPred = p->bEnableConstrainedIntra = 0;
  p->rc.cuTree = 0;
  if (tools->qp_delta) {
    // Only with adaptive quantization does x265 write cu_qp_delta_enabled_flag; with next to none of it, it stays with the QP.
    p->rc.rateControlMode = X265_RC_CRF;
    p->rc.aqMode = X265_AQ_VARIANCE;
    p->rc.aqStrength = 0.01;
    p->rc.qgSize = p->maxCUSize >> tools->qp_delta_depth;
  } else {
    p->rc.rateControlMode = X265_RC_CQP;
    p->rc.aqMode = X265_AQ_NONE;
    p->rc.ipFactor = 1;
  }
}

static bool open_x265(struct x265_coder *coder) {
  x265_param *p = x265_param_alloc();
  fill(p, &coder->tools);
  pthread_mutex_lock(&opening);
  coder->x265 = x265_encoder_open(p);
  pthread_mutex_unlock(&opening);
  if (!coder->picture && coder->x265) {
    coder->picture = x265_picture_alloc();
    x265_picture_init(p, coder->picture);
  }
  x265_param_free(p);
  coder->pts = 0;
  return coder->x265 && read_sets(coder) && has_tools(coder);
}

static struct x265_coder *coder_open(const struct tools *tools) {
  struct x265_coder *coder = calloc(1, sizeof *coder);
  size_t samples = (size_t)tools->width * (size_t)tools->height;
  coder->tools = *tools;
  coder->frame_bytes = samples * 3 / 2;
  coder->padded = malloc(coder->frame_bytes);
  coder->intra_cost = (double)samples * 0.5 * exp2(26.0 / 6);
  coder->inter_cost = coder->intra_cost / 6;
  if (open_x265(coder)) return coder;
  hevc_coder_close(coder);
  return NULL;
}

static VAStatus reconfigure(struct driver *driver, struct context *context) {
  struct tools tools = tools_of(context);
  struct x265_coder *coder = context->hevc_coder;
  // The first P picture may have another number of merge candidates than was taken for granted.
  bool late = coder && coder->past_count == 1 && !is_idr(context);
  if (coder && memcmp(&tools, &coder->tools, sizeof tools) != 0) {
    struct tools same = tools;
    same.merge = coder->tools.merge;
    if (!is_idr(context) && (!late || memcmp(&same, &coder->tools, sizeof same) != 0)) {
      violation(driver, "tools: deblocking or another coding tool changes without an IDR picture, not offered");
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    coder->tools = tools;
    if (late) {
      close_x265(coder);
      return open_x265(coder) ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_ALLOCATION_FAILED;
    }
    hevc_coder_close(coder);
    coder = context->hevc_coder = NULL;
  }
  if (!coder) context->hevc_coder = coder_open(&tools);
  return context->hevc_coder ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_ALLOCATION_FAILED;
}

static int chosen_qp(const struct context *context) {
  const struct picture *picture = &context->picture;
  const struct x265_coder *coder = context->hevc_coder;
  if (context->config->rate_control == VA_RC_CQP) return picture->hevc.pps.init_qp + picture->hevc.slice.slice_qp_delta;
  struct misc misc = misc_of(context);
  double percent = misc.rate.target_percentage && context->config->rate_control != VA_RC_CBR ? misc.rate.target_percentage : 100;
  double each = misc.rate.bits_per_second * percent / 100 / frame_rate_of(&misc), share = each - coder->debt / 15;
  double wanted = is_idr(context) ? fmax(each, fmin(share * 5, misc.hrd.buffer_size * 0.5))
                                  : fmin(fmax(share, each * 0.2), each * 2);
  int qp = (int)lround(6 * log2((is_idr(context) ? coder->intra_cost : coder->inter_cost) / wanted));
  if (coder->known && !is_idr(context)) qp = qp < coder->qp - 4 ? coder->qp - 4 : qp > coder->qp + 6 ? coder->qp + 6 : qp;
  int least = misc.rate.min_qp > 8 ? (int)misc.rate.min_qp : 8, most = misc.rate.max_qp ? (int)misc.rate.max_qp : 51;
  return qp < least ? least : qp > most ? most : qp;
}

void hevc_coded(struct context *context, size_t bytes, bool redo) {
  struct x265_coder *coder = context->hevc_coder;
  if (context->config->rate_control == VA_RC_CQP) return;
  struct misc misc = misc_of(context);
  double percent = misc.rate.target_percentage && context->config->rate_control != VA_RC_CBR ? misc.rate.target_percentage : 100;
  double each = misc.rate.bits_per_second * percent / 100 / frame_rate_of(&misc), bits = (double)bytes * 8;
  double cost = bits * exp2(coder->qp / 6.0);
  if (is_idr(context)) {
    if (!coder->known) coder->inter_cost = cost / 6;
    coder->intra_cost = cost;
  } else {
    coder->inter_cost = (coder->inter_cost + cost) / 2;
  }
  coder->known = true;
  if (!redo) coder->debt = fmin(fmax(coder->debt + bits - each, -each * 15), each * 60);
}

static int run_x265(struct x265_coder *coder, const struct past *past, bool idr, x265_nal **units, uint32_t *count) {
  size_t samples = (size_t)coder->tools.width * (size_t)coder->tools.height;
  x265_picture *in = coder->picture;
  in->planes[0] = past->planes;
  in->planes[1] = past->planes + samples;
  in->planes[2] = past->planes + samples + samples / 4;
  in->stride[0] = coder->tools.width;
  in->stride[1] = in->stride[2] = coder->tools.width / 2;
  in->bitDepth = 8;
  in->pts = coder->pts++;
  in->sliceType = idr ? X265_TYPE_IDR : X265_TYPE_P;
  in->forceqp = past->qp + 1;
  return x265_encoder_encode(coder->x265, units, count, in, NULL);
}

// Brings x265 to where it was before the last picture.
static bool rewind_to(struct x265_coder *coder, size_t count) {
  x265_nal *units;
  uint32_t unit_count;
  if (coder->forgotten) return false;
  if (coder->pts != 0) {
    close_x265(coder);
    if (!open_x265(coder)) return false;
  }
  forget(coder, count);
  for (size_t i = 0; i < count; i++) {
    if (run_x265(coder, &coder->past[i], i == 0, &units, &unit_count) <= 0) return false;
  }
  return true;
}

static struct past *remember(struct driver *driver, const struct context *context, int qp) {
  struct x265_coder *coder = context->hevc_coder;
  if (is_idr(context)) {
    forget(coder, 0);
    coder->forgotten = false;
  } else if ((coder->past_count + 1) * coder->frame_bytes > past_bytes) {
    forget(coder, 0);
    coder->forgotten = true;
  }
  if (coder->past_count == coder->past_room) {
    coder->past_room = coder->past_room * 2 + 16;
    coder->past = realloc(coder->past, coder->past_room * sizeof *coder->past);
  }
  struct past *past = &coder->past[coder->past_count++];
  *past = (struct past){.planes = malloc(coder->frame_bytes), .qp = qp};
  size_t samples = (size_t)coder->tools.width * (size_t)coder->tools.height;
  padded_input(driver, context, coder->padded, (uint32_t)coder->tools.width, (uint32_t)coder->tools.height);
  memcpy(past->planes, coder->padded, samples);
  for (size_t i = 0; i < samples / 4; i++) {
    past->planes[samples + i] = coder->padded[samples + 2 * i];
    past->planes[samples + samples / 4 + i] = coder->padded[samples + 2 * i + 1];
  }
  return past;
}

static bool take_slice(struct context *context, const x265_nal *unit, struct hevc_data *data) {
  struct x265_coder *coder = context->hevc_coder;
  if (coder->rbsp_size < unit->sizeBytes + 8) {
    free(coder->rbsp);
    coder->rbsp_size = unit->sizeBytes * 2 + 64;
    coder->rbsp = malloc(coder->rbsp_size);
  }
  size_t bytes = unit_bytes(unit, coder->rbsp);
  struct hevc_slice_header h, wanted = hevc_slice_header_of(context);
  if (!parse_hevc_slice(coder->rbsp, bytes * 8, &coder->sps, &coder->pps, &h)) return false;
  size_t from = h.bits / 8 + 1;  // behind byte_alignment()
  *data = (struct hevc_data){.data = coder->rbsp + from, .bytes = bytes - from, .qp = coder->pps.init_qp + h.qp_delta};
  return h.type == wanted.type && h.temporal_mvp == wanted.temporal_mvp && h.l0 == wanted.l0 &&
         (h.type == hevc_slice_i || h.merge_candidates == wanted.merge_candidates) &&
         coder->pps.qp_delta == context->picture.hevc.pps.qp_delta && !h.cabac_init;
}

VAStatus code_hevc(struct driver *driver, struct context *context, bool redo, struct hevc_data *data) {
  VAStatus status = reconfigure(driver, context);
  if (status != VA_STATUS_SUCCESS) return status;
  struct x265_coder *coder = context->hevc_coder;
  bool idr = is_idr(context);
  coder->qp = chosen_qp(context);
  if (!idr && driver->knobs.hevc.both_lists) {
    *data = (struct hevc_data){.data = coder->padded, .qp = coder->qp};
    data->bytes = skip_hevc(context, coder->padded, coder->frame_bytes, coder->qp);
    return VA_STATUS_SUCCESS;
  }
  bool fresh = coder->pts == 0 && coder->past_count > 0;
  if (!idr && (redo || fresh) && !rewind_to(coder, coder->past_count - (redo ? 1 : 0))) return VA_STATUS_ERROR_ENCODING_ERROR;
  const struct past *past = remember(driver, context, coder->qp);
  x265_nal *units;
  uint32_t count;
  if (run_x265(coder, past, idr, &units, &count) <= 0) return VA_STATUS_ERROR_ENCODING_ERROR;
  for (uint32_t i = 0; i < count; i++) {
    if (units[i].type <= NAL_UNIT_CODED_SLICE_CRA) {
      return take_slice(context, &units[i], data) ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_ENCODING_ERROR;
    }
  }
  return VA_STATUS_ERROR_ENCODING_ERROR;
}
