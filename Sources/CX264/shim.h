// x264.h needs the integer types first, and x264_encoder_open is a macro that
// carries the build number in the symbol's name.
#ifndef NIGHTJAR_CX264_SHIM_H
#define NIGHTJAR_CX264_SHIM_H

#include <stdint.h>
#include <x264.h>

static inline x264_t *nightjar_x264_encoder_open(x264_param_t *param) {
  return x264_encoder_open(param);
}

static const int nightjar_x264_build = X264_BUILD;
static const int nightjar_x264_csp_nv12 = X264_CSP_NV12;
static const int nightjar_x264_keyint_infinite = X264_KEYINT_MAX_INFINITE;

#endif
