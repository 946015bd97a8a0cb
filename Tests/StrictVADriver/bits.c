// Bit reading and writing, Exp-Golomb codes (9.1) and emulation prevention (7.4.1.1).
#include "headers.h"

uint32_t read_bits(struct bit_reader *reader, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; i++) {
    if (reader->position >= reader->bits) {
      reader->bad = true;
      return 0;
    }
    value = value << 1 | (reader->data[reader->position / 8] >> (7 - reader->position % 8) & 1);
    reader->position++;
  }
  return value;
}

uint32_t read_ue(struct bit_reader *reader) {
  int zeros = 0;
  while (!reader->bad && read_bits(reader, 1) == 0) {
    if (++zeros > 31) reader->bad = true;
  }
  if (reader->bad) return 0;
  return (uint32_t)((1ull << zeros) - 1) + read_bits(reader, zeros);
}

int32_t read_se(struct bit_reader *reader) {
  uint32_t code = read_ue(reader);
  return code & 1 ? (int32_t)(code / 2 + 1) : -(int32_t)(code / 2);
}

bool more_rbsp_data(const struct bit_reader *reader) {
  size_t last = reader->bits;
  while (last > reader->position && !(reader->data[(last - 1) / 8] >> (7 - (last - 1) % 8) & 1)) last--;
  return last > reader->position + 1;
}

void write_bits(struct bit_writer *writer, uint32_t value, int count) {
  for (int i = count - 1; i >= 0; i--) {
    size_t byte = writer->position / 8;
    if (byte >= writer->capacity) return;
    uint8_t mask = (uint8_t)(0x80 >> writer->position % 8);
    if (writer->position % 8 == 0) writer->data[byte] = 0;
    if (value >> i & 1) writer->data[byte] |= mask;
    writer->position++;
  }
}

void write_ue(struct bit_writer *writer, uint32_t value) {
  uint64_t code = (uint64_t)value + 1;
  int length = 64 - __builtin_clzll(code);
  write_bits(writer, 0, length - 1);
  if (length > 32) write_bits(writer, (uint32_t)(code >> 32), length - 32);
  write_bits(writer, (uint32_t)code, length > 32 ? 32 : length);
}

void write_se(struct bit_writer *writer, int32_t value) {
  write_ue(writer, value > 0 ? 2 * (uint32_t)value - 1 : 2 * (uint32_t)(-(int64_t)value));
}

void copy_bits(struct bit_writer *writer, const uint8_t *data, size_t from, size_t to) {
  while (from < to) {
    if (to - from >= 8) {
      // Eight at a time, whatever the alignment of either side.
      size_t shift = from % 8;
      uint32_t value = data[from / 8];
      if (shift) value = (value << shift | data[from / 8 + 1] >> (8 - shift)) & 0xff;
      write_bits(writer, value, 8);
      from += 8;
    } else {
      write_bits(writer, data[from / 8] >> (7 - from % 8) & 1, 1);
      from++;
    }
  }
}

size_t unescape(const uint8_t *data, size_t length, uint8_t *target) {
  size_t out = 0;
  int zeros = 0;
  for (size_t i = 0; i < length; i++) {
    if (zeros >= 2 && data[i] == 3) {
      zeros = 0;
      continue;
    }
    zeros = data[i] ? 0 : zeros + 1;
    target[out++] = data[i];
  }
  return out;
}

size_t escape(const uint8_t *data, size_t length, uint8_t *target) {
  size_t out = 0;
  int zeros = 0;
  for (size_t i = 0; i < length; i++) {
    if (zeros >= 2 && data[i] <= 3) {
      target[out++] = 3;
      zeros = 0;
    }
    zeros = data[i] ? 0 : zeros + 1;
    target[out++] = data[i];
  }
  return out;
}
