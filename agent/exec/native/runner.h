// Shared by run.c and terminal.c: programs that start one process, outlive the agent, and hold what it has written.
//
//   PROGRAM DIR ARGUMENT...
//
// The launcher is the process that the agent starts. The launcher forks the runner and exits with 0 once the process of the
// directory DIR runs, else with the errno of the failed call. EEXIST: another runner has started the process of this
// directory. Both programs create the file `started` in DIR:
//   "PID START RUNNER_PID RUNNER_START": hard-linked into place by the process itself just before execve. Of several
//   concurrent runners for one directory, only one succeeds and starts the process
//
// The process inherits the runner's environment, with one difference: the process id is in BOXWOOD_RUNNER_FOR for the
// runner and in BOXWOOD_PROCESS_ID for the process. The agent finds the processes of a command by BOXWOOD_PROCESS_ID, so
// terminating the command's process tree does not signal the runner.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNNER_VARIABLE "BOXWOOD_RUNNER_FOR"
#define COMMAND_VARIABLE "BOXWOOD_PROCESS_ID"
// Field number in /proc/PID/stat, see proc_pid_stat(5).
#define STAT_START_TIME_FIELD 22

// The directory DIR.
static int dir_fd;

static inline void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static inline long long now_ms(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

// Start time of this process in clock ticks since boot. Pid and start time together identify a process.
static unsigned long long own_start_time(void) {
  char line[1024];
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd == -1 ? -1 : read(fd, line, sizeof line - 1);
  if (fd != -1) close(fd);
  if (length <= 0) return 0;
  line[length] = 0;
  // Field 2 is the name in parentheses, which may itself contain spaces and parentheses.
  char *position = strrchr(line, ')');
  for (int field = 2; position != NULL && field < STAT_START_TIME_FIELD; field++) position = strchr(position + 1, ' ');
  return position == NULL ? 0 : strtoull(position, NULL, 10);
}

// Returns 0 or an errno.
static int write_all(int fd, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, bytes, length);
    if (written == -1 && errno == EINTR) continue;
    if (written == -1) return errno;
    bytes += written;
    length -= written;
  }
  return 0;
}

static void close_fd(int *fd) {
  if (*fd != -1) close(*fd);
  *fd = -1;
}

// Copies the runner's environment and renames RUNNER_VARIABLE to COMMAND_VARIABLE. NULL when memory is exhausted.
static char **command_environment(char **environment) {
  size_t count = 0, prefix_length = strlen(RUNNER_VARIABLE "=");
  while (environment[count] != NULL) count++;
  char **result = calloc(count + 1, sizeof *result);
  for (size_t i = 0; result != NULL && i < count; i++) {
    result[i] = environment[i];
    if (strncmp(environment[i], RUNNER_VARIABLE "=", prefix_length) != 0) continue;
    if (asprintf(&result[i], COMMAND_VARIABLE "=%s", environment[i] + prefix_length) == -1) return NULL;
  }
  return result;
}

// Creates `started`. Returns 0 or an errno; EEXIST when another runner has started the command.
static int claim_start(pid_t runner_pid, unsigned long long runner_start) {
  char temp_name[64], line[128];
  snprintf(temp_name, sizeof temp_name, "started.%d", getpid());
  int length =
      snprintf(line, sizeof line, "%d %llu %d %llu\n", getpid(), own_start_time(), runner_pid, runner_start);
  int fd = openat(dir_fd, temp_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd == -1) return errno;
  int error = write_all(fd, line, length);
  if (close(fd) == -1 && error == 0) error = errno;
  if (error == 0 && linkat(dir_fd, temp_name, dir_fd, "started", 0) == -1) error = errno;
  unlinkat(dir_fd, temp_name, 0);
  return error;
}

// Ignores all signals except those that cannot be ignored, those that report a fault, and SIGCHLD, which the runner
// reads from a signalfd.
static void ignore_signals(void) {
  static const int exceptions[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL,
                                   SIGFPE,  SIGABRT, SIGTRAP, SIGSYS, SIGCHLD};
  for (int number = 1; number < NSIG; number++) {
    int is_exception = 0;
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) is_exception |= exceptions[i] == number;
    if (!is_exception) signal(number, SIG_IGN);
  }
}

// Writes an errno (0: success) to a pipe and closes the pipe.
static void send_status(int fd, int error) {
  unsigned char byte = error > 255 ? EIO : error;
  write_all(fd, (char *)&byte, 1);
  close(fd);
}

// Reads an errno from a pipe and closes the pipe. Returns `error_if_closed` when the write end was closed without one.
static int receive_status(int fd, int error_if_closed) {
  unsigned char byte;
  ssize_t length;
  while ((length = read(fd, &byte, 1)) == -1 && errno == EINTR) {
  }
  close(fd);
  return length == 1 ? byte : error_if_closed;
}

// Blocks SIGCHLD and returns a signalfd that reads it, or -1. `previous_mask` is for the child.
static int open_sigchld(sigset_t *previous_mask) {
  // With an inherited SIG_IGN the kernel would discard the exit status of children.
  signal(SIGCHLD, SIG_DFL);
  sigset_t sigchld_mask;
  sigemptyset(&sigchld_mask);
  sigaddset(&sigchld_mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &sigchld_mask, previous_mask);
  return signalfd(-1, &sigchld_mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Opens DIR, and runs `run_process` in a runner, which has its own session. Returns the exit code of the program.
// `run_process` gets the arguments after DIR, and sends 0 to `launcher_fd` once the process runs. It returns the errno of a
// failed start, else 0.
static int launch(char **arguments, char **environment,
                  int (*run_process)(char **arguments, char **environment, int launcher_fd)) {
  // The process inherits no descriptor of the agent.
  syscall(SYS_close_range, 3, ~0U, 0);
  dir_fd = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir_fd == -1) return errno;
  int start_status_fds[2];
  if (pipe2(start_status_fds, O_CLOEXEC) == -1) return errno;
  pid_t runner_pid = fork();
  if (runner_pid == -1) return errno;
  if (runner_pid > 0) {
    close(start_status_fds[1]);
    int error = receive_status(start_status_fds[0], EIO);
    if (error != 0) waitpid(runner_pid, NULL, 0);
    return error;
  }
  close(start_status_fds[0]);
  setsid();
  int error = run_process(arguments + 2, environment, start_status_fds[1]);
  if (error != 0) send_status(start_status_fds[1], error);
  return error;
}
