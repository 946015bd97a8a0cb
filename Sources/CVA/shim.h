// libva, its H.264 encoding, its video processing, and the import of DMA-BUFs.
#ifndef NIGHTJAR_CVA_SHIM_H
#define NIGHTJAR_CVA_SHIM_H

#include <va/va.h>
#include <va/va_drm.h>
#include <va/va_drmcommon.h>
#include <va/va_enc_h264.h>
#include <va/va_vpp.h>

#endif
