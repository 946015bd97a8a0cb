// Buffers: parameters, packed headers, coded data, images' memory.
#include <stdlib.h>
#include <string.h>

#include "strict.h"

struct buffer *buffer_new(struct driver *driver, VABufferType type, uint32_t size, uint32_t count) {
  struct buffer *buffer = object_new(driver, kind_buffer, sizeof *buffer);
  buffer->type = type;
  buffer->element_size = size;
  buffer->count = count;
  buffer->context = buffer->surface = buffer->image = VA_INVALID_ID;
  if (size) buffer->data = calloc(count, size);
  if (type == VAEncCodedBufferType) {
    buffer->segments = calloc((size_t)driver->knobs.segments, sizeof *buffer->segments);
  }
  return buffer;
}

void buffer_release(struct driver *driver, struct buffer *buffer) {
  free(buffer->data);
  free(buffer->segments);
  object_free(driver, &buffer->object);
}

// The size that a parameter buffer's type has; 0: any.
static uint32_t fixed_size(VABufferType type, bool hevc) {
  switch ((int)type) {
    case VAEncSequenceParameterBufferType:
      return hevc ? sizeof(VAEncSequenceParameterBufferHEVC) : sizeof(VAEncSequenceParameterBufferH264);
    case VAEncPictureParameterBufferType:
      return hevc ? sizeof(VAEncPictureParameterBufferHEVC) : sizeof(VAEncPictureParameterBufferH264);
    case VAEncSliceParameterBufferType:
      return hevc ? sizeof(VAEncSliceParameterBufferHEVC) : sizeof(VAEncSliceParameterBufferH264);
    case VAEncPackedHeaderParameterBufferType: return sizeof(VAEncPackedHeaderParameterBuffer);
    case VAProcPipelineParameterBufferType: return sizeof(VAProcPipelineParameterBuffer);
    default: return 0;
  }
}

