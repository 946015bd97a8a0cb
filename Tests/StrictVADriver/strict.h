// The strict VA-API test driver: what its files share. See README.md for what it refuses and for its knobs.
#ifndef STRICT_H
#define STRICT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <va/va.h>
#include <va/va_backend.h>
#include <va/va_backend_vpp.h>
#include <va/va_drmcommon.h>
#include <va/va_enc_h264.h>
#include <va/va_enc_hevc.h>
#include <va/va_vpp.h>

#include "hevc_headers.h"

enum { max_slices = 32, max_packed = 40, max_profiles = 4 };

// Where a failure or a hang can be asked for.
enum point { at_none, at_begin, at_render, at_end, at_sync, at_map, at_lost, at_init, at_derive, at_process };

// Where a driver that offers more than it has breaks down, and on which entry points.
enum lie { lie_config = 1, lie_context = 2, lie_encode = 4, lie_slice = 8, lie_low_power = 16 };

// What the environment asks of the driver; README.md documents each.
struct knobs {
  bool slice, low_power;             // entry points
  uint32_t packed;                   // VA_ENC_PACKED_HEADER_* offered
  uint32_t rate_controls;            // VA_RC_* offered
  VAProfile profiles[max_profiles];
  int profile_count;
  int segments;
  bool derive, odd_pitch, import, sync_buffer;
  bool misc_first;                   // miscellaneous parameters may come before the picture's
  uint32_t lies;                     // enum lie
  uint32_t max_width, max_height;
  uint32_t quality;                  // the last quality level
  bool quality_fixed;                // another level is refused once a picture was coded
  uint32_t quality_ms;               // what each level above the last costs a picture
  char vendor[256];
  bool process, process_mirrors, process_mirrors_last, process_wrong;  // video processing
  struct {
    bool told;                       // features and block sizes can be asked for
    bool both_lists;                 // no P slices: B slices of past pictures, with the same list twice
    VAConfigAttribValEncHEVCFeatures features;
    uint32_t log2_min_cb, log2_min_ctb, log2_max_ctb;
  } hevc;
  char log_path[512];
};

// Failures in the making. One for the process: it outlives a driver that is closed and opened again.
struct injection {
  enum point fail, hang;
  uint64_t fail_at, hang_at, hang_until, garbage_at;
  int64_t fail_count;                // how many more times; negative: for ever
  double hang_seconds;               // negative: for ever
  int slow_ms;
  bool lost;
  uint64_t losses;                   // so far
  int64_t lost_reopens;
  uint64_t overflow_at[64];
  int overflow_count;
  uint32_t coded_limit;              // bytes; 0: the client's own buffer size only
};

enum kind { kind_config = 1, kind_context, kind_surface, kind_buffer, kind_image };

struct object {
  VAGenericID id;
  enum kind kind;
  struct object *next;
};

struct config {
  struct object object;
  VAProfile profile;
  VAEntrypoint entrypoint;
  uint32_t rate_control, packed;
  int contexts;                      // alive, made from this one
};

struct surface {
  struct object object;
  uint32_t width, height;            // as the client asked
  uint32_t pitch, chroma_pitch;
  uint8_t *luma, *chroma;
  uint8_t *memory;                   // ours, or NULL when imported
  size_t memory_size;
  size_t chroma_offset;
  struct { void *address; size_t size; int fd; } map[2];
  int map_count;
  int derived;                       // images derived from it and not destroyed
  bool in_flight;                    // given to EndPicture and not yet synchronized
  uint64_t ready_ns;                 // monotonic time at which the work on it is done
  uint64_t frame;                    // the frame number of that work
  VAContextID begun_by;              // the context with a picture begun on it, else VA_INVALID_ID
};

enum coded_state { coded_idle, coded_pending, coded_ready };

