// libva, its H.264 and HEVC encoding, its video processing, and the import of DMA-BUFs.
#ifndef NIGHTJAR_CVA_SHIM_H
#define NIGHTJAR_CVA_SHIM_H

#include <stddef.h>
#include <stdint.h>
#include <va/va.h>
#include <va/va_drm.h>
#include <va/va_drmcommon.h>
#include <va/va_enc_h264.h>
#include <va/va_enc_hevc.h>
#include <va/va_vpp.h>

// vaSyncBuffer is there since libva 2.9; an older one answers as a driver does that lacks it.
static inline VAStatus nightjar_va_sync_buffer(VADisplay display, VABufferID buffer) {
#if VA_CHECK_VERSION(1, 9, 0)
  return vaSyncBuffer(display, buffer, VA_TIMEOUT_INFINITE);
#else
  (void)display, (void)buffer;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
#endif
}

// These attributes have names since libva 2.13; an older one passes them on to the driver all the same.
static const uint32_t nightjar_va_hevc_features = 50;     // VAConfigAttribEncHEVCFeatures
static const uint32_t nightjar_va_hevc_block_sizes = 51;  // VAConfigAttribEncHEVCBlockSizes

// The parameters of VAEncMiscParameterBufferType that this program sends, each with its type in front as the
// driver expects them in one piece of memory.
struct nightjar_va_rate_control {
  VAEncMiscParameterType type;
  VAEncMiscParameterRateControl value;
};
struct nightjar_va_hrd {
  VAEncMiscParameterType type;
  VAEncMiscParameterHRD value;
};
struct nightjar_va_frame_rate {
  VAEncMiscParameterType type;
  VAEncMiscParameterFrameRate value;
};
struct nightjar_va_quality {
  VAEncMiscParameterType type;
  VAEncMiscParameterBufferQualityLevel value;
};
_Static_assert(offsetof(struct nightjar_va_rate_control, value) == offsetof(VAEncMiscParameterBuffer, data), "layout");
_Static_assert(offsetof(struct nightjar_va_hrd, value) == offsetof(VAEncMiscParameterBuffer, data), "layout");
_Static_assert(offsetof(struct nightjar_va_frame_rate, value) == offsetof(VAEncMiscParameterBuffer, data), "layout");
_Static_assert(offsetof(struct nightjar_va_quality, value) == offsetof(VAEncMiscParameterBuffer, data), "layout");

// A linear NV12 picture in one DMA-BUF. Swift does not see the descriptor's arrays, whose types have no name.
static inline VADRMPRIMESurfaceDescriptor nightjar_va_nv12_descriptor(
    int fd, uint32_t bytes, uint32_t width, uint32_t height, uint32_t luma_offset, uint32_t luma_pitch,
    uint32_t chroma_offset, uint32_t chroma_pitch) {
  VADRMPRIMESurfaceDescriptor descriptor = {.fourcc = VA_FOURCC_NV12, .width = width, .height = height};
  descriptor.num_objects = 1;
  descriptor.objects[0].fd = fd;
  descriptor.objects[0].size = bytes;
  descriptor.objects[0].drm_format_modifier = 0;  // DRM_FORMAT_MOD_LINEAR
  descriptor.num_layers = 1;
  descriptor.layers[0].drm_format = VA_FOURCC_NV12;  // the same four characters as DRM_FORMAT_NV12
  descriptor.layers[0].num_planes = 2;
  descriptor.layers[0].offset[0] = luma_offset;
  descriptor.layers[0].offset[1] = chroma_offset;
  descriptor.layers[0].pitch[0] = luma_pitch;
  descriptor.layers[0].pitch[1] = chroma_pitch;
  return descriptor;
}

#endif
