// Video4Linux2: request codes and flags are macros, which Swift does not see.
#ifndef NIGHTJAR_V4L2_H
#define NIGHTJAR_V4L2_H

#include <linux/videodev2.h>

// ioctl(2) without its variadic last argument.
int nightjar_ioctl(int descriptor, unsigned long request, void *argument);

// VIDIOC_G_EXT_CTRLS, VIDIOC_S_EXT_CTRLS and VIDIOC_QUERYMENU of one control, whose structures are packed and do not
// reach Swift. 0, or -1 with errno. `is_wide` is for 64-bit controls. A menu item is a name of 32 bytes at most, or
// a number for an integer menu.
int nightjar_control_value(int descriptor, __u32 identifier, int is_wide, __s64 *value);
int nightjar_set_control(int descriptor, __u32 identifier, int is_wide, __s64 value);
int nightjar_menu_item(int descriptor, __u32 identifier, __u32 index, __u8 name[32], __s64 *value);

// UVCIOC_CTRL_QUERY with UVC_SET_CUR: sets a control of a webcam's extension unit. 0, or -1 with errno.
int nightjar_uvc_set(int descriptor, __u8 unit, __u8 selector, __u8 *data, __u16 size);

static const unsigned long nightjar_VIDIOC_QUERYCAP = VIDIOC_QUERYCAP;
static const unsigned long nightjar_VIDIOC_ENUM_FMT = VIDIOC_ENUM_FMT;
static const unsigned long nightjar_VIDIOC_ENUM_FRAMESIZES = VIDIOC_ENUM_FRAMESIZES;
static const unsigned long nightjar_VIDIOC_ENUM_FRAMEINTERVALS = VIDIOC_ENUM_FRAMEINTERVALS;
static const unsigned long nightjar_VIDIOC_TRY_FMT = VIDIOC_TRY_FMT;
static const unsigned long nightjar_VIDIOC_G_FMT = VIDIOC_G_FMT;
static const unsigned long nightjar_VIDIOC_S_FMT = VIDIOC_S_FMT;
static const unsigned long nightjar_VIDIOC_G_PARM = VIDIOC_G_PARM;
static const unsigned long nightjar_VIDIOC_S_PARM = VIDIOC_S_PARM;
static const unsigned long nightjar_VIDIOC_G_STD = VIDIOC_G_STD;
static const unsigned long nightjar_VIDIOC_QUERYSTD = VIDIOC_QUERYSTD;
static const unsigned long nightjar_VIDIOC_G_DV_TIMINGS = VIDIOC_G_DV_TIMINGS;
static const unsigned long nightjar_VIDIOC_S_DV_TIMINGS = VIDIOC_S_DV_TIMINGS;
static const unsigned long nightjar_VIDIOC_QUERY_DV_TIMINGS = VIDIOC_QUERY_DV_TIMINGS;
static const unsigned long nightjar_VIDIOC_G_INPUT = VIDIOC_G_INPUT;
static const unsigned long nightjar_VIDIOC_SUBSCRIBE_EVENT = VIDIOC_SUBSCRIBE_EVENT;
static const unsigned long nightjar_VIDIOC_DQEVENT = VIDIOC_DQEVENT;
static const unsigned long nightjar_VIDIOC_REQBUFS = VIDIOC_REQBUFS;
static const unsigned long nightjar_VIDIOC_QUERYBUF = VIDIOC_QUERYBUF;
static const unsigned long nightjar_VIDIOC_QBUF = VIDIOC_QBUF;
static const unsigned long nightjar_VIDIOC_DQBUF = VIDIOC_DQBUF;
static const unsigned long nightjar_VIDIOC_EXPBUF = VIDIOC_EXPBUF;
static const unsigned long nightjar_VIDIOC_QUERYCTRL = VIDIOC_QUERYCTRL;
static const unsigned long nightjar_VIDIOC_G_CTRL = VIDIOC_G_CTRL;
static const unsigned long nightjar_VIDIOC_S_CTRL = VIDIOC_S_CTRL;
static const unsigned long nightjar_VIDIOC_STREAMON = VIDIOC_STREAMON;
static const unsigned long nightjar_VIDIOC_STREAMOFF = VIDIOC_STREAMOFF;

