// The picture buffer: surfaces, coded buffer, references, frame_num and picture order count (7.4.3, 8.2.1, 8.2.5).
#include <string.h>

#include "strict.h"

bool picture_given(const VAPictureH264 *picture) {
  return picture->picture_id != VA_INVALID_SURFACE && !(picture->flags & VA_PICTURE_H264_INVALID);
}

VAStatus check_reconstructed(struct driver *driver, const struct context *context, VASurfaceID id, bool given,
                             uint32_t width, uint32_t height, const struct coded_picture *reference) {
  const struct surface *surface = object_find(driver, kind_surface, id);
  if (!surface || !given) {
    violation(driver, "bad-id: reconstructed surface %#x", id);
    return VA_STATUS_ERROR_INVALID_SURFACE;
  }
  if (id == context->picture.input) {
    violation(driver, "reconstructed-is-input: surface %#x", id);
    return VA_STATUS_ERROR_INVALID_SURFACE;
  }
  if (!is_idr(context) && reference->valid && id == reference->reconstructed) {
    violation(driver, "reconstructed-is-reference: surface %#x is still one", id);
    return VA_STATUS_ERROR_INVALID_SURFACE;
  }
  if (surface->in_flight || surface->begun_by != VA_INVALID_ID || surface->derived) {
    violation(driver, "reconstructed-in-use: surface %#x is an input at work or has an image derived from it", id);
    return VA_STATUS_ERROR_SURFACE_BUSY;
  }
  // GStreamer's are of the picture's size: devices round up what they allocate.
  if ((surface->width + 15) / 16 < (width + 15) / 16 || (surface->height + 15) / 16 < (height + 15) / 16) {
    violation(driver, "dimensions: reconstructed surface of %ux%u holds fewer macroblocks than the picture",
              surface->width, surface->height);
    return VA_STATUS_ERROR_INVALID_SURFACE;
  }
  return VA_STATUS_SUCCESS;
}

