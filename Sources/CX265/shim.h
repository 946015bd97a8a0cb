// x265.h needs the integer types first, and x265_encoder_open is a macro that
// carries the build number in the symbol's name.
#ifndef NIGHTJAR_CX265_SHIM_H
#define NIGHTJAR_CX265_SHIM_H

#include <stdint.h>
#include <x265.h>

static inline x265_encoder *nightjar_x265_encoder_open(x265_param *param) {
  return x265_encoder_open(param);
}

// x265 names its presets by text, and has no enumeration of picture types.
static const int nightjar_x265_build = X265_BUILD;
static const int nightjar_x265_csp_i420 = X265_CSP_I420;
static const int nightjar_x265_type_auto = X265_TYPE_AUTO;
static const int nightjar_x265_type_idr = X265_TYPE_IDR;
static const int nightjar_x265_log_none = X265_LOG_NONE;
static const int nightjar_x265_rc_cqp = X265_RC_CQP;

#endif