static const __u32 nightjar_V4L2_CAP_VIDEO_CAPTURE = V4L2_CAP_VIDEO_CAPTURE;
static const __u32 nightjar_V4L2_CAP_VIDEO_CAPTURE_MPLANE = V4L2_CAP_VIDEO_CAPTURE_MPLANE;
static const __u32 nightjar_V4L2_CAP_VIDEO_OUTPUT = V4L2_CAP_VIDEO_OUTPUT;
static const __u32 nightjar_V4L2_CAP_VIDEO_OUTPUT_MPLANE = V4L2_CAP_VIDEO_OUTPUT_MPLANE;
static const __u32 nightjar_V4L2_CAP_VIDEO_M2M = V4L2_CAP_VIDEO_M2M;
static const __u32 nightjar_V4L2_CAP_VIDEO_M2M_MPLANE = V4L2_CAP_VIDEO_M2M_MPLANE;
static const __u32 nightjar_V4L2_CAP_META_CAPTURE = V4L2_CAP_META_CAPTURE;
static const __u32 nightjar_V4L2_CAP_STREAMING = V4L2_CAP_STREAMING;
static const __u32 nightjar_V4L2_CAP_IO_MC = V4L2_CAP_IO_MC;
static const __u32 nightjar_V4L2_CAP_DEVICE_CAPS = V4L2_CAP_DEVICE_CAPS;
static const __u32 nightjar_V4L2_CAP_TIMEPERFRAME = V4L2_CAP_TIMEPERFRAME;

static const __u32 nightjar_V4L2_PIX_FMT_PRIV_MAGIC = V4L2_PIX_FMT_PRIV_MAGIC;

static const __u32 nightjar_V4L2_PIX_FMT_GREY = V4L2_PIX_FMT_GREY;
static const __u32 nightjar_V4L2_PIX_FMT_RGB24 = V4L2_PIX_FMT_RGB24;
static const __u32 nightjar_V4L2_PIX_FMT_RGB565 = V4L2_PIX_FMT_RGB565;

static const __u32 nightjar_V4L2_BUF_FLAG_ERROR = V4L2_BUF_FLAG_ERROR;
static const __u32 nightjar_V4L2_BUF_FLAG_TIMESTAMP_MASK = V4L2_BUF_FLAG_TIMESTAMP_MASK;
static const __u32 nightjar_V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;

static const __u32 nightjar_V4L2_EVENT_SOURCE_CHANGE = V4L2_EVENT_SOURCE_CHANGE;
static const __u32 nightjar_V4L2_EVENT_SRC_CH_RESOLUTION = V4L2_EVENT_SRC_CH_RESOLUTION;

static const __u64 nightjar_V4L2_STD_525_60 = V4L2_STD_525_60;

static const unsigned int nightjar_V4L2_CID_HFLIP = V4L2_CID_HFLIP;
static const unsigned int nightjar_V4L2_CID_VFLIP = V4L2_CID_VFLIP;
static const unsigned int nightjar_V4L2_CID_ROTATE = V4L2_CID_ROTATE;
static const unsigned int nightjar_V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME = V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME;
static const unsigned int nightjar_V4L2_CID_MPEG_VIDEO_BITRATE = V4L2_CID_MPEG_VIDEO_BITRATE;
static const unsigned int nightjar_V4L2_CID_CAMERA_SENSOR_ROTATION = V4L2_CID_CAMERA_SENSOR_ROTATION;
static const unsigned int nightjar_V4L2_CTRL_FLAG_DISABLED = V4L2_CTRL_FLAG_DISABLED;
static const unsigned int nightjar_V4L2_CTRL_FLAG_READ_ONLY = V4L2_CTRL_FLAG_READ_ONLY;
static const unsigned int nightjar_V4L2_CTRL_FLAG_INACTIVE = V4L2_CTRL_FLAG_INACTIVE;
static const unsigned int nightjar_V4L2_CTRL_FLAG_GRABBED = V4L2_CTRL_FLAG_GRABBED;
static const unsigned int nightjar_V4L2_CTRL_FLAG_WRITE_ONLY = V4L2_CTRL_FLAG_WRITE_ONLY;
static const unsigned int nightjar_V4L2_CTRL_FLAG_VOLATILE = V4L2_CTRL_FLAG_VOLATILE;
static const unsigned int nightjar_V4L2_CTRL_FLAG_HAS_PAYLOAD = V4L2_CTRL_FLAG_HAS_PAYLOAD;
static const unsigned int nightjar_V4L2_CTRL_FLAG_NEXT_CTRL = V4L2_CTRL_FLAG_NEXT_CTRL;

