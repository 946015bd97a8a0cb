// Video processing: rotation and mirroring of NV12, no scaling, no filters.
#include <string.h>

#include "strict.h"

VAStatus process_filters(VADriverContextP va, VAContextID context, VAProcFilterType *list, unsigned int *count) {
  (void)va, (void)context, (void)list;
  *count = 0;
  return VA_STATUS_SUCCESS;
}

VAStatus process_filter_caps(VADriverContextP va, VAContextID context, VAProcFilterType type, void *caps,
                             unsigned int *count) {
  (void)va, (void)context, (void)type, (void)caps, (void)count;
  return VA_STATUS_ERROR_UNSUPPORTED_FILTER;
}

VAStatus process_caps(VADriverContextP va, VAContextID id, VABufferID *filters, unsigned int count,
                      VAProcPipelineCaps *caps) {
  struct driver *driver = driver_of(va);
  (void)filters;
  pthread_mutex_lock(&driver->lock);
  struct context *context = object_find(driver, kind_context, id);
  bool good = context && context->config->entrypoint == VAEntrypointVideoProc && count == 0;
  if (!good) violation(driver, "process-caps: context %#x with %u filters", id, count);
  pthread_mutex_unlock(&driver->lock);
  if (!good) return VA_STATUS_ERROR_INVALID_CONTEXT;
  static VAProcColorStandardType standards[] = {VAProcColorStandardBT601, VAProcColorStandardBT709};
  static uint32_t formats[] = {VA_FOURCC_NV12};
  memset(caps, 0, sizeof *caps);
  caps->rotation_flags = 1 << VA_ROTATION_NONE | 1 << VA_ROTATION_90 | 1 << VA_ROTATION_180 | 1 << VA_ROTATION_270;
  caps->mirror_flags = driver->knobs.process_mirrors ? VA_MIRROR_HORIZONTAL | VA_MIRROR_VERTICAL : VA_MIRROR_NONE;
  caps->input_color_standards = caps->output_color_standards = standards;
  caps->num_input_color_standards = caps->num_output_color_standards = 2;
  caps->input_pixel_format = caps->output_pixel_format = formats;
  caps->num_input_pixel_formats = caps->num_output_pixel_formats = 1;
  caps->min_input_width = caps->min_input_height = caps->min_output_width = caps->min_output_height = 16;
  caps->max_input_width = caps->max_output_width = driver->knobs.max_width;
  caps->max_input_height = caps->max_output_height = driver->knobs.max_height;
  return VA_STATUS_SUCCESS;
}

static VARectangle region_of(const VARectangle *given, const struct surface *surface) {
  if (given) return *given;
  return (VARectangle){0, 0, (uint16_t)surface->width, (uint16_t)surface->height};
}

static bool lies_in(VARectangle r, const struct surface *surface) {
  return r.x >= 0 && r.y >= 0 && r.width && r.height && !((r.x | r.y | r.width | r.height) & 1) &&
         (uint32_t)r.x + r.width <= surface->width && (uint32_t)r.y + r.height <= surface->height;
}

struct plane { uint8_t *data; uint32_t pitch, width, height; };

// Mirror first, then rotate clockwise, as ffmpeg's transpose_vaapi relies on; va_vpp.h has it the other way round, which
// is the knob. Pixels of one byte (luma) or two (chroma).
static void turn(struct plane from, struct plane to, uint32_t rotation, uint32_t mirror, bool mirrors_last,
                 uint32_t bytes) {
  for (uint32_t y = 0; y < to.height; y++) {
    for (uint32_t x = 0; x < to.width; x++) {
      uint32_t tx = x, ty = y;
      if (mirrors_last && mirror & VA_MIRROR_HORIZONTAL) tx = to.width - 1 - tx;
      if (mirrors_last && mirror & VA_MIRROR_VERTICAL) ty = to.height - 1 - ty;
      uint32_t sx = tx, sy = ty;
      if (rotation == VA_ROTATION_90) sx = ty, sy = from.height - 1 - tx;
      if (rotation == VA_ROTATION_180) sx = from.width - 1 - tx, sy = from.height - 1 - ty;
      if (rotation == VA_ROTATION_270) sx = from.width - 1 - ty, sy = tx;
      if (!mirrors_last && mirror & VA_MIRROR_HORIZONTAL) sx = from.width - 1 - sx;
      if (!mirrors_last && mirror & VA_MIRROR_VERTICAL) sy = from.height - 1 - sy;
      memcpy(to.data + (size_t)y * to.pitch + x * bytes, from.data + (size_t)sy * from.pitch + sx * bytes, bytes);
    }
  }
}

