// One picture of the client: its buffers, as they should be and as a mistake has them.
#include <stdlib.h>
#include <string.h>

#include "misuse.h"

// What one picture is rendered from.
struct shot {
  VAEncSequenceParameterBufferH264 sequence;
  VAEncPictureParameterBufferH264 picture;
  VAEncSliceParameterBufferH264 slice;
  struct sps sps;
  struct pps pps;
  struct slice_header header;
};

static const VAPictureH264 none = {.picture_id = VA_INVALID_SURFACE, .flags = VA_PICTURE_H264_INVALID};
int32_t order_of_reference, order_submitted;

static void fill_sequence(struct shot *s, const struct client *c) {
  s->sequence = (VAEncSequenceParameterBufferH264){.level_idc = 30,
                                                   .intra_period = 30,
                                                   .intra_idr_period = 30,
                                                   .ip_period = 1,
                                                   .bits_per_second = c->rate_control == VA_RC_CQP ? 0 : c->bit_rate,
                                                   .max_num_ref_frames = 1,
                                                   .picture_width_in_mbs = width_mbs,
                                                   .picture_height_in_mbs = height_mbs,
                                                   .frame_cropping_flag = 1,
                                                   .frame_crop_right_offset = (width_mbs * 16 - width) / 2,
                                                   .frame_crop_bottom_offset = (height_mbs * 16 - height) / 2};
  s->sequence.seq_fields.bits.chroma_format_idc = 1;
  s->sequence.seq_fields.bits.frame_mbs_only_flag = 1;
  s->sequence.seq_fields.bits.direct_8x8_inference_flag = 1;
  s->sequence.seq_fields.bits.log2_max_pic_order_cnt_lsb_minus4 = 4;
  s->sps = (struct sps){.profile_idc = 100,
                        .level_idc = 30,
                        .log2_max_frame_num = 4,
                        .log2_max_poc_lsb = 8,
                        .max_num_ref_frames = 1,
                        .width_mbs = width_mbs,
                        .height_mbs = height_mbs,
                        .direct_8x8_inference = true,
                        .cropping = true,
                        .crop_right = (width_mbs * 16 - width) / 2,
                        .crop_bottom = (height_mbs * 16 - height) / 2};
}

static void fill_picture(struct shot *s, const struct client *c, int input, int number, bool idr, bool redo) {
  int32_t order = idr ? 0 : 2 * number;
  // Taking the place of a lost picture: its own surface again, and the reference that it had.
  int target = redo ? c->reference : 1 - c->reference, reference = 1 - target;
  uint32_t before = (c->frame_num - (redo ? 2 : 1)) & 15, frame_num = idr ? 0 : (before + 1) & 15;
  VAPictureH264 entry = {.picture_id = c->reconstructed[reference],
                         .frame_idx = before,
                         .flags = VA_PICTURE_H264_SHORT_TERM_REFERENCE,
                         .TopFieldOrderCnt = order_of_reference,
                         .BottomFieldOrderCnt = order_of_reference};
  s->picture = (VAEncPictureParameterBufferH264){.CurrPic = {.picture_id = c->reconstructed[target],
                                                             .frame_idx = frame_num,
                                                             .TopFieldOrderCnt = order,
                                                             .BottomFieldOrderCnt = order},
                                                 .coded_buf = c->coded[input],
                                                 .frame_num = (uint16_t)frame_num,
                                                 .pic_init_qp = 26};
  s->picture.pic_fields.bits.idr_pic_flag = idr;
  s->picture.pic_fields.bits.reference_pic_flag = 1;
  s->picture.pic_fields.bits.entropy_coding_mode_flag = 1;
  s->picture.pic_fields.bits.transform_8x8_mode_flag = 1;
  s->picture.pic_fields.bits.deblocking_filter_control_present_flag = 1;
  s->slice = (VAEncSliceParameterBufferH264){.num_macroblocks = width_mbs * height_mbs,
                                             .macroblock_info = VA_INVALID_ID,
                                             .slice_type = idr ? 7 : 5,
                                             .idr_pic_id = (uint16_t)(number & 1),
                                             .pic_order_cnt_lsb = (uint16_t)(order & 255),
                                             .slice_qp_delta = -6};
  for (int i = 0; i < 16; i++) s->picture.ReferenceFrames[i] = none;
  for (int i = 0; i < 32; i++) s->slice.RefPicList0[i] = s->slice.RefPicList1[i] = none;
  if (!idr) s->picture.ReferenceFrames[0] = s->slice.RefPicList0[0] = entry;
  s->pps = (struct pps){.cabac = true,
                        .num_ref_idx_l0_default = 1,
                        .num_ref_idx_l1_default = 1,
                        .pic_init_qp = 26,
                        .deblocking_control = true,
                        .transform_8x8 = true};
  s->header = (struct slice_header){.nal_ref_idc = 3,
                                    .nal_unit_type = idr ? 5 : 1,
                                    .slice_type = idr ? 7 : 5,
                                    .frame_num = frame_num,
                                    .idr_pic_id = number & 1,
                                    .poc_lsb = (uint32_t)order & 255,
                                    .num_ref_idx_l0 = 1,
                                    .qp_delta = -6};
}

