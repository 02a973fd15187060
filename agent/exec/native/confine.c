// Executes the first program of a box without access to the kernel keyrings and descriptors of the coordinator.
//
//   confine FILTER COMMAND ARGUMENT...   COMMAND is a path
//   confine FILTER                       exits with 0 when the filter can be loaded, else with the errno
//
// The process gets a new session keyring, and keeps only the descriptors 0, 1, 2 and NETWORK_FD. FILTER is a file with the
// seccomp filter of keyring-filter.ts. The filter needs no_new_privs. Where the caller has not set it, setuid programs such as
// sudo work in the box, and the filter is not loaded.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// The init of a box keeps this descriptor open, see own-network.sh.
#define NETWORK_FD 9
#define MAX_INSTRUCTIONS 256

// From linux/keyctl.h, linux/seccomp.h and linux/filter.h, which some systems install apart from the C library.
#define KEYCTL_JOIN_SESSION_KEYRING 1
#define SECCOMP_MODE_FILTER 2
typedef struct {
  uint16_t code;
  uint8_t jump_true, jump_false;
  uint32_t operand;
} Instruction;
typedef struct {
  unsigned short length;
  Instruction *instructions;
} Program;

// Returns 0 or an errno.
static int load_filter(const char *path) {
  static Instruction instructions[MAX_INSTRUCTIONS];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd == -1) return errno;
  ssize_t length = read(fd, instructions, sizeof instructions);
  int error = length == -1 ? errno : 0;
  close(fd);
  if (error != 0) return error;
  Program program = {length / sizeof *instructions, instructions};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1 ? errno : 0;
}

static int fail(const char *what, int error) {
  fprintf(stderr, "boxwood: %s: %s\n", what, strerror(error));
  return error;
}

int main(int count, char **arguments, char **environment) {
  if (count < 2) return EINVAL;
  const char *filter = arguments[1];
  if (count == 2) return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ? errno : load_filter(filter);
  // Old kernels have no close_range. The coordinator has closed its inherited descriptors too.
  syscall(SYS_close_range, 3, NETWORK_FD - 1, 0);
  syscall(SYS_close_range, NETWORK_FD + 1, ~0U, 0);
  // Fails where a container of the coordinator forbids the call, and when the user has too many keys.
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) == -1) fail("no session keyring of its own", errno);
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
    int error = load_filter(filter);
    if (error != 0) return fail("the filter of system calls cannot be loaded", error);
  }
  execve(arguments[2], arguments + 2, environment);
  return fail(arguments[2], errno);
}
