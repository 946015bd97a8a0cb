// The entry to libFuzzer as a library, as compiler-rt's FuzzerInterface.h declares it.
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*target)(const uint8_t *data, size_t size));