static void make_mistake(struct shot *s, const struct client *c, int input, int number) {
  VAEncPictureParameterBufferH264 *p = &s->picture;
  if (is("sequence-width")) s->sequence.picture_width_in_mbs++;
  if (is("sequence-uncropped")) s->sequence.frame_cropping_flag = 0, s->sps.cropping = false;
  if (is("level")) s->sequence.level_idc = 33, s->sps.level_idc = 33;
  if (is("sps-width")) s->sps.width_mbs++;
  if (is("sps-crop")) s->sps.crop_bottom--;
  if (is("sps-level")) s->sps.level_idc = 31;
  if (is("sps-profile")) s->sps.profile_idc = 77;
  if (is("pps-entropy")) s->pps.cabac = false;
  if (is("pps-qp")) s->pps.pic_init_qp = 25;
  if (is("header-qp")) s->header.qp_delta++;
  if (is("header-deblocking")) s->header.disable_deblocking = 1;
  if (is("header-type")) s->header.nal_unit_type = 1;
  if (is("slice-short")) s->slice.num_macroblocks -= width_mbs;
  if (is("slice-beyond")) s->slice.num_macroblocks += width_mbs;
  if (is("slice-gap")) s->slice.macroblock_address = width_mbs;
  if (is("slice-qp")) s->slice.slice_qp_delta = -27;
  if (is("reconstructed-is-input")) p->CurrPic.picture_id = c->inputs[input];
  if (is("surface-is-buffer")) p->CurrPic.picture_id = c->coded[0];
  if (number == 0) return;
  if (is("frame-num")) p->frame_num++;
  if (is("idr-pic-id")) s->slice.idr_pic_id = s->header.idr_pic_id = 0;
  if (is("order-count")) p->CurrPic.TopFieldOrderCnt = p->CurrPic.BottomFieldOrderCnt = 0;
  if (is("order-count-lsb")) s->slice.pic_order_cnt_lsb++;
  if (is("reference-frames")) p->ReferenceFrames[0].picture_id = p->CurrPic.picture_id;
  if (is("reference-missing")) p->ReferenceFrames[0] = none;
  if (is("reference-in-idr")) {
    p->ReferenceFrames[0] = p->CurrPic;
    p->ReferenceFrames[0].picture_id = c->reconstructed[c->reference];
  }
  if (is("list-wrong")) s->slice.RefPicList0[0].picture_id = p->CurrPic.picture_id;
  if (is("list-empty")) s->slice.RefPicList0[0] = none;
  if (is("list-of-two")) s->slice.RefPicList0[1] = s->slice.RefPicList0[0];
  if (is("reconstructed-is-reference")) p->CurrPic.picture_id = c->reconstructed[c->reference];
  if (is("header-frame-num")) s->header.frame_num++;
  if (is("header-order-count")) s->header.poc_lsb++;
  if (is("slice-type")) s->slice.slice_type = 6;
}

