// libavcodec's H.264 decoder, and hardware decoding by VA-API. Its error numbers and flags are macros that Swift does not see.
#ifndef NIGHTJAR_CAVCODEC_SHIM_H
#define NIGHTJAR_CAVCODEC_SHIM_H

#include <errno.h>
#include <stdint.h>
#include <libavcodec/avcodec.h>
#include <libavutil/error.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_drm.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>

static const int nightjar_av_error_again = AVERROR(EAGAIN);
static const int nightjar_av_error_end = AVERROR_EOF;
static const int nightjar_av_error_data = AVERROR_INVALIDDATA;
static const int nightjar_av_error_memory = AVERROR(ENOMEM);
static const int64_t nightjar_av_no_timestamp = AV_NOPTS_VALUE;
static const int nightjar_av_flag_unaligned = AV_CODEC_FLAG_UNALIGNED;
static const int nightjar_av_detects_errors = AV_EF_EXPLODE | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_CAREFUL;
static const int nightjar_av_tolerates_errors = AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_CAREFUL;
static const int nightjar_av_thread_slice = FF_THREAD_SLICE;
static const int nightjar_av_error_slices = FF_DECODE_ERROR_DECODE_SLICES;
static const int nightjar_av_frame_is_corrupt = AV_FRAME_FLAG_CORRUPT;
static const int nightjar_av_map_read = AV_HWFRAME_MAP_READ;
static const int nightjar_av_padding = AV_INPUT_BUFFER_PADDING_SIZE;
// Added to the level of what a context logs, of which the lowest eight bits count. It is above every level that is shown: the
// context logs nothing, and other users of libavcodec are not changed.
static const int nightjar_av_log_offset = 128;

// Error concealment of H.264 off: it paints over what is missing, and is there with one thread only.
static inline void nightjar_av_disable_concealment(AVCodecContext *context) {
  av_opt_set_int(context->priv_data, "enable_er", 0, 0);
}

#endif
