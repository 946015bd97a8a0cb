// Slice data of a picture in which every coding unit is skipped: it repeats the picture that it refers to. x265 codes no B
// slice without a later picture, so pictures of a device that wants both lists are of this kind.
#include <stdlib.h>
#include <string.h>

#include "strict.h"

// ITU-T H.265 table 9-46.
static const uint8_t range_lps[64][4] = {
    {128, 176, 208, 240}, {128, 167, 197, 227}, {128, 158, 187, 216}, {123, 150, 178, 205}, {116, 142, 169, 195},
    {111, 135, 160, 185}, {105, 128, 152, 175}, {100, 122, 144, 166}, {95, 116, 137, 158},  {90, 110, 130, 150},
    {85, 104, 123, 142},  {81, 99, 117, 135},   {77, 94, 111, 128},   {73, 89, 105, 122},   {69, 85, 100, 116},
    {66, 80, 95, 110},    {62, 76, 90, 104},    {59, 72, 86, 99},     {56, 69, 81, 94},     {53, 65, 77, 89},
    {51, 62, 73, 85},     {48, 59, 69, 80},     {46, 56, 66, 76},     {43, 53, 63, 72},     {41, 50, 59, 69},
    {39, 48, 56, 65},     {37, 45, 54, 62},     {35, 43, 51, 59},     {33, 41, 48, 56},     {32, 39, 46, 53},
    {30, 37, 43, 50},     {29, 35, 41, 48},     {27, 33, 39, 45},     {26, 31, 37, 43},     {24, 30, 35, 41},
    {23, 28, 33, 39},     {22, 27, 32, 37},     {21, 26, 30, 35},     {20, 24, 29, 33},     {19, 23, 27, 31},
    {18, 22, 26, 30},     {17, 21, 25, 28},     {16, 20, 23, 27},     {15, 19, 22, 25},     {14, 18, 21, 24},
    {14, 17, 20, 23},     {13, 16, 19, 22},     {12, 15, 18, 21},     {12, 14, 17, 20},     {11, 14, 16, 19},
    {11, 13, 15, 18},     {10, 12, 15, 17},     {10, 12, 14, 16},     {9, 11, 13, 15},      {9, 11, 12, 14},
    {8, 10, 12, 14},      {8, 9, 11, 13},       {7, 9, 11, 12},       {7, 9, 10, 12},       {7, 8, 10, 11},
    {6, 8, 9, 11},        {6, 7, 9, 10},        {6, 7, 8, 9},         {2, 2, 2, 2}};

// Table 9-47.
static const uint8_t after_lps[64] = {0,  0,  1,  2,  2,  4,  4,  5,  6,  7,  8,  9,  9,  11, 11, 12,
                                      13, 13, 15, 15, 16, 16, 18, 18, 19, 19, 21, 21, 22, 22, 23, 24,
                                      24, 25, 26, 26, 27, 27, 28, 29, 29, 30, 30, 30, 31, 32, 32, 33,
                                      33, 33, 34, 34, 35, 35, 35, 36, 36, 36, 37, 37, 37, 38, 38, 63};

// The contexts in use: split_cu_flag, cu_skip_flag, merge_idx.
enum { at_split = 0, at_skip = 3, at_merge = 6, context_count = 7 };

struct cabac {
  struct bit_writer writer;
  uint32_t low, range, outstanding;
  bool first;
  struct { uint8_t state; bool mps; } contexts[context_count];
};

// 9.3.2.2, with the values of initType 2 from tables 9-11 to 9-37.
static void start(struct cabac *c, int qp) {
  static const uint8_t values[context_count] = {107, 139, 126, 197, 185, 201, 137};
  for (int i = 0; i < context_count; i++) {
    int slope = (values[i] >> 4) * 5 - 45, offset = ((values[i] & 15) << 3) - 16;
    int state = (slope * qp >> 4) + offset;
    state = state < 1 ? 1 : state > 126 ? 126 : state;
    c->contexts[i].mps = state > 63;
    c->contexts[i].state = (uint8_t)(state > 63 ? state - 64 : 63 - state);
  }
  c->range = 510;
  c->first = true;
}

// 9.3.4.x of the encoding process, as in H.264: PutBit and RenormE.
static void put(struct cabac *c, uint32_t bit) {
  if (c->first) {
    c->first = false;
  } else {
    write_bits(&c->writer, bit, 1);
  }
  for (; c->outstanding > 0; c->outstanding--) write_bits(&c->writer, 1 - bit, 1);
}