struct buffer {
  struct object object;
  VAContextID context;
  VABufferType type;
  uint32_t element_size, count;
  uint8_t *data;
  bool mapped;
  // coded buffers
  enum coded_state state;
  VASurfaceID surface;               // the input surface of the picture whose data it holds
  uint64_t frame;
  uint32_t filled;
  VACodedBufferSegment *segments;
  // image buffers
  VAImageID image;
};

struct image {
  struct object object;
  VAImage va;
  VASurfaceID derived_from;          // VA_INVALID_ID: memory of its own
};

struct packed {
  uint32_t type, bit_length;
  bool escaped, has_data;
  uint8_t *data;
  uint32_t size;
};

struct misc {
  bool has_rate, has_hrd, has_frame_rate, has_level;
  VAEncMiscParameterRateControl rate;
  VAEncMiscParameterHRD hrd;
  VAEncMiscParameterFrameRate frame_rate;
  uint32_t level;                    // the quality level that this picture brings; not merged into those in force
};

// The picture between BeginPicture and EndPicture.
struct picture {
  bool begun, bad;
  VASurfaceID input;
  bool has_sequence, has_picture, has_pipeline;
  int sequence_count, picture_count;
  VAEncSequenceParameterBufferH264 sequence;
  VAEncPictureParameterBufferH264 parameters;
  VAEncSliceParameterBufferH264 slices[max_slices];
  int slice_count;
  struct packed packed[max_packed];
  int packed_count;
  struct misc misc;
  VAProcPipelineParameterBuffer pipeline;
  // The same of HEVC.
  struct {
    VAEncSequenceParameterBufferHEVC sequence;
    VAEncPictureParameterBufferHEVC parameters;
    VAEncSliceParameterBufferHEVC slice;
    struct hevc_sps sps;
    struct hevc_pps pps;
    bool brings_vps;
  } hevc;
  // The parameter sets in force for it, and whether this picture brings its own.
  struct sps sps;
  struct pps pps;
  bool brings_sps, brings_pps;
};

// What the stream has been so far: the state that clause 7.4.3 ties the next picture to.
struct stream {
  bool started, ended;
  struct sps sps;
  struct pps pps;
  VAEncSequenceParameterBufferH264 sequence;
  struct {
    struct hevc_sps sps;
    struct hevc_pps pps;
    VAEncSequenceParameterBufferHEVC sequence;
  } hevc;
  struct misc misc;                  // the values in force
  uint64_t pictures, idrs, overflows, bytes;  // since the context was created
  uint32_t level;                    // the quality level in force; 0: the driver's own
  uint64_t levels, levels_between;   // how often it has changed, and how often with another picture than an IDR
  // the last picture, and the one before it for the case that the last one is submitted again
  struct coded_picture {
    bool valid, idr, reference;
    VASurfaceID reconstructed;
    uint32_t frame_num, idr_pic_id;
    int32_t poc;
  } last, previous;
  bool redo_allowed;                 // the last picture did not fit its coded buffer or was garbage
  bool lost, lost_seen;              // coded data were lost since the last IDR picture; the client was told
};

struct x264_coder;
struct x265_coder;

struct context {
  struct object object;
  struct config *config;
  uint32_t width, height;            // of the picture as given to vaCreateContext
  struct picture picture;
  struct stream stream;
  struct x264_coder *coder;
  struct x265_coder *hevc_coder;
  uint64_t ready_ns;                 // when the device is done with what it was given
};

enum { bucket_count = 4096, max_asked = 256 };

struct driver {
  pthread_mutex_t lock;
  struct knobs knobs;
  struct object *buckets[bucket_count];
  VAGenericID next_id;
  struct { VAProfile profile; VAEntrypoint entrypoint; VAConfigAttribType type; } asked[max_asked];
  int asked_count;
  uint64_t losses;                   // when it was opened
};

static inline struct driver *driver_of(VADriverContextP va) { return va->pDriverData; }

// objects.c
void *object_new(struct driver *driver, enum kind kind, size_t size);
void *object_find(struct driver *driver, enum kind kind, VAGenericID id);
void object_free(struct driver *driver, struct object *object);
void object_each(struct driver *driver, enum kind kind, void (*visit)(struct object *, void *), void *argument);