// Controls with an automatic mode, each with the control that switches this mode.
static const unsigned int nightjar_V4L2_CID_BRIGHTNESS = V4L2_CID_BRIGHTNESS;
static const unsigned int nightjar_V4L2_CID_AUTOBRIGHTNESS = V4L2_CID_AUTOBRIGHTNESS;
static const unsigned int nightjar_V4L2_CID_HUE = V4L2_CID_HUE;
static const unsigned int nightjar_V4L2_CID_HUE_AUTO = V4L2_CID_HUE_AUTO;
static const unsigned int nightjar_V4L2_CID_GAIN = V4L2_CID_GAIN;
static const unsigned int nightjar_V4L2_CID_AUTOGAIN = V4L2_CID_AUTOGAIN;
static const unsigned int nightjar_V4L2_CID_CHROMA_GAIN = V4L2_CID_CHROMA_GAIN;
static const unsigned int nightjar_V4L2_CID_CHROMA_AGC = V4L2_CID_CHROMA_AGC;
static const unsigned int nightjar_V4L2_CID_AUTO_WHITE_BALANCE = V4L2_CID_AUTO_WHITE_BALANCE;
static const unsigned int nightjar_V4L2_CID_AUTO_N_PRESET_WHITE_BALANCE = V4L2_CID_AUTO_N_PRESET_WHITE_BALANCE;
static const unsigned int nightjar_V4L2_CID_WHITE_BALANCE_TEMPERATURE = V4L2_CID_WHITE_BALANCE_TEMPERATURE;
static const unsigned int nightjar_V4L2_CID_RED_BALANCE = V4L2_CID_RED_BALANCE;
static const unsigned int nightjar_V4L2_CID_BLUE_BALANCE = V4L2_CID_BLUE_BALANCE;
static const unsigned int nightjar_V4L2_CID_EXPOSURE = V4L2_CID_EXPOSURE;
static const unsigned int nightjar_V4L2_CID_EXPOSURE_AUTO = V4L2_CID_EXPOSURE_AUTO;
static const unsigned int nightjar_V4L2_CID_EXPOSURE_ABSOLUTE = V4L2_CID_EXPOSURE_ABSOLUTE;
static const unsigned int nightjar_V4L2_CID_EXPOSURE_AUTO_PRIORITY = V4L2_CID_EXPOSURE_AUTO_PRIORITY;
static const unsigned int nightjar_V4L2_CID_IRIS_ABSOLUTE = V4L2_CID_IRIS_ABSOLUTE;
static const unsigned int nightjar_V4L2_CID_FOCUS_AUTO = V4L2_CID_FOCUS_AUTO;
static const unsigned int nightjar_V4L2_CID_FOCUS_ABSOLUTE = V4L2_CID_FOCUS_ABSOLUTE;
static const unsigned int nightjar_V4L2_CID_FOCUS_RELATIVE = V4L2_CID_FOCUS_RELATIVE;

static const unsigned long nightjar_VIDIOC_QUERY_EXT_CTRL = VIDIOC_QUERY_EXT_CTRL;

static const unsigned int nightjar_VIDEO_MAX_PLANES = VIDEO_MAX_PLANES;
static const unsigned int nightjar_VIDEO_MAX_FRAME = VIDEO_MAX_FRAME;

#endif
