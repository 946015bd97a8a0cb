// opus_encoder_ctl and opus_decoder_ctl are variadic, and their requests are macros.
#ifndef NIGHTJAR_COPUS_SHIM_H
#define NIGHTJAR_COPUS_SHIM_H

#include <opus/opus.h>

static inline int nightjar_opus_set_bitrate(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_BITRATE(value));
}
static inline int nightjar_opus_set_complexity(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(value));
}
static inline int nightjar_opus_set_inband_fec(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(value));
}
static inline int nightjar_opus_set_packet_loss(OpusEncoder *encoder, opus_int32 percent) {
  return opus_encoder_ctl(encoder, OPUS_SET_PACKET_LOSS_PERC(percent));
}
static inline int nightjar_opus_set_dtx(OpusEncoder *encoder, opus_int32 value) {
  return opus_encoder_ctl(encoder, OPUS_SET_DTX(value));
}
static inline int nightjar_opus_reset(OpusEncoder *encoder) { return opus_encoder_ctl(encoder, OPUS_RESET_STATE); }
static inline int nightjar_opus_lookahead(OpusEncoder *encoder, opus_int32 *samples) {
  return opus_encoder_ctl(encoder, OPUS_GET_LOOKAHEAD(samples));
}
static inline int nightjar_opus_decoder_reset(OpusDecoder *decoder) {
  return opus_decoder_ctl(decoder, OPUS_RESET_STATE);
}

#endif
