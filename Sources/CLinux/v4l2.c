#include "nightjar_v4l2.h"

#include <sys/ioctl.h>

// The kernel's interface never changes; a header that disagrees is broken, and silence would corrupt memory.
_Static_assert(sizeof(struct v4l2_capability) == 104, "v4l2_capability");
_Static_assert(sizeof(struct v4l2_pix_format) == 48, "v4l2_pix_format");
_Static_assert(sizeof(struct v4l2_plane_pix_format) == 20, "v4l2_plane_pix_format");
_Static_assert(sizeof(struct v4l2_pix_format_mplane) == 192, "v4l2_pix_format_mplane");
_Static_assert(sizeof(((struct v4l2_format *)0)->fmt) == 200, "v4l2_format");
_Static_assert(sizeof(struct v4l2_streamparm) == 204, "v4l2_streamparm");
_Static_assert(sizeof(struct v4l2_exportbuffer) == 64, "v4l2_exportbuffer");
_Static_assert(sizeof(struct v4l2_event_subscription) == 32, "v4l2_event_subscription");
_Static_assert(sizeof(struct v4l2_dv_timings) == 132, "v4l2_dv_timings");
_Static_assert(VIDEO_MAX_PLANES == 8, "VIDEO_MAX_PLANES");
// Buffers are kept as the bits of a 64-bit word.
_Static_assert(VIDEO_MAX_FRAME <= 64, "VIDEO_MAX_FRAME");

int nightjar_ioctl(int descriptor, unsigned long request, void *argument) {
  return ioctl(descriptor, request, argument);
}
