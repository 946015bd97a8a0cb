// Contexts, and a picture's way from vaBeginPicture to vaEndPicture.
#include <stdlib.h>
#include <string.h>

#include "strict.h"

void picture_clear(struct picture *picture) {
  for (int i = 0; i < picture->packed_count; i++) free(picture->packed[i].data);
  memset(picture, 0, sizeof *picture);
  picture->input = VA_INVALID_ID;
}

static VAStatus create_context(VADriverContextP va, VAConfigID config_id, int width, int height, int flag,
                               VASurfaceID *targets, int count, VAContextID *id) {
  struct driver *driver = driver_of(va);
  const struct knobs *knobs = &driver->knobs;
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  pthread_mutex_lock(&driver->lock);
  struct config *config = object_find(driver, kind_config, config_id);
  VAStatus status = VA_STATUS_SUCCESS;
  bool encodes = config && config->entrypoint != VAEntrypointVideoProc;
  if (!config) {
    violation(driver, "bad-id: vaCreateContext with config %#x", config_id);
    status = VA_STATUS_ERROR_INVALID_CONFIG;
  } else if (lies_at(knobs, lie_context, config->entrypoint)) {
    status = VA_STATUS_ERROR_UNSUPPORTED_ENTRYPOINT;
  } else if (encodes && (width < 16 || height < 16 || (uint32_t)width > (knobs->max_width + 15) / 16 * 16 ||
                         (uint32_t)height > (knobs->max_height + 15) / 16 * 16)) {
    violation(driver, "size: context of %dx%d, the limit is %ux%u", width, height, knobs->max_width,
              knobs->max_height);
    status = VA_STATUS_ERROR_RESOLUTION_NOT_SUPPORTED;
  } else if (encodes && flag != VA_PROGRESSIVE) {
    violation(driver, "context-flag: %#x, VA_PROGRESSIVE is wanted", flag);
    status = VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  for (int i = 0; i < count && status == VA_STATUS_SUCCESS; i++) {
    if (object_find(driver, kind_surface, targets[i])) continue;
    violation(driver, "bad-id: vaCreateContext with surface %#x", targets[i]);
    status = VA_STATUS_ERROR_INVALID_SURFACE;
  }
  if (status == VA_STATUS_SUCCESS) {
    struct context *context = object_new(driver, kind_context, sizeof *context);
    context->config = config;
    context->width = (uint32_t)width;
    context->height = (uint32_t)height;
    picture_clear(&context->picture);
    config->contexts++;
    *id = context->object.id;
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

struct pending { VAContextID context; int count; };

static void count_pending(struct object *object, void *argument) {
  const struct buffer *buffer = (const struct buffer *)object;
  struct pending *pending = argument;
  if (buffer->context == pending->context && buffer->state == coded_pending) pending->count++;
}

void context_release(struct driver *driver, struct context *context) {
  const struct config *config = context->config;
  if (config->entrypoint != VAEntrypointVideoProc) {
    note(driver, "context %#x profile %d entry point %d rate control %#x packed %#x size %ux%u pictures %llu idr %llu "
                 "overflows %llu bytes %llu levels %llu between %llu last %u", context->object.id, config->profile,
         config->entrypoint, config->rate_control, config->packed, context->width, context->height,
         (unsigned long long)context->stream.pictures, (unsigned long long)context->stream.idrs,
         (unsigned long long)context->stream.overflows, (unsigned long long)context->stream.bytes,
         (unsigned long long)context->stream.levels, (unsigned long long)context->stream.levels_between,
         context->stream.level);
  }
  picture_clear(&context->picture);
  coder_close(context->coder);
  hevc_coder_close(context->hevc_coder);
  context->config->contexts--;
  object_free(driver, &context->object);
}

static VAStatus destroy_context(VADriverContextP va, VAContextID id) {
  struct driver *driver = driver_of(va);
  pthread_mutex_lock(&driver->lock);
  struct context *context = object_find(driver, kind_context, id);
  if (context) {
    struct surface *input = object_find(driver, kind_surface, context->picture.input);
    if (context->picture.begun && !was_lost(driver)) {
      violation(driver, "begun-not-ended: context %#x destroyed within a picture", id);
    }
    if (input) input->begun_by = VA_INVALID_ID;
    struct pending pending = {id, 0};
    object_each(driver, kind_buffer, count_pending, &pending);
    if (pending.count && !was_lost(driver)) {
      violation(driver, "context-in-flight: context %#x destroyed with %d pictures not synchronized", id,
                pending.count);
    }
    context_release(driver, context);
  } else {
    violation(driver, "bad-id: vaDestroyContext of %#x", id);
  }
  pthread_mutex_unlock(&driver->lock);
  return context ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_CONTEXT;
}

static VAStatus check_begin(struct driver *driver, const struct context *context, const struct surface *surface) {
  VASurfaceID id = surface->object.id;
  if (context->picture.begun || surface->begun_by != VA_INVALID_ID) {
    violation(driver, "begun-twice: vaBeginPicture on surface %#x within a picture", id);
    return VA_STATUS_ERROR_OPERATION_FAILED;
  }
  if (surface->derived) {
    violation(driver, "surface-mapped: vaBeginPicture on surface %#x with an image derived from it alive", id);
    return VA_STATUS_ERROR_SURFACE_BUSY;
  }
  if (surface->in_flight) {
    violation(driver, "surface-in-flight: vaBeginPicture on surface %#x before the last picture on it was synced", id);
    return VA_STATUS_ERROR_SURFACE_BUSY;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus begin_picture(VADriverContextP va, VAContextID context_id, VASurfaceID surface_id) {
  struct driver *driver = driver_of(va);
  control_poll();
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  hang(at_begin, frames_begun + 1, UINT64_MAX);
  pthread_mutex_lock(&driver->lock);
  struct context *context = object_find(driver, kind_context, context_id);
  struct surface *surface = object_find(driver, kind_surface, surface_id);
  VAStatus status = VA_STATUS_SUCCESS;
  bool encodes = context && context->config->entrypoint != VAEntrypointVideoProc;
  if (!context || !surface) {
    violation(driver, "bad-id: vaBeginPicture with context %#x, surface %#x", context_id, surface_id);
    status = context ? VA_STATUS_ERROR_INVALID_SURFACE : VA_STATUS_ERROR_INVALID_CONTEXT;
  } else {
    status = check_begin(driver, context, surface);
  }
  if (status == VA_STATUS_SUCCESS && encodes) {
    if (fails(at_lost, frames_begun + 1)) lose_device();
    if (injection.lost || fails(at_begin, frames_begun + 1)) {
      status = VA_STATUS_ERROR_OPERATION_FAILED;
    } else {
      surface->frame = ++frames_begun;
    }
  }
  if (status == VA_STATUS_SUCCESS) {
    picture_clear(&context->picture);
    context->picture.begun = true;
    context->picture.input = surface_id;
    surface->begun_by = context_id;
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus render_misc(struct driver *driver, struct picture *picture, const struct buffer *buffer) {
  const VAEncMiscParameterBuffer *misc = (const void *)buffer->data;
  uint32_t size = buffer->element_size - (uint32_t)sizeof *misc, wanted;
  if (buffer->element_size < sizeof *misc) size = 0;
  // Intel's driver keeps a part of them with the picture's parameters, which overwrite it.
  if (!picture->has_picture && !driver->knobs.misc_first) {
    violation(driver, "misc-order: miscellaneous parameter of type %d before the picture's parameters", misc->type);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  switch ((int)misc->type) {
    case VAEncMiscParameterTypeRateControl: wanted = sizeof picture->misc.rate; break;
    case VAEncMiscParameterTypeHRD: wanted = sizeof picture->misc.hrd; break;
    case VAEncMiscParameterTypeFrameRate: wanted = sizeof picture->misc.frame_rate; break;
    case VAEncMiscParameterTypeQualityLevel: wanted = sizeof(VAEncMiscParameterBufferQualityLevel); break;
    default:
      violation(driver, "misc-not-offered: miscellaneous parameter of type %d", misc->type);
      return VA_STATUS_ERROR_UNSUPPORTED_BUFFERTYPE;
  }
  if (size < wanted) {
    violation(driver, "buffer-size: miscellaneous parameter of type %d with %u bytes, needs %u", misc->type, size,
              wanted);
    return VA_STATUS_ERROR_INVALID_BUFFER;
  }
  switch ((int)misc->type) {
    case VAEncMiscParameterTypeRateControl:
      memcpy(&picture->misc.rate, misc->data, wanted);
      picture->misc.has_rate = true;
      break;
    case VAEncMiscParameterTypeHRD:
      memcpy(&picture->misc.hrd, misc->data, wanted);
      picture->misc.has_hrd = true;
      break;
    case VAEncMiscParameterTypeFrameRate:
      memcpy(&picture->misc.frame_rate, misc->data, wanted);
      picture->misc.has_frame_rate = true;
      break;
    default: {
      uint32_t level = ((const VAEncMiscParameterBufferQualityLevel *)(const void *)misc->data)->quality_level;
      if (level > driver->knobs.quality) {
        violation(driver, "quality-level: %u, the range ends at %u", level, driver->knobs.quality);
        return VA_STATUS_ERROR_INVALID_PARAMETER;
      }
      picture->misc.level = level;
      picture->misc.has_level = true;
    }
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus render_packed(struct driver *driver, struct context *context, const struct buffer *buffer) {
  struct picture *picture = &context->picture;
  struct packed *last = picture->packed_count ? &picture->packed[picture->packed_count - 1] : NULL;
  if (buffer->type == VAEncPackedHeaderParameterBufferType) {
    if (last && !last->has_data) {
      violation(driver, "packed-order: packed header parameters with no data after them");
      return VA_STATUS_ERROR_INVALID_PARAMETER;
    }
    if (picture->packed_count == max_packed) return VA_STATUS_ERROR_MAX_NUM_EXCEEDED;
    const VAEncPackedHeaderParameterBuffer *parameters = (const void *)buffer->data;
    last = &picture->packed[picture->packed_count++];
    *last = (struct packed){.type = parameters->type,
                            .bit_length = parameters->bit_length,
                            .escaped = parameters->has_emulation_bytes};
    return VA_STATUS_SUCCESS;
  }
  if (!last || last->has_data) {
    violation(driver, "packed-order: packed header data with no parameters before them");
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  last->has_data = true;
  last->size = buffer->element_size;
  last->data = malloc(last->size);
  memcpy(last->data, buffer->data, last->size);
  return VA_STATUS_SUCCESS;
}

static VAStatus render_one(struct driver *driver, struct context *context, const struct buffer *buffer) {
  struct picture *picture = &context->picture;
  bool hevc = is_hevc(context);
  int slice_limit = hevc ? 1 : max_slices;
  if (buffer->mapped) {
    violation(driver, "buffer-mapped: buffer %#x rendered while mapped", buffer->object.id);
    return VA_STATUS_ERROR_INVALID_BUFFER;
  }
  if (buffer->context != context->object.id) {
    violation(driver, "bad-id: buffer %#x was made for another context", buffer->object.id);
    return VA_STATUS_ERROR_INVALID_BUFFER;
  }
  switch ((int)buffer->type) {
    case VAEncSequenceParameterBufferType:
      if (hevc) memcpy(&picture->hevc.sequence, buffer->data, sizeof picture->hevc.sequence);
      else memcpy(&picture->sequence, buffer->data, sizeof picture->sequence);
      picture->sequence_count++;
      picture->has_sequence = true;
      return VA_STATUS_SUCCESS;
    case VAEncPictureParameterBufferType:
      if (hevc) memcpy(&picture->hevc.parameters, buffer->data, sizeof picture->hevc.parameters);
      else memcpy(&picture->parameters, buffer->data, sizeof picture->parameters);
      picture->picture_count++;
      picture->has_picture = true;
      return VA_STATUS_SUCCESS;
    case VAEncSliceParameterBufferType:
      if (picture->slice_count == slice_limit) {
        violation(driver, "slice-count: more than %d slices", slice_limit);
        return VA_STATUS_ERROR_MAX_NUM_EXCEEDED;
      }
      if (hevc) memcpy(&picture->hevc.slice, buffer->data, sizeof picture->hevc.slice);
      else memcpy(&picture->slices[picture->slice_count], buffer->data, sizeof *picture->slices);
      picture->slice_count++;
      return VA_STATUS_SUCCESS;
    case VAEncMiscParameterBufferType: return render_misc(driver, picture, buffer);
    case VAEncPackedHeaderParameterBufferType:
    case VAEncPackedHeaderDataBufferType: return render_packed(driver, context, buffer);
    case VAProcPipelineParameterBufferType:
      memcpy(&picture->pipeline, buffer->data, sizeof picture->pipeline);
      picture->has_pipeline = true;
      return VA_STATUS_SUCCESS;
    default:
      violation(driver, "buffer-type: %d given to vaRenderPicture", buffer->type);
      return VA_STATUS_ERROR_UNSUPPORTED_BUFFERTYPE;
  }
}

static VAStatus render_picture(VADriverContextP va, VAContextID context_id, VABufferID *list, int count) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  hang(at_render, frames_begun, UINT64_MAX);
  pthread_mutex_lock(&driver->lock);
  struct context *context = object_find(driver, kind_context, context_id);
  VAStatus status = VA_STATUS_SUCCESS;
  if (!context || !context->picture.begun) {
    violation(driver, "not-begun: vaRenderPicture on context %#x", context_id);
    status = context ? VA_STATUS_ERROR_OPERATION_FAILED : VA_STATUS_ERROR_INVALID_CONTEXT;
  } else if (fails(at_render, frames_begun)) {
    status = VA_STATUS_ERROR_OPERATION_FAILED;
  }
  for (int i = 0; i < count && status == VA_STATUS_SUCCESS; i++) {
    struct buffer *buffer = object_find(driver, kind_buffer, list[i]);
    if (buffer) {
      status = render_one(driver, context, buffer);
    } else {
      violation(driver, "bad-id: vaRenderPicture of buffer %#x", list[i]);
      status = VA_STATUS_ERROR_INVALID_BUFFER;
    }
  }
  if (status != VA_STATUS_SUCCESS && context) context->picture.bad = true;
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus encode_checked(struct driver *driver, struct context *context, uint64_t frame) {
  bool redo = false;
  if (lies_at(&driver->knobs, lie_encode, context->config->entrypoint)) return VA_STATUS_ERROR_UNIMPLEMENTED;
  bool hevc = is_hevc(context);
  VAStatus status = check_complete(driver, context);
  if (status == VA_STATUS_SUCCESS) status = check_rate(driver, context);
  if (status == VA_STATUS_SUCCESS) status = check_level(driver, context);
  if (status == VA_STATUS_SUCCESS) status = (hevc ? check_hevc_sequence : check_sequence)(driver, context);
  if (status == VA_STATUS_SUCCESS) status = (hevc ? check_hevc_picture : check_picture)(driver, context, &redo);
  if (status == VA_STATUS_SUCCESS) status = (hevc ? check_hevc_slice : check_slices)(driver, context, redo);
  if (status == VA_STATUS_SUCCESS) status = check_packed(driver, context);
  if (status == VA_STATUS_SUCCESS && fails(at_end, frame)) status = VA_STATUS_ERROR_OPERATION_FAILED;
  if (status == VA_STATUS_SUCCESS) status = (hevc ? encode_hevc : encode_picture)(driver, context, redo, frame);
  return status;
}

static VAStatus end_picture(VADriverContextP va, VAContextID context_id) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  hang(at_end, frames_begun, UINT64_MAX);
  pthread_mutex_lock(&driver->lock);
  struct context *context = object_find(driver, kind_context, context_id);
  if (context && context->config->entrypoint == VAEntrypointVideoProc) {
    pthread_mutex_unlock(&driver->lock);
    hang(at_process, frames_begun + 1, UINT64_MAX);
    pthread_mutex_lock(&driver->lock);
  }
  VAStatus status;
  if (!context || !context->picture.begun) {
    violation(driver, "not-begun: vaEndPicture on context %#x", context_id);
    status = context ? VA_STATUS_ERROR_OPERATION_FAILED : VA_STATUS_ERROR_INVALID_CONTEXT;
  } else {
    struct surface *input = object_find(driver, kind_surface, context->picture.input);
    input->begun_by = VA_INVALID_ID;
    if (context->picture.bad) {
      status = VA_STATUS_ERROR_INVALID_PARAMETER;  // a buffer of it was refused before
    } else if (context->config->entrypoint == VAEntrypointVideoProc) {
      status = process_picture(driver, context);
    } else {
      status = encode_checked(driver, context, input->frame);
    }
    picture_clear(&context->picture);
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

void picture_functions(struct VADriverVTable *table) {
  table->vaCreateContext = create_context;
  table->vaDestroyContext = destroy_context;
  table->vaBeginPicture = begin_picture;
  table->vaRenderPicture = render_picture;
  table->vaEndPicture = end_picture;
}
