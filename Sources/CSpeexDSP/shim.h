#ifndef NIGHTJAR_CSPEEXDSP_SHIM_H
#define NIGHTJAR_CSPEEXDSP_SHIM_H

#include <speex/speex_resampler.h>

#endif