VAStatus check_coded_buffer(struct driver *driver, const struct context *context, VABufferID id) {
  const struct buffer *coded = object_find(driver, kind_buffer, id);
  if (!coded || coded->type != VAEncCodedBufferType || coded->context != context->object.id) {
    violation(driver, "bad-id: coded buffer %#x", id);
    return VA_STATUS_ERROR_INVALID_BUFFER;
  }
  if (coded->mapped || coded->state == coded_pending) {
    violation(driver, "coded-in-use: coded buffer %#x is %s", id,
              coded->mapped ? "mapped" : "that of a picture not synchronized");
    return VA_STATUS_ERROR_INVALID_BUFFER;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_surfaces(struct driver *driver, const struct context *context,
                               const struct coded_picture *reference) {
  const VAEncPictureParameterBufferH264 *p = &context->picture.parameters;
  VAStatus status = check_reconstructed(
      driver, context, p->CurrPic.picture_id, picture_given(&p->CurrPic),
      context->picture.sequence.picture_width_in_mbs * 16u, context->picture.sequence.picture_height_in_mbs * 16u, reference);
  if (status != VA_STATUS_SUCCESS) return status;
  if (p->CurrPic.flags & (VA_PICTURE_H264_TOP_FIELD | VA_PICTURE_H264_BOTTOM_FIELD)) {
    violation(driver, "field: CurrPic flags %#x", p->CurrPic.flags);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return check_coded_buffer(driver, context, p->coded_buf);
}

static VAStatus check_tools(struct driver *driver, const struct context *context) {
  const VAEncPictureParameterBufferH264 *p = &context->picture.parameters;
  const struct pps *pps = &context->picture.pps;
  VAProfile profile = context->config->profile;
  const char *wrong = NULL;
  if (pps->cabac && profile == VAProfileH264ConstrainedBaseline) wrong = "CABAC in the constrained baseline profile";
  if (pps->transform_8x8 && profile != VAProfileH264High) wrong = "8x8 transform below the high profile";
  if (pps->weighted_pred || pps->weighted_bipred_idc) wrong = "weighted prediction, which is not offered";
  if (pps->redundant_pic_cnt || pps->bottom_field_pic_order) wrong = "a redundant_pic_cnt or pic_order flag";
  if (pps->scaling_matrix) wrong = "a scaling matrix, which is not offered";
  if (pps->num_ref_idx_l0_default != 1) wrong = "num_ref_idx_l0_active_minus1 is not 0: one reference is offered";
  if (pps->second_chroma_qp_offset != pps->chroma_qp_offset) wrong = "two different chroma QP offsets, not offered";
  if (pps->chroma_qp_offset < -12 || pps->chroma_qp_offset > 12) wrong = "chroma_qp_index_offset";
  if (pps->pic_init_qp < 0 || pps->pic_init_qp > 51) wrong = "pic_init_qp";
  if (!p->pic_fields.bits.reference_pic_flag) wrong = "a picture that is no reference, which is not offered";
  if (p->seq_parameter_set_id != context->picture.sequence.seq_parameter_set_id) wrong = "seq_parameter_set_id is not the sequence's";
  if (wrong) {
    violation(driver, "picture: %s", wrong);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_references(struct driver *driver, const struct context *context,
                                 const struct coded_picture *reference) {
  const VAEncPictureParameterBufferH264 *p = &context->picture.parameters;
  bool seen = false;
  for (int i = 0; i < 16; i++) {
    const VAPictureH264 *entry = &p->ReferenceFrames[i];
    if (!picture_given(entry)) continue;
    if (is_idr(context) || seen || entry->picture_id != reference->reconstructed) {
      violation(driver, "reference: ReferenceFrames[%d] is surface %#x, which is no reference of this picture", i,
                entry->picture_id);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    if (!(entry->flags & VA_PICTURE_H264_SHORT_TERM_REFERENCE) || entry->frame_idx != reference->frame_num ||
        entry->TopFieldOrderCnt != reference->poc) {
      violation(driver, "reference: ReferenceFrames[%d] has frame_idx %u, order count %d, flags %#x; not %u, %d", i,
                entry->frame_idx, entry->TopFieldOrderCnt, entry->flags, reference->frame_num, reference->poc);
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    seen = true;
  }
  bool inter = context->picture.slices[0].slice_type % 5 == 0;
  if (inter && !seen) {
    violation(driver, "reference: a P picture without the last picture in ReferenceFrames");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus check_order(struct driver *driver, const struct context *context,
                            const struct coded_picture *reference) {
  const VAEncPictureParameterBufferH264 *p = &context->picture.parameters;
  const struct sps *sps = &context->picture.sps;
  uint32_t maximum = 1u << sps->log2_max_frame_num;
  uint32_t wanted = is_idr(context) ? 0 : (reference->frame_num + 1) % maximum;
  int32_t poc = p->CurrPic.TopFieldOrderCnt;
  if (differs(driver, "frame_num", "the picture buffer's frame_num", p->frame_num, wanted)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  // GStreamer leaves it 0; no device reads it of the current picture.
  if (p->CurrPic.frame_idx != 0 && differs(driver, "frame_num", "CurrPic.frame_idx", p->CurrPic.frame_idx, wanted)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  if (is_idr(context) && differs(driver, "order-count", "TopFieldOrderCnt of an IDR picture", poc, 0)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  // GStreamer leaves it 0: a frame has no field of its own.
  if (p->CurrPic.BottomFieldOrderCnt != 0 &&
      differs(driver, "order-count", "BottomFieldOrderCnt", p->CurrPic.BottomFieldOrderCnt, poc)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  int32_t limit = sps->poc_type == 0 ? 1 << (sps->log2_max_poc_lsb - 1) : INT32_MAX;
  if (!is_idr(context) && (poc <= reference->poc || poc - reference->poc >= limit)) {
    violation(driver, "order-count: TopFieldOrderCnt is %d after %d", poc, reference->poc);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}

const struct coded_picture *reference_of(struct driver *driver, const struct context *context, bool replaces, bool *redo) {
  const struct stream *stream = &context->stream;
  const struct coded_picture *reference = &stream->last;
  bool idr = is_idr(context);
  if (stream->redo_allowed && !idr) {
    // The last picture is lost: the next may take its place, with the reference that it had.
    *redo = stream->previous.valid && !stream->last.idr && replaces;
    if (*redo) reference = &stream->previous;
  } else if (stream->redo_allowed) {
    *redo = stream->last.idr;
  }
  // Pictures that were on their way already are forgiven.
  if (stream->lost_seen && !idr && !*redo) {
    violation(driver, "overflow-ignored: a picture that refers to one whose coded data were lost");
    return NULL;
  }
  return reference;
}

VAStatus check_picture(struct driver *driver, struct context *context, bool *redo) {
  const struct stream *stream = &context->stream;
  uint32_t maximum = 1u << context->picture.sps.log2_max_frame_num;
  bool replaces = context->picture.parameters.frame_num == (stream->previous.frame_num + 1) % maximum;
  const struct coded_picture *reference = reference_of(driver, context, replaces, redo);
  if (!reference) return VA_STATUS_ERROR_INVALID_PARAMETER;
  VAStatus status = check_surfaces(driver, context, reference);
  if (status == VA_STATUS_SUCCESS) status = check_tools(driver, context);
  if (status == VA_STATUS_SUCCESS) status = check_order(driver, context, reference);
  if (status == VA_STATUS_SUCCESS) status = check_references(driver, context, reference);
  return status;
}