// knobs.c
extern struct injection injection;
extern uint64_t frames_begun;
void knobs_read(struct knobs *knobs);
void control_poll(void);
bool fails(enum point point, uint64_t frame);  // takes one failure off the count if it does
bool overflows(uint64_t frame);
void lose_device(void);
// Whether the device was lost under this driver: what is in flight then will never be synchronized.
bool was_lost(const struct driver *driver);

bool lies_at(const struct knobs *knobs, enum lie where, VAEntrypoint entrypoint);

// violation.c
__attribute__((format(printf, 2, 3))) void violation(struct driver *driver, const char *format, ...);
// A line that is no violation.
__attribute__((format(printf, 2, 3))) void note(struct driver *driver, const char *format, ...);
// Whether `got` is not what is wanted; the violation names the check and the field.
bool differs(struct driver *driver, const char *check, const char *field, int64_t got, int64_t wanted);
uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
// Blocks as NIGHTJAR_VA_HANG asks; false if the limit (ns from now) passed first.
bool hang(enum point point, uint64_t frame, uint64_t limit_ns);

// config.c
void config_functions(struct VADriverVTable *table);
bool encoding_offered(const struct knobs *knobs, VAProfile profile, VAEntrypoint entrypoint);
static inline bool is_hevc(const struct context *context) { return context->config->profile == VAProfileHEVCMain; }
// surfaces.c, images.c, import.c, buffers.c, picture.c, process.c
void surface_functions(struct VADriverVTable *table);
void surface_release(struct driver *driver, struct surface *surface);
VAStatus surface_import(struct driver *driver, struct surface *surface, const VADRMPRIMESurfaceDescriptor *descriptor);
void surface_access(struct surface *surface, bool begin, bool writes);
VAStatus surface_export(VADriverContextP va, VASurfaceID id, uint32_t memory_type, uint32_t flags, void *descriptor);
void image_functions(struct VADriverVTable *table);
void image_release(struct driver *driver, struct image *image);
void buffer_functions(struct VADriverVTable *table);
struct buffer *buffer_new(struct driver *driver, VABufferType type, uint32_t size, uint32_t count);
void buffer_release(struct driver *driver, struct buffer *buffer);
void picture_functions(struct VADriverVTable *table);
void picture_clear(struct picture *picture);
void context_release(struct driver *driver, struct context *context);
void sync_functions(struct VADriverVTable *table);
VAStatus process_picture(struct driver *driver, struct context *context);
VAStatus process_filters(VADriverContextP va, VAContextID context, VAProcFilterType *list, unsigned int *count);
VAStatus process_filter_caps(VADriverContextP va, VAContextID context, VAProcFilterType type, void *caps,
                             unsigned int *count);
VAStatus process_caps(VADriverContextP va, VAContextID context, VABufferID *filters, unsigned int count,
                      VAProcPipelineCaps *caps);

// check_*.c: each says what is wrong by violation() and returns the status to give, or VA_STATUS_SUCCESS.
VAStatus check_complete(struct driver *driver, struct context *context);
VAStatus check_rate(struct driver *driver, struct context *context);
VAStatus check_level(struct driver *driver, struct context *context);
// The quality level of the picture begun; 0: the driver's own.
uint32_t level_of(const struct context *context);
VAStatus check_sequence(struct driver *driver, struct context *context);
VAStatus check_picture(struct driver *driver, struct context *context, bool *redo);
VAStatus check_slices(struct driver *driver, struct context *context, bool redo);
VAStatus check_packed(struct driver *driver, struct context *context);
bool is_idr(const struct context *context);
bool picture_given(const VAPictureH264 *picture);
// A picture that fails to replace the last one, which was lost, refers to that one. `replaces` is what the numbers of this
// picture say; returns the picture to refer to, or NULL if it is one whose data are known to be lost.
const struct coded_picture *reference_of(struct driver *driver, const struct context *context, bool replaces, bool *redo);
VAStatus check_reconstructed(struct driver *driver, const struct context *context, VASurfaceID id, bool given,
                             uint32_t width, uint32_t height, const struct coded_picture *reference);