static VABufferID rendered[24];
static int rendered_count;

bool add(struct client *c, VABufferType type, const void *data, size_t size) {
  VABufferID id;
  if (!accepted(c, vaCreateBuffer(c->display, c->context, type, (unsigned)size, 1, (void *)(uintptr_t)data, &id),
                "vaCreateBuffer")) {
    return false;
  }
  rendered[rendered_count++] = id;
  if (is("render-mapped")) {
    void *mapped;
    vaMapBuffer(c->display, id, &mapped);
  }
  return accepted(c, vaRenderPicture(c->display, c->context, &id, 1), "vaRenderPicture");
}

static bool add_misc(struct client *c, VAEncMiscParameterType type, const void *value, size_t size) {
  uint8_t data[256];
  VAEncMiscParameterBuffer *misc = (void *)data;
  misc->type = type;
  memcpy(misc->data, value, size);
  return add(c, VAEncMiscParameterBufferType, data, sizeof *misc + size);
}

bool add_packed(struct client *c, uint32_t type, const uint8_t *nal, size_t bits) {
  uint8_t data[512] = {0, 0, 0, 1};
  if (is("packed-no-start-code")) data[3] = 7;
  // Those of HEVC hold zeros in a row.
  size_t size = escape(nal, (bits + 7) / 8, data + 4);
  bits += (size - (bits + 7) / 8) * 8;
  VAEncPackedHeaderParameterBuffer parameters = {
      .type = type, .bit_length = (uint32_t)bits + 32, .has_emulation_bytes = 1};
  if (is("packed-too-long")) parameters.bit_length += 800;
  if (is("header-bits") && type == VAEncPackedHeaderSlice) parameters.bit_length += 24;
  if (!add(c, VAEncPackedHeaderParameterBufferType, &parameters, sizeof parameters)) return false;
  if (is("packed-no-data")) return true;
  return add(c, VAEncPackedHeaderDataBufferType, data, 4 + size + (is("header-bits") ? 8 : 0));
}

bool add_rates(struct client *c, bool idr) {
  VAEncMiscParameterBufferQualityLevel level = {.quality_level = 8};
  if (is("quality-level") && !add_misc(c, VAEncMiscParameterTypeQualityLevel, &level, sizeof level)) return false;
  if ((!idr && !c->new_rates) || (c->rate_control == VA_RC_CQP && !is("rate-in-cqp"))) return true;
  VAEncMiscParameterRateControl rate = {.bits_per_second = is("rate-zero") ? 0 : c->bit_rate, .target_percentage = 100};
  VAEncMiscParameterHRD hrd = {.buffer_size = c->bit_rate, .initial_buffer_fullness = c->bit_rate * 3 / 4};
  if (is("hrd-fullness")) hrd.initial_buffer_fullness = c->bit_rate + 1;
  VAEncMiscParameterFrameRate frames = {.framerate = c->frame_rate};
  return (is("no-rate") || add_misc(c, VAEncMiscParameterTypeRateControl, &rate, sizeof rate)) &&
         (is("no-hrd") || add_misc(c, VAEncMiscParameterTypeHRD, &hrd, sizeof hrd)) &&
         (is("no-frame-rate") || add_misc(c, VAEncMiscParameterTypeFrameRate, &frames, sizeof frames));
}

