// Rate control: what CBR and VBR need from their first picture on, and what contradicts itself.
#include "strict.h"

static VAStatus refused(struct driver *driver, const char *what, uint32_t value) {
  violation(driver, "rate: %s (%u)", what, value);
  return VA_STATUS_ERROR_INVALID_PARAMETER;
}

uint32_t level_of(const struct context *context) {
  return context->picture.misc.has_level ? context->picture.misc.level : context->stream.level;
}

// No violation: a driver may have its level for good, though va.h lets it change.
VAStatus check_level(struct driver *driver, struct context *context) {
  bool changes = level_of(context) != context->stream.level;
  return driver->knobs.quality_fixed && changes && context->stream.pictures ? VA_STATUS_ERROR_INVALID_PARAMETER
                                                                            : VA_STATUS_SUCCESS;
}

VAStatus check_rate(struct driver *driver, struct context *context) {
  const struct picture *picture = &context->picture;
  uint32_t control = context->config->rate_control;
  if (control == VA_RC_CQP) {
    if (picture->misc.has_rate && picture->misc.rate.bits_per_second) {
      return refused(driver, "a bit rate for a context of constant QP", picture->misc.rate.bits_per_second);
    }
    return VA_STATUS_SUCCESS;
  }
  struct misc misc = misc_of(context);
  if (!misc.has_rate) return refused(driver, "no rate control buffer in CBR or VBR", control);
  if (!misc.has_hrd) return refused(driver, "no HRD buffer in CBR or VBR", control);
  if (!misc.has_frame_rate) return refused(driver, "no frame rate buffer in CBR or VBR", control);
  uint32_t bits = misc.rate.bits_per_second, percent = misc.rate.target_percentage;
  if (bits < 1000) return refused(driver, "bits_per_second", bits);
  if (percent > 100 || (control == VA_RC_VBR && percent == 0)) return refused(driver, "target_percentage", percent);
  if (misc.rate.min_qp > 51 || misc.rate.max_qp > 51) return refused(driver, "min_qp or max_qp", misc.rate.max_qp);
  if (misc.rate.max_qp && misc.rate.min_qp > misc.rate.max_qp) return refused(driver, "min_qp", misc.rate.min_qp);
  if (misc.hrd.buffer_size == 0) return refused(driver, "HRD buffer_size", 0);
  if (misc.hrd.initial_buffer_fullness > misc.hrd.buffer_size) {
    return refused(driver, "HRD initial_buffer_fullness above buffer_size", misc.hrd.initial_buffer_fullness);
  }
  // A numerator alone, or numerator in the low and denominator in the high half (va.h).
  uint32_t numerator = misc.frame_rate.framerate & 0xffff, denominator = misc.frame_rate.framerate >> 16;
  if (denominator == 0) denominator = 1;
  if (numerator == 0 || numerator / denominator > 1000) return refused(driver, "framerate", misc.frame_rate.framerate);
  // The sequence buffer has the highest rate (ffmpeg) or the target (GStreamer).
  uint32_t said = is_hevc(context) ? picture->hevc.sequence.bits_per_second : picture->sequence.bits_per_second;
  if (!picture->has_sequence || !picture->misc.has_rate) said = 0;
  int64_t target = (int64_t)bits * (percent ? percent : 100) / 100, margin = bits / 100 + 1;
  if (said && said != bits && (said < target - margin || said > target + margin) &&
      differs(driver, "rate", "the sequence buffer's bits_per_second", said, target)) {
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  return VA_STATUS_SUCCESS;
}
