// Waiting for the device: surfaces, coded buffers, and what a hang does to both.
#include "strict.h"

// Waits outside the lock: other threads go on while one hangs.
static VAStatus wait_for(uint64_t ready_ns, uint64_t frame, uint64_t limit_ns) {
  uint64_t start = now_ns();
  if (!hang(at_sync, frame, limit_ns)) return VA_STATUS_ERROR_TIMEDOUT;
  uint64_t now = now_ns(), left = limit_ns - (now - start < limit_ns ? now - start : limit_ns);
  if (ready_ns > now) {
    if (ready_ns - now > left) {
      sleep_ns(left);
      return VA_STATUS_ERROR_TIMEDOUT;
    }
    sleep_ns(ready_ns - now);
  }
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  return fails(at_sync, frame) ? VA_STATUS_ERROR_OPERATION_FAILED : VA_STATUS_SUCCESS;
}

struct done { struct driver *driver; VASurfaceID surface; bool failed; };

static void coded_done(struct object *object, void *argument) {
  struct buffer *buffer = (struct buffer *)object;
  struct done *done = argument;
  if (buffer->surface != done->surface || buffer->state != coded_pending) return;
  buffer->state = done->failed ? coded_idle : coded_ready;
  struct context *context = object_find(done->driver, kind_context, buffer->context);
  // What the client never got, no later picture may refer to.
  if (done->failed && context) context->stream.lost = context->stream.lost_seen = true;
}

static void surface_done(struct driver *driver, VASurfaceID id, bool failed) {
  struct surface *surface = object_find(driver, kind_surface, id);
  if (surface) surface->in_flight = false;
  struct done done = {driver, id, failed};
  object_each(driver, kind_buffer, coded_done, &done);
}

static VAStatus sync_surface2(VADriverContextP va, VASurfaceID id, uint64_t limit_ns) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  pthread_mutex_lock(&driver->lock);
  struct surface *surface = object_find(driver, kind_surface, id);
  uint64_t ready = surface ? surface->ready_ns : 0, frame = surface ? surface->frame : 0;
  bool in_flight = surface && surface->in_flight, begun = surface && surface->begun_by != VA_INVALID_ID;
  pthread_mutex_unlock(&driver->lock);
  if (!surface) {
    violation(driver, "bad-id: vaSyncSurface of %#x", id);
    return VA_STATUS_ERROR_INVALID_SURFACE;
  }
  if (begun) {
    violation(driver, "sync-in-picture: vaSyncSurface of %#x before vaEndPicture", id);
    return VA_STATUS_ERROR_OPERATION_FAILED;
  }
  if (!in_flight) return VA_STATUS_SUCCESS;
  VAStatus status = wait_for(ready, frame, limit_ns);
  if (status == VA_STATUS_ERROR_TIMEDOUT) return status;
  pthread_mutex_lock(&driver->lock);
  surface_done(driver, id, status != VA_STATUS_SUCCESS);
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus sync_surface(VADriverContextP va, VASurfaceID id) { return sync_surface2(va, id, UINT64_MAX); }

static VAStatus sync_buffer(VADriverContextP va, VABufferID id, uint64_t limit_ns) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  // The usual way to ask whether the call exists.
  if (id == VA_INVALID_ID) return VA_STATUS_ERROR_INVALID_BUFFER;
  pthread_mutex_lock(&driver->lock);
  struct buffer *buffer = object_find(driver, kind_buffer, id);
  VASurfaceID surface = buffer && buffer->type == VAEncCodedBufferType ? buffer->surface : VA_INVALID_ID;
  bool pending = buffer && buffer->state == coded_pending;
  if (!buffer || buffer->type != VAEncCodedBufferType) {
    violation(driver, "bad-id: vaSyncBuffer of %#x", id);
    pthread_mutex_unlock(&driver->lock);
    return VA_STATUS_ERROR_INVALID_BUFFER;
  }
  pthread_mutex_unlock(&driver->lock);
  return pending ? sync_surface2(va, surface, limit_ns) : VA_STATUS_SUCCESS;
}

static VAStatus query_surface(VADriverContextP va, VASurfaceID id, VASurfaceStatus *status) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  pthread_mutex_lock(&driver->lock);
  struct surface *surface = object_find(driver, kind_surface, id);
  if (surface) {
    bool busy = surface->in_flight && (surface->ready_ns > now_ns() ||
                                       (injection.hang == at_sync && surface->frame >= injection.hang_at &&
                                        surface->frame <= injection.hang_until));
    *status = busy ? VASurfaceRendering : VASurfaceReady;
  } else {
    violation(driver, "bad-id: vaQuerySurfaceStatus of %#x", id);
  }
  pthread_mutex_unlock(&driver->lock);
  return surface ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_SURFACE;
}

static VAStatus query_error(VADriverContextP va, VASurfaceID id, VAStatus error, void **info) {
  (void)va, (void)id, (void)error, (void)info;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}

void sync_functions(struct VADriverVTable *table) {
  table->vaSyncSurface = sync_surface;
  table->vaSyncSurface2 = sync_surface2;
  table->vaSyncBuffer = sync_buffer;
  table->vaQuerySurfaceStatus = query_surface;
  table->vaQuerySurfaceError = query_error;
}
