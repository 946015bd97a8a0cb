#include "nightjar_v4l2.h"

#include <linux/usb/video.h>
#include <linux/uvcvideo.h>
#include <string.h>
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
_Static_assert(sizeof(struct v4l2_query_ext_ctrl) == 232, "v4l2_query_ext_ctrl");
_Static_assert(sizeof(struct v4l2_querymenu) == 44, "v4l2_querymenu");
_Static_assert(sizeof(struct v4l2_ext_control) == 20, "v4l2_ext_control");
_Static_assert(VIDEO_MAX_PLANES == 8, "VIDEO_MAX_PLANES");
// Buffers are kept as the bits of a 64-bit word.
_Static_assert(VIDEO_MAX_FRAME <= 64, "VIDEO_MAX_FRAME");

int nightjar_ioctl(int descriptor, unsigned long request, void *argument) {
  return ioctl(descriptor, request, argument);
}

static int one_control(int descriptor, unsigned long request, struct v4l2_ext_control *control) {
  struct v4l2_ext_controls controls;
  memset(&controls, 0, sizeof controls);
  controls.which = V4L2_CTRL_WHICH_CUR_VAL;
  controls.count = 1;
  controls.controls = control;
  return ioctl(descriptor, request, &controls);
}

int nightjar_control_value(int descriptor, __u32 identifier, int is_wide, __s64 *value) {
  struct v4l2_ext_control control;
  memset(&control, 0, sizeof control);
  control.id = identifier;
  int result = one_control(descriptor, VIDIOC_G_EXT_CTRLS, &control);
  if (result == 0) *value = is_wide ? control.value64 : control.value;
  return result;
}

int nightjar_set_control(int descriptor, __u32 identifier, int is_wide, __s64 value) {
  struct v4l2_ext_control control;
  memset(&control, 0, sizeof control);
  control.id = identifier;
  if (is_wide)
    control.value64 = value;
  else
    control.value = (__s32)value;
  return one_control(descriptor, VIDIOC_S_EXT_CTRLS, &control);
}

int nightjar_menu_item(int descriptor, __u32 identifier, __u32 index, __u8 name[32], __s64 *value) {
  struct v4l2_querymenu item;
  memset(&item, 0, sizeof item);
  item.id = identifier;
  item.index = index;
  int result = ioctl(descriptor, VIDIOC_QUERYMENU, &item);
  memcpy(name, item.name, sizeof item.name);
  *value = item.value;
  return result;
}

int nightjar_uvc_set(int descriptor, __u8 unit, __u8 selector, __u8 *data, __u16 size) {
  struct uvc_xu_control_query query;
  memset(&query, 0, sizeof query);
  query.unit = unit;
  query.selector = selector;
  query.query = UVC_SET_CUR;
  query.size = size;
  query.data = data;
  return ioctl(descriptor, UVCIOC_CTRL_QUERY, &query);
}