static VAStatus create_buffer(VADriverContextP va, VAContextID context_id, VABufferType type, unsigned int size,
                              unsigned int count, void *data, VABufferID *id) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  pthread_mutex_lock(&driver->lock);
  struct context *context = object_find(driver, kind_context, context_id);
  VAStatus status = VA_STATUS_SUCCESS;
  uint32_t fixed = fixed_size(type, context && is_hevc(context));
  bool known = fixed || type == VAEncCodedBufferType || type == VAEncPackedHeaderDataBufferType ||
               type == VAEncMiscParameterBufferType;
  if (!context) {
    violation(driver, "bad-id: vaCreateBuffer with context %#x", context_id);
    status = VA_STATUS_ERROR_INVALID_CONTEXT;
  } else if (!known || (type == VAProcPipelineParameterBufferType) !=
                           (context->config->entrypoint == VAEntrypointVideoProc)) {
    violation(driver, "buffer-type: %d is none of this entry point's", type);
    status = VA_STATUS_ERROR_UNSUPPORTED_BUFFERTYPE;
  } else if (size == 0 || count != 1 || size > 256u << 20) {
    violation(driver, "buffer-size: buffer of type %d with %u elements of %u bytes", type, count, size);
    status = VA_STATUS_ERROR_INVALID_PARAMETER;
  } else if (fixed && size != fixed) {
    violation(driver, "buffer-size: buffer of type %d with %u bytes, its structure has %u", type, size, fixed);
    status = VA_STATUS_ERROR_INVALID_PARAMETER;
  } else {
    struct buffer *buffer = buffer_new(driver, type, size, count);
    if (data) memcpy(buffer->data, data, size);
    buffer->context = context_id;
    *id = buffer->object.id;
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus set_elements(VADriverContextP va, VABufferID id, unsigned int count) {
  (void)va, (void)id, (void)count;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}

// The coded data as a chain of segments, as many as the knob says and the data allow.
static void make_segments(struct driver *driver, struct buffer *buffer) {
  uint32_t count = (uint32_t)driver->knobs.segments, share = buffer->filled / count;
  if (share == 0) count = 1, share = buffer->filled;
  for (uint32_t i = 0; i < count; i++) {
    VACodedBufferSegment *segment = &buffer->segments[i];
    segment->buf = buffer->data + i * share;
    segment->size = i + 1 == count ? buffer->filled - i * share : share;
    segment->next = i + 1 == count ? NULL : segment + 1;
    segment->status = buffer->segments[0].status;
    segment->bit_offset = 0;
  }
}

static VAStatus map_image(struct driver *driver, struct buffer *buffer) {
  struct surface *surface = object_find(driver, kind_surface, buffer->surface);
  if (surface && (surface->in_flight || surface->begun_by != VA_INVALID_ID)) {
    violation(driver, "surface-in-flight: image of surface %#x mapped while the device works on it", buffer->surface);
    return VA_STATUS_ERROR_SURFACE_BUSY;
  }
  return VA_STATUS_SUCCESS;
}

static VAStatus map_buffer(VADriverContextP va, VABufferID id, void **data) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  hang(at_map, frames_begun, UINT64_MAX);
  pthread_mutex_lock(&driver->lock);
  struct buffer *buffer = object_find(driver, kind_buffer, id);
  VAStatus status = VA_STATUS_SUCCESS;
  if (!buffer) {
    violation(driver, "bad-id: vaMapBuffer of %#x", id);
    status = VA_STATUS_ERROR_INVALID_BUFFER;
  } else if (buffer->mapped) {
    violation(driver, "mapped-twice: buffer %#x", id);
    status = VA_STATUS_ERROR_INVALID_BUFFER;
  } else if (buffer->type == VAImageBufferType) {
    status = map_image(driver, buffer);
    *data = buffer->data;
  } else if (buffer->type == VAEncCodedBufferType) {
    if (buffer->state != coded_ready) {
      violation(driver, "coded-not-synced: coded buffer %#x mapped %s", id,
                buffer->state == coded_pending ? "before sync" : "with no picture in it");
      status = VA_STATUS_ERROR_SURFACE_BUSY;
    } else if (fails(at_map, buffer->frame)) {
      status = VA_STATUS_ERROR_OPERATION_FAILED;
    } else {
      make_segments(driver, buffer);
      struct context *context = object_find(driver, kind_context, buffer->context);
      bool overflow = buffer->segments[0].status & VA_CODED_BUF_STATUS_SLICE_OVERFLOW_MASK;
      if (context && overflow) context->stream.lost_seen = context->stream.lost;
      *data = buffer->segments;
    }
  } else {
    *data = buffer->data;
  }
  if (status == VA_STATUS_SUCCESS) buffer->mapped = true;
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus unmap_buffer(VADriverContextP va, VABufferID id) {
  struct driver *driver = driver_of(va);
  pthread_mutex_lock(&driver->lock);
  struct buffer *buffer = object_find(driver, kind_buffer, id);
  VAStatus status = buffer && buffer->mapped ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_BUFFER;
  if (status == VA_STATUS_SUCCESS) {
    buffer->mapped = false;
  } else {
    violation(driver, "not-mapped: vaUnmapBuffer of %#x", id);
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus destroy_buffer(VADriverContextP va, VABufferID id) {
  struct driver *driver = driver_of(va);
  pthread_mutex_lock(&driver->lock);
  struct buffer *buffer = object_find(driver, kind_buffer, id);
  VAStatus status = VA_STATUS_SUCCESS;
  if (!buffer || buffer->type == VAImageBufferType) {
    violation(driver, "bad-id: vaDestroyBuffer of %#x", id);
    status = VA_STATUS_ERROR_INVALID_BUFFER;
  } else {
    if (buffer->mapped) violation(driver, "buffer-mapped: buffer %#x destroyed while mapped", id);
    if (buffer->state == coded_pending && !was_lost(driver)) {
      violation(driver, "coded-pending: coded buffer %#x destroyed before its picture was synchronized", id);
    }
    buffer_release(driver, buffer);
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

void buffer_functions(struct VADriverVTable *table) {
  table->vaCreateBuffer = create_buffer;
  table->vaBufferSetNumElements = set_elements;
  table->vaMapBuffer = map_buffer;
  table->vaUnmapBuffer = unmap_buffer;
  table->vaDestroyBuffer = destroy_buffer;
}