static void renormalize(struct cabac *c) {
  while (c->range < 256) {
    if (c->low < 256) {
      put(c, 0);
    } else if (c->low >= 512) {
      c->low -= 512;
      put(c, 1);
    } else {
      c->low -= 256;
      c->outstanding++;
    }
    c->range <<= 1;
    c->low <<= 1;
  }
}

static void encode(struct cabac *c, int context, bool bin) {
  uint8_t *state = &c->contexts[context].state;
  uint32_t lps = range_lps[*state][c->range >> 6 & 3];
  c->range -= lps;
  if (bin == c->contexts[context].mps) {
    if (*state < 62) ++*state;
  } else {
    c->low += c->range;
    c->range = lps;
    if (*state == 0) c->contexts[context].mps = !c->contexts[context].mps;
    *state = after_lps[*state];
  }
  renormalize(c);
}

static void terminate_bin(struct cabac *c, bool bin) {
  c->range -= 2;
  if (bin) {
    c->low += c->range;
    c->range = 2;
    renormalize(c);
    put(c, c->low >> 9 & 1);
    // The last bit is rbsp_stop_one_bit.
    write_bits(&c->writer, (c->low >> 7 & 3) | 1, 2);
    while (c->writer.position % 8) write_bits(&c->writer, 0, 1);
  } else {
    renormalize(c);
  }
}

struct tree {
  struct cabac *cabac;
  const struct hevc_sps *sps;
  uint8_t *depths;                   // plus one, of each minimum coding block; 0: not coded yet
  uint32_t blocks_wide;
  bool merges;
};

static uint8_t depth_at(const struct tree *t, int64_t x, int64_t y) {
  if (x < 0 || y < 0) return 0;
  return t->depths[(uint32_t)(y >> t->sps->log2_min_cb) * t->blocks_wide + (uint32_t)(x >> t->sps->log2_min_cb)];
}

static void code_tree(struct tree *t, uint32_t x, uint32_t y, uint32_t log2_size, uint32_t depth) {
  uint32_t size = 1u << log2_size;
  uint8_t left = depth_at(t, (int64_t)x - 1, y), above = depth_at(t, x, (int64_t)y - 1);
  bool fits = x + size <= t->sps->width && y + size <= t->sps->height, small = log2_size == t->sps->log2_min_cb;
  if (fits && !small) encode(t->cabac, at_split + (left > depth + 1) + (above > depth + 1), false);
  if (!fits && !small) {
    for (uint32_t i = 0; i < 4; i++) {
      uint32_t at_x = x + (i & 1) * size / 2, at_y = y + (i >> 1) * size / 2;
      if (at_x < t->sps->width && at_y < t->sps->height) code_tree(t, at_x, at_y, log2_size - 1, depth + 1);
    }
    return;
  }
  encode(t->cabac, at_skip + (left > 0) + (above > 0), true);
  if (t->merges) encode(t->cabac, at_merge, false);
  uint32_t blocks = size >> t->sps->log2_min_cb;
  for (uint32_t row = 0; row < blocks; row++) {
    memset(t->depths + ((y >> t->sps->log2_min_cb) + row) * t->blocks_wide + (x >> t->sps->log2_min_cb), (int)depth + 1, blocks);
  }
}

size_t skip_hevc(const struct context *context, uint8_t *target, size_t capacity, int qp) {
  const struct hevc_sps *sps = &context->picture.hevc.sps;
  struct cabac cabac = {.writer = {.data = target, .capacity = capacity}};
  struct tree tree = {.cabac = &cabac,
                      .sps = sps,
                      .blocks_wide = sps->width >> sps->log2_min_cb,
                      .merges = context->picture.hevc.slice.max_num_merge_cand > 1};
  tree.depths = calloc(tree.blocks_wide, sps->height >> sps->log2_min_cb);
  start(&cabac, qp);
  uint32_t size = 1u << sps->log2_ctb;
  for (uint32_t y = 0; y < sps->height; y += size) {
    for (uint32_t x = 0; x < sps->width; x += size) {
      code_tree(&tree, x, y, sps->log2_ctb, 0);
      terminate_bin(&cabac, x + size >= sps->width && y + size >= sps->height);
    }
  }
  free(tree.depths);
  return cabac.writer.position / 8;
}