VAStatus check_coded_buffer(struct driver *driver, const struct context *context, VABufferID id);
// hevc_check*.c: the same of HEVC.
VAStatus check_hevc_sequence(struct driver *driver, struct context *context);
VAStatus check_hevc_picture(struct driver *driver, struct context *context, bool *redo);
VAStatus check_hevc_slice(struct driver *driver, struct context *context, bool redo);
bool same_hevc_pps(struct driver *driver, const char *check, const struct hevc_pps *pps, const struct hevc_pps *wanted);
VAStatus check_hevc_unit(struct driver *driver, struct context *context, const uint8_t *rbsp, size_t length);
VAStatus check_hevc_slice_header(struct driver *driver, struct context *context, const struct packed *packed);
// The bits of a packed slice header: with byte_alignment() or without, as clients differ in that.
size_t hevc_header_bits(const uint8_t *nal, size_t bits, size_t parsed);
const struct packed *packed_slice(const struct context *context, int index);
// The bytes of a packed header from its NAL unit's header on, without emulation prevention; NULL if it has no start
// code. The caller frees them.
uint8_t *packed_nal(const struct packed *packed, size_t *bits);

// sets.c
struct sps sps_of(const struct context *context, const VAEncSequenceParameterBufferH264 *sequence);
struct pps pps_of(const VAEncPictureParameterBufferH264 *parameters);
struct slice_header slice_header_of(const struct context *context, int index);
// hevc_sets.c
struct hevc_sps hevc_sps_of(const struct context *context, const VAEncSequenceParameterBufferHEVC *sequence);
struct hevc_pps hevc_pps_of(const struct context *context);
struct hevc_slice_header hevc_slice_header_of(const struct context *context);

// encode.c, coder.c
struct output { uint8_t *data; size_t size, capacity; };
void append_nal(struct output *output, const uint8_t *nal, size_t size);
void append_packed(struct output *output, const struct context *context);  // all but slice headers
VAStatus encode_picture(struct driver *driver, struct context *context, bool redo, uint64_t frame);
// Puts the stream into the coded buffer, and the picture into its place in the stream.
void deliver(struct driver *driver, struct context *context, const struct output *output, VABufferID coded_buffer, int qp,
             bool redo, uint64_t frame, struct coded_picture picture, bool ends);
struct coded_slice { uint8_t *nal; size_t bytes; struct slice_header header; };  // without start code or escapes
// Codes the picture begun: its slices' data and headers as x264 wrote them. They live until the next call.
VAStatus code_picture(struct driver *driver, struct context *context, bool redo, struct coded_slice *slices,
                      int *count);
bool coder_uses_cabac(const struct context *context);
void coder_close(struct x264_coder *coder);
// The client's picture in whole blocks: NV12, the last column and line repeated.
void padded_input(struct driver *driver, const struct context *context, uint8_t *to, uint32_t width, uint32_t height);
// The rates that hold for this picture.
struct misc misc_of(const struct context *context);
double frame_rate_of(const struct misc *misc);
// hevc_encode.c, hevc_coder.c, hevc_skip.c
VAStatus encode_hevc(struct driver *driver, struct context *context, bool redo, uint64_t frame);
// The slice data, without its header and without emulation prevention. They live until the next call.
struct hevc_data { const uint8_t *data; size_t bytes; int qp; };
VAStatus code_hevc(struct driver *driver, struct context *context, bool redo, struct hevc_data *data);
void hevc_coded(struct context *context, size_t bytes, bool redo);
void hevc_coder_close(struct x265_coder *coder);
// Slice data of a picture whose blocks all repeat the reference; returns the bytes.
size_t skip_hevc(const struct context *context, uint8_t *target, size_t capacity, int qp);

#endif
