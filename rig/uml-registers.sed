# The host takes a process's extended registers (xstate) only whole: fewer bytes are EFAULT, and the guest's first process ends with
# "ptrace set fp regs failed"; more are cut off. Linux 6.12 gives 2696 bytes, up to AVX-512 and protection keys. A processor with AMX has
# 11008. A guest's process cannot get leave to use AMX, so the rest is zeros. They lie on the stack, which has room for them
# (CONFIG_KERNEL_STACK_ORDER).
s/^#include <stdlib.h>/&\n#include <string.h>/
/^int restore_fp_registers/,/^}/ {
  s/iov\.iov_base = fp_regs;/unsigned long whole[11008 \/ 8] = { 0 };\n\n\t\tmemcpy(whole, fp_regs, FP_SIZE * 8);\n\t\tiov.iov_base = whole;/
  s/iov\.iov_len = .*/iov.iov_len = sizeof(whole);/
}
