// The table of configs, contexts, surfaces, buffers and images. Ids are never used twice, so a stale one is found.
#include <stdlib.h>

#include "strict.h"

void *object_new(struct driver *driver, enum kind kind, size_t size) {
  struct object *object = calloc(1, size);
  if (!object) return NULL;
  // The kind is in the id, so that an id of the wrong kind never passes for one of the right kind.
  object->id = (VAGenericID)kind << 24 | (++driver->next_id & 0xffffff);
  object->kind = kind;
  struct object **bucket = &driver->buckets[object->id % bucket_count];
  object->next = *bucket;
  *bucket = object;
  return object;
}

void *object_find(struct driver *driver, enum kind kind, VAGenericID id) {
  for (struct object *object = driver->buckets[id % bucket_count]; object; object = object->next) {
    if (object->id == id) return object->kind == kind ? object : NULL;
  }
  return NULL;
}

void object_free(struct driver *driver, struct object *object) {
  struct object **link = &driver->buckets[object->id % bucket_count];
  while (*link != object) link = &(*link)->next;
  *link = object->next;
  free(object);
}

void object_each(struct driver *driver, enum kind kind, void (*visit)(struct object *, void *), void *argument) {
  for (int i = 0; i < bucket_count; i++) {
    for (struct object *object = driver->buckets[i], *next; object; object = next) {
      next = object->next;
      if (object->kind == kind) visit(object, argument);
    }
  }
}