static bool add_all(struct client *c, const struct shot *s, bool idr) {
  uint8_t nal[256];
  bool packs = c->packed || is("packed-unasked");
  if ((idr || is("p-first")) && !is("no-sequence") &&
      !add(c, VAEncSequenceParameterBufferType, &s->sequence, sizeof s->sequence)) {
    return false;
  }
  if (is("sequence-twice") && !add(c, VAEncSequenceParameterBufferType, &s->sequence, sizeof s->sequence)) return false;
  if (is("misc-first") && !add_rates(c, idr)) return false;
  if (!is("no-picture") && !add(c, VAEncPictureParameterBufferType, &s->picture, sizeof s->picture)) return false;
  if (!is("misc-first") && !add_rates(c, idr)) return false;
  if (idr && packs && !is("no-packed-sequence") &&
      !add_packed(c, VAEncPackedHeaderSequence, nal, write_sps(&s->sps, nal, sizeof nal))) {
    return false;
  }
  if (idr && packs && !is("no-packed-picture") &&
      !add_packed(c, VAEncPackedHeaderPicture, nal, write_pps(&s->pps, &s->sps, nal, sizeof nal))) {
    return false;
  }
  if (packs && !is("no-packed-slice") &&
      !add_packed(c, VAEncPackedHeaderSlice, nal, write_slice_header(&s->header, &s->sps, &s->pps, nal, sizeof nal))) {
    return false;
  }
  return is("no-slice") || add(c, VAEncSliceParameterBufferType, &s->slice, sizeof s->slice);
}

bool submit(struct client *c, int input, int number, bool idr, bool redo) {
  struct shot shot;
  fill_sequence(&shot, c);
  fill_picture(&shot, c, input, number, idr, redo);
  make_mistake(&shot, c, input, number);
  VASurfaceID surface = is("surface-unknown") ? 0x7654321 : c->inputs[input];
  if (is("surface-freed")) {
    vaDestroySurfaces(c->display, &c->inputs[input], 1);
    c->inputs[input] = VA_INVALID_ID;
  }
  if (is("coded-freed")) vaDestroyBuffer(c->display, c->coded[input]), c->coded[input] = VA_INVALID_ID;
  VAContextID context = is("context-unknown") ? 0x1234567 : c->context;
  if (!accepted(c, vaBeginPicture(c->display, context, surface), "vaBeginPicture")) return false;
  c->begun = true;
  bool good = !is("begin-twice") ||
              accepted(c, vaBeginPicture(c->display, context, c->inputs[1 - input]), "vaBeginPicture");
  if (is("context-in-picture")) {
    c->begun = false;
    return false;
  }
  VABufferID unknown = 0x4fffffe;
  if (is("buffer-unknown") && !accepted(c, vaRenderPicture(c->display, context, &unknown, 1), "vaRenderPicture")) {
    return false;
  }
  good = (c->hevc ? add_hevc(c, input, number, idr, redo) : add_all(c, &shot, idr)) && good;
  // A picture begun must be ended, refused or not.
  good = accepted(c, vaEndPicture(c->display, context), "vaEndPicture") && good;
  c->begun = false;
  while (rendered_count > 0) {
    if (is("render-mapped")) vaUnmapBuffer(c->display, rendered[rendered_count - 1]);
    vaDestroyBuffer(c->display, rendered[--rendered_count]);
  }
  if (!good) return false;
  if (!redo) c->reference = 1 - c->reference;
  c->frame_num = shot.picture.frame_num + 1u;
  if (!c->hevc) order_submitted = shot.picture.CurrPic.TopFieldOrderCnt;
  return true;
}

bool collect(struct client *c, int input, bool keep) {
  VACodedBufferSegment *segment;
  if (!accepted(c, vaSyncSurface(c->display, c->inputs[input]), "vaSyncSurface") ||
      !accepted(c, vaMapBuffer(c->display, c->coded[input], (void **)&segment), "vaMapBuffer")) {
    return false;
  }
  c->coded_status = segment->status;
  bool lost = segment->status & VA_CODED_BUF_STATUS_SLICE_OVERFLOW_MASK;
  for (; segment && keep && !lost; segment = segment->next) {
    c->bytes += segment->size;
    if (c->stream) fwrite(segment->buf, 1, segment->size, c->stream);
  }
  if (!lost) order_of_reference = order_submitted;
  return accepted(c, vaUnmapBuffer(c->display, c->coded[input]), "vaUnmapBuffer");
}