static struct plane plane_of(const struct surface *surface, VARectangle r, int plane) {
  uint32_t pitch = plane ? surface->chroma_pitch : surface->pitch, step = plane ? 2 : 1;
  uint8_t *data = (plane ? surface->chroma : surface->luma) + (uint32_t)r.y / step * pitch + r.x;
  return (struct plane){data, pitch, r.width / step, r.height / step};
}

static bool mirrors_not_offered(struct driver *driver, uint32_t mirror) {
  if (driver->knobs.process_mirrors || !mirror) return false;
  violation(driver, "process-not-offered: mirror %#x", mirror);
  return true;
}

VAStatus process_picture(struct driver *driver, struct context *context) {
  struct picture *picture = &context->picture;
  const VAProcPipelineParameterBuffer *p = &picture->pipeline;
  struct surface *output = object_find(driver, kind_surface, picture->input);
  if (!picture->has_pipeline) {
    violation(driver, "process-missing: no pipeline parameter buffer");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  struct surface *input = object_find(driver, kind_surface, p->surface);
  if (!input || input == output) {
    violation(driver, "process-surface: input %#x, output %#x", p->surface, picture->input);
    return VA_STATUS_ERROR_INVALID_SURFACE;
  }
  if (input->derived || input->begun_by != VA_INVALID_ID) {
    violation(driver, "surface-mapped: processing of surface %#x with an image derived from it alive", p->surface);
    return VA_STATUS_ERROR_SURFACE_BUSY;
  }
  if (p->num_filters || p->rotation_state > VA_ROTATION_270 ||
      p->mirror_state & ~(uint32_t)(VA_MIRROR_HORIZONTAL | VA_MIRROR_VERTICAL) || p->blend_state) {
    violation(driver, "process-not-offered: %u filters, rotation %u, mirror %#x", p->num_filters, p->rotation_state,
              p->mirror_state);
    return VA_STATUS_ERROR_UNSUPPORTED_FILTER;
  }
  VARectangle from = region_of(p->surface_region, input), to = region_of(p->output_region, output);
  if (!lies_in(from, input) || !lies_in(to, output)) {
    violation(driver, "process-region: %ux%u+%d+%d of %ux%u to %ux%u+%d+%d of %ux%u", from.width, from.height, from.x,
              from.y, input->width, input->height, to.width, to.height, to.x, to.y, output->width, output->height);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  bool sideways = p->rotation_state == VA_ROTATION_90 || p->rotation_state == VA_ROTATION_270;
  if (to.width != (sideways ? from.height : from.width) || to.height != (sideways ? from.width : from.height)) {
    violation(driver, "process-size: %ux%u to %ux%u at rotation %u: scaling is not offered", from.width, from.height,
              to.width, to.height, p->rotation_state);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  if (mirrors_not_offered(driver, p->mirror_state)) return VA_STATUS_ERROR_UNSUPPORTED_FILTER;
  // Counted with the picture that is encoded from it.
  if (fails(at_process, frames_begun + 1)) return VA_STATUS_ERROR_OPERATION_FAILED;
  uint32_t rotation = p->rotation_state;
  if (driver->knobs.process_wrong && sideways) rotation ^= VA_ROTATION_90 ^ VA_ROTATION_270;
  surface_access(input, true, false);
  surface_access(output, true, true);
  for (int plane = 0; plane < 2; plane++) {
    turn(plane_of(input, from, plane), plane_of(output, to, plane), rotation, p->mirror_state,
         driver->knobs.process_mirrors_last, plane ? 2 : 1);
  }
  surface_access(output, false, true);
  surface_access(input, false, false);
  output->in_flight = true;
  output->ready_ns = now_ns();
  return VA_STATUS_SUCCESS;
}
