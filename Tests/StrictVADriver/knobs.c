// What the environment and the control file ask for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "strict.h"

struct injection injection;
uint64_t frames_begun;

static const char *text(const char *name, const char *otherwise) {
  char key[64];
  snprintf(key, sizeof key, "NIGHTJAR_VA_%s", name);
  const char *value = getenv(key);
  return value && *value ? value : otherwise;
}

static int64_t number(const char *name, int64_t otherwise) {
  const char *value = text(name, NULL);
  return value ? strtoll(value, NULL, 10) : otherwise;
}

// Whether a comma-separated list holds a word.
static bool lists(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if (strncasecmp(at, word, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
  }
  return false;
}

static enum point point_named(const char *name) {
  static const struct { const char *name; enum point point; } names[] = {
      {"error", at_end},   {"begin", at_begin}, {"render", at_render}, {"end", at_end},       {"sync", at_sync},
      {"map", at_map},     {"lost", at_lost},     {"init", at_init},     {"derive", at_derive},
      {"process", at_process}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(name, names[i].name) == 0) return names[i].point;
  }
  return at_none;
}

// Failures are read once a process: a driver opened again must not start over with them.
static void injection_read(void) {
  static bool done;
  if (done) return;
  done = true;
  injection.fail_at = (uint64_t)number("FAIL_AT", 0);
  injection.fail = injection.fail_at ? point_named(text("FAIL", "end")) : at_none;
  injection.fail_count = number("FAIL_COUNT", 1);
  injection.lost_reopens = number("LOST_REOPENS", 0);
  const char *where = text("HANG_IN", "sync");
  injection.hang_at = (uint64_t)number("HANG_AT", 0);
  injection.hang = injection.hang_at || strcmp(where, "init") == 0 ? point_named(where) : at_none;
  injection.hang_until = UINT64_MAX;
  injection.hang_seconds = strtod(text("HANG_SECONDS", "-1"), NULL);
  injection.slow_ms = (int)number("SLOW_MS", 0);
  injection.garbage_at = (uint64_t)number("GARBAGE", 0);
  injection.coded_limit = (uint32_t)number("CODED_LIMIT", 0);
  const char *at = text("OVERFLOW_AT", NULL);
  while (at && injection.overflow_count < 64) {
    injection.overflow_at[injection.overflow_count++] = strtoull(at, NULL, 10);
    at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
  }
}

static void hevc_read(struct knobs *knobs) {
  const char *words = text("HEVC", "");
  knobs->hevc.told = !lists(words, "plain");
  knobs->hevc.both_lists = lists(words, "both-lists");
  knobs->hevc.log2_min_cb = lists(words, "cb16") ? 4 : 3;
  knobs->hevc.log2_min_ctb = lists(words, "ctb64") ? 6 : lists(words, "ctb32") ? 5 : 4;
  knobs->hevc.log2_max_ctb = lists(words, "ctb16") ? 4 : lists(words, "ctb32") ? 5 : 6;
  knobs->hevc.features.bits.deblocking_filter_disable = VA_FEATURE_SUPPORTED;
  uint32_t tools = lists(words, "required") ? VA_FEATURE_REQUIRED : VA_FEATURE_SUPPORTED;
  if (lists(words, "simple")) tools = VA_FEATURE_NOT_SUPPORTED;
  knobs->hevc.features.bits.amp = tools;
  knobs->hevc.features.bits.temporal_mvp = tools;
  knobs->hevc.features.bits.strong_intra_smoothing = tools;
  knobs->hevc.features.bits.sign_data_hiding = tools;
  knobs->hevc.features.bits.cu_qp_delta = tools;
}

void knobs_read(struct knobs *knobs) {
  memset(knobs, 0, sizeof *knobs);
  const char *entry = text("ENTRYPOINT", "slice");
  knobs->slice = strcmp(entry, "slice") == 0 || strcmp(entry, "both") == 0;
  knobs->low_power = strcmp(entry, "lp") == 0 || strcmp(entry, "both") == 0;
  const char *packed = text("PACKED", "all");
  if (strcmp(packed, "all") == 0) {
    knobs->packed = VA_ENC_PACKED_HEADER_SEQUENCE | VA_ENC_PACKED_HEADER_PICTURE | VA_ENC_PACKED_HEADER_SLICE |
                    VA_ENC_PACKED_HEADER_MISC | VA_ENC_PACKED_HEADER_RAW_DATA;
  }
  static const struct { const char *name; uint32_t mask; } headers[] = {{"sequence", VA_ENC_PACKED_HEADER_SEQUENCE},
                                                                       {"picture", VA_ENC_PACKED_HEADER_PICTURE},
                                                                       {"slice", VA_ENC_PACKED_HEADER_SLICE},
                                                                       {"misc", VA_ENC_PACKED_HEADER_MISC},
                                                                       {"raw", VA_ENC_PACKED_HEADER_RAW_DATA}};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    if (lists(packed, headers[i].name)) knobs->packed |= headers[i].mask;
  }
  const char *rates = text("RC", "cqp,cbr,vbr");
  if (lists(rates, "cqp")) knobs->rate_controls |= VA_RC_CQP;
  if (lists(rates, "cbr")) knobs->rate_controls |= VA_RC_CBR;
  if (lists(rates, "vbr")) knobs->rate_controls |= VA_RC_VBR;
  const char *profiles = text("PROFILES", "constrained-baseline,main,high,hevc-main");
  static const struct { const char *name; VAProfile profile; } names[] = {
      {"constrained-baseline", VAProfileH264ConstrainedBaseline},
      {"main", VAProfileH264Main},
      {"high", VAProfileH264High},
      {"hevc-main", VAProfileHEVCMain}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (lists(profiles, names[i].name)) knobs->profiles[knobs->profile_count++] = names[i].profile;
  }
  hevc_read(knobs);
  knobs->segments = (int)number("SEGMENTS", 1);
  if (knobs->segments < 1) knobs->segments = 1;
  if (knobs->segments > 64) knobs->segments = 64;
  knobs->derive = number("DERIVE", 1) != 0;
  knobs->odd_pitch = strcmp(text("PITCH", ""), "odd") == 0;
  knobs->import = number("IMPORT", 1) != 0;
  knobs->sync_buffer = number("SYNC_BUFFER", 1) != 0;
  knobs->misc_first = number("MISC_FIRST", 0) != 0;
  const char *lie = text("LIE", "");
  static const struct { const char *name; enum lie lie; } lies[] = {
      {"config", lie_config}, {"context", lie_context}, {"encode", lie_encode}, {"slice", lie_slice},
      {"lp", lie_low_power}};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    if (lists(lie, lies[i].name)) knobs->lies |= (uint32_t)lies[i].lie;
  }
  if (!(knobs->lies & (lie_slice | lie_low_power))) knobs->lies |= lie_slice | lie_low_power;
  const char *process = text("PROCESS", "all");
  knobs->process = strcmp(process, "none") != 0;
  knobs->process_mirrors = strcmp(process, "rotate") != 0;
  knobs->process_mirrors_last = strcmp(process, "mirror-last") == 0;
  knobs->process_wrong = strcmp(process, "wrong") == 0;
  knobs->quality = (uint32_t)number("QUALITY", 7);
  knobs->quality_fixed = number("QUALITY_FIXED", 0) != 0;
  knobs->quality_ms = (uint32_t)number("QUALITY_MS", 0);
  snprintf(knobs->vendor, sizeof knobs->vendor, "%s", text("VENDOR", "nightjar strict test driver"));
  knobs->max_width = knobs->max_height = 4096;
  const char *size = text("MAX_SIZE", NULL);
  unsigned width, height;
  if (size && sscanf(size, "%ux%u", &width, &height) == 2) {
    knobs->max_width = width;
    knobs->max_height = height;
  }
  snprintf(knobs->log_path, sizeof knobs->log_path, "%s", text("LOG", ""));
  injection_read();
}

void lose_device(void) {
  injection.lost = true;
  injection.losses++;
}

bool was_lost(const struct driver *driver) { return injection.losses != driver->losses; }

static void control_line(const char *key, const char *value) {
  if (strcmp(key, "fail") == 0) {
    injection.fail = point_named(value);
    injection.fail_at = 0;
    injection.fail_count = 1;
  } else if (strcmp(key, "fail_count") == 0) {
    injection.fail_count = strtoll(value, NULL, 10);
  } else if (strcmp(key, "lost_reopens") == 0) {
    injection.lost_reopens = strtoll(value, NULL, 10);
  } else if (strcmp(key, "lost") == 0) {
    if (strcmp(value, "0") == 0) {
      injection.lost = false;
    } else {
      lose_device();
    }
  } else if (strcmp(key, "hang") == 0) {
    injection.hang = point_named(value);
    injection.hang_at = 0;
    injection.hang_until = UINT64_MAX;
    injection.hang_seconds = -1;
  } else if (strcmp(key, "hang_seconds") == 0) {
    injection.hang_seconds = strtod(value, NULL);
  } else if (strcmp(key, "hang_frames") == 0) {
    injection.hang_until = frames_begun + strtoull(value, NULL, 10);
  } else if (strcmp(key, "slow_ms") == 0) {
    injection.slow_ms = (int)strtol(value, NULL, 10);
  } else if (strcmp(key, "garbage") == 0) {
    injection.garbage_at = frames_begun + strtoull(value, NULL, 10);
  } else if (strcmp(key, "overflow") == 0) {
    injection.overflow_at[0] = frames_begun + strtoull(value, NULL, 10);
    injection.overflow_count = 1;
  }
}

void control_poll(void) {
  static struct timespec seen;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char *path = text("CONTROL", NULL);
  struct stat status;
  if (!path) return;
  // Looked at under the lock too: a thread with an older look would have it read again.
  pthread_mutex_lock(&lock);
  if (stat(path, &status) == 0 &&
      (status.st_mtim.tv_sec != seen.tv_sec || status.st_mtim.tv_nsec != seen.tv_nsec)) {
    FILE *file = fopen(path, "re");
    // Of what is read: another file may have taken the place of the one that was looked at.
    if (file) fstat(fileno(file), &status);
    seen = status.st_mtim;
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
      line[strcspn(line, "\r\n")] = 0;
      char *equals = strchr(line, '=');
      if (!equals) continue;
      *equals = 0;
      control_line(line, equals + 1);
    }
    if (file) fclose(file);
  }
  pthread_mutex_unlock(&lock);
}

bool fails(enum point point, uint64_t frame) {
  if (injection.fail != point || frame < injection.fail_at || injection.fail_count == 0) return false;
  if (injection.fail_count > 0) injection.fail_count--;
  return true;
}

bool overflows(uint64_t frame) {
  for (int i = 0; i < injection.overflow_count; i++) {
    if (injection.overflow_at[i] == frame) return true;
  }
  return false;
}

bool lies_at(const struct knobs *knobs, enum lie where, VAEntrypoint entrypoint) {
  uint32_t which = 0;
  if (entrypoint == VAEntrypointEncSlice) which = lie_slice;
  if (entrypoint == VAEntrypointEncSliceLP) which = lie_low_power;
  return knobs->lies & (uint32_t)where && knobs->lies & which;
}
