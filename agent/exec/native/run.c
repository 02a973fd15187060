// Runs one detached command, copies its output to two log files and records its exit.
// Independent of the agent: the runner outlives it, and the process directory holds the complete state.
//
//   run DIR CWD MAX_LOG_BYTES FILE ARGV0 ARGUMENT...
//
// Exits with 0 once the command runs, else with the errno of what failed; EEXIST: a command for this id was started before.
// A second process stays behind as the parent of the command. Files in DIR:
//   started   "PID START RUNNER_PID RUNNER_START": hard-linked into place by the command's own process just before execve,
//             so that of any number of concurrent runners for one directory at most one starts the command
//   stdout, stderr   the output. Only the runner writes to them: the command gets pipes, because a command that holds a
//             file truncates it with `echo oops >/dev/stderr`, which opens the file again with O_TRUNC
//   exit      "EXITCODE SIGNAL FINISHED_MS STDOUT_BYTES STDERR_BYTES complete|incomplete", - for none; renamed into place
// Readers of a log watch the file (inotify).
// The command's environment is the runner's, except for the process id: the command has it as BOXWOOD_PROCESS_ID, the
// runner as BOXWOOD_RUNNER_FOR, so that terminating the command's process tree spares the runner.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNNER_VARIABLE "BOXWOOD_RUNNER_FOR"
#define COMMAND_VARIABLE "BOXWOOD_PROCESS_ID"
// The default capacity of a pipe. A log exceeds its bound by at most this much.
#define CHUNK_BYTES (64 * 1024)
#define BLOCK_BYTES 4096
#define EXIT_RECORD_BYTES 128
// After the command's exit, the last output waits this long for space on a full disk.
#define FULL_DISK_SECONDS 10

typedef struct {
  const char *name;
  // Read end of the command's pipe; -1 once every writer has closed it.
  int pipe;
  int file;
  long long size;
  // Bytes discarded at the head.
  long long discarded;
  // Output is discarded from now on: the bound is reached and the file system cannot punch holes, or the command exited.
  int full;
  // A write failed; the log is incomplete.
  int incomplete;
} Log;

static char chunk[CHUNK_BYTES];
static int dir;
static long long max_log_bytes;
static int can_punch_holes;
static pid_t command;

static void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static long long now_ms(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

// Start time of this process in clock ticks since boot. Together with the pid it identifies a process uniquely.
static unsigned long long own_start_time(void) {
  char line[1024];
  int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  ssize_t length = file == -1 ? -1 : read(file, line, sizeof line - 1);
  if (file != -1) close(file);
  if (length <= 0) return 0;
  line[length] = 0;
  // Field 2 is the name in parentheses, which may itself contain spaces and parentheses.
  char *at = strrchr(line, ')');
  for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
  return at == NULL ? 0 : strtoull(at, NULL, 10);
}

static int write_all(int file, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(file, bytes, length);
    if (written == -1 && errno == EINTR) continue;
    if (written == -1) return errno;
    bytes += written;
    length -= written;
  }
  return 0;
}

// ---- logs ------------------------------------------------------------------------------------------------------

static int command_has_exited(void) {
  siginfo_t info = {0};
  return waitid(P_PID, command, &info, WEXITED | WNOHANG | WNOWAIT) == -1 || info.si_pid != 0;
}

// On a full disk this blocks, and with it the command, like a pipe that is not read: no output is lost.
static void append(Log *log, const char *bytes, size_t length) {
  long long exited_at = 0;
  while (length > 0) {
    ssize_t written = write(log->file, bytes, length);
    if (written > 0) {
      log->size += written;
      bytes += written;
      length -= written;
      continue;
    }
    if (errno == EINTR) continue;
    if (exited_at == 0 && command_has_exited()) exited_at = now_ms(CLOCK_MONOTONIC);
    int may_wait = exited_at == 0 || now_ms(CLOCK_MONOTONIC) - exited_at < FULL_DISK_SECONDS * 1000;
    if ((errno != ENOSPC && errno != EDQUOT) || !may_wait) {
      log->incomplete = 1;
      break;
    }
    sleep_ms(100);
  }
}

// Offset of the first retained byte. The agent's log-bounds.ts computes the same value from the size alone.
static long long first_retained_offset(long long size) {
  long long step = max_log_bytes / 8 / BLOCK_BYTES * BLOCK_BYTES;
  if (step < BLOCK_BYTES) step = BLOCK_BYTES;
  return size <= max_log_bytes ? 0 : (size - max_log_bytes + step - 1) / step * step;
}

static void write_output(Log *log, const char *bytes, size_t length) {
  if (log->full || log->incomplete) return;
  if (!can_punch_holes) {
    char notice[160];
    int notice_length = snprintf(notice, sizeof notice,
                                 "\n[boxwood: output discarded from here on: the limit is %lld bytes, and this file "
                                 "system cannot free the head of a log]\n",
                                 max_log_bytes);
    if (log->size + (long long)length + notice_length > max_log_bytes) {
      long long space = max_log_bytes - notice_length - log->size;
      append(log, bytes, space > 0 ? space : 0);
      append(log, notice, notice_length);
      log->full = 1;
      return;
    }
  }
  append(log, bytes, length);
  long long head = first_retained_offset(log->size);
  if (head <= log->discarded) return;
  fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, log->discarded, head - log->discarded);
  log->discarded = head;
}

// Copies up to `max` bytes from the pipe to the log.
static void copy_output(Log *log, size_t max) {
  ssize_t length = read(log->pipe, chunk, max < CHUNK_BYTES ? max : CHUNK_BYTES);
  if (length > 0) return write_output(log, chunk, length);
  if (length == -1 && (errno == EINTR || errno == EAGAIN)) return;
  close(log->pipe);
  log->pipe = -1;
}

// Copies what was in the pipe when the command exited. Output of background processes after that is discarded.
static void drain(Log *log) {
  int remaining = 0;
  if (log->pipe == -1 || ioctl(log->pipe, FIONREAD, &remaining) == -1) return;
  while (remaining > 0 && log->pipe != -1) {
    size_t max = remaining < CHUNK_BYTES ? remaining : CHUNK_BYTES;
    remaining -= max;
    copy_output(log, max);
  }
}

static int open_log(Log *log) {
  log->file = openat(dir, log->name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log->file == -1) return errno;
  // Probe on the empty file: does the file system support hole punching?
  can_punch_holes = fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK_BYTES) == 0;
  return 0;
}

// ---- the command -----------------------------------------------------------------------------------------------

static char **command_environment(char **environment) {
  size_t count = 0, length = strlen(RUNNER_VARIABLE "=");
  while (environment[count] != NULL) count++;
  char **result = calloc(count + 1, sizeof *result);
  for (size_t i = 0; result != NULL && i < count; i++) {
    result[i] = environment[i];
    if (strncmp(environment[i], RUNNER_VARIABLE "=", length) != 0) continue;
    if (asprintf(&result[i], COMMAND_VARIABLE "=%s", environment[i] + length) == -1) return NULL;
  }
  return result;
}

// Creates `started`. EEXIST: another runner was first.
static int claim_start(pid_t runner, unsigned long long runner_start) {
  char name[64], line[128];
  snprintf(name, sizeof name, "started.%d", getpid());
  int length =
      snprintf(line, sizeof line, "%d %llu %d %llu\n", getpid(), own_start_time(), runner, runner_start);
  int file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file == -1) return errno;
  int error = write_all(file, line, length);
  if (close(file) == -1 && error == 0) error = errno;
  if (error == 0 && linkat(dir, name, dir, "started", 0) == -1) error = errno;
  unlinkat(dir, name, 0);
  return error;
}

// In the child: executes the command. Returns the errno of what failed.
static int exec_command(char **arguments, char **environment, const int output[2], pid_t runner,
                        unsigned long long runner_start) {
  setsid();
  if (dup2(output[0], 1) == -1 || dup2(output[1], 2) == -1) return errno;
  if (chdir(arguments[0]) == -1) return errno;
  char **own_environment = command_environment(environment);
  if (own_environment == NULL) return ENOMEM;
  int error = claim_start(runner, runner_start);
  if (error != 0) return error;
  execve(arguments[2], arguments + 3, own_environment);
  error = errno;
  // This process created the file, and the command did not start.
  unlinkat(dir, "started", 0);
  return error;
}

// ---- the exit record -------------------------------------------------------------------------------------------

// Allocates the file at the start, so that recording the exit needs no space on a disk that may be full by then.
static int reserve_exit_record(const char *name) {
  char blank[EXIT_RECORD_BYTES];
  memset(blank, ' ', sizeof blank);
  int file = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file == -1) return -1;
  int error = write_all(file, blank, sizeof blank);
  if (error == 0) return file;
  close(file);
  errno = error;
  return -1;
}

static void record_exit(int file, const char *name, const char *id, const siginfo_t *info, const Log *logs) {
  char line[EXIT_RECORD_BYTES], code[16], signal[16];
  int exited = info->si_code == CLD_EXITED;
  snprintf(code, sizeof code, exited ? "%d" : "-", info->si_status);
  snprintf(signal, sizeof signal, exited ? "-" : "%d", info->si_status);
  memset(line, ' ', sizeof line);
  int length = snprintf(line, sizeof line, "%s %s %lld %lld %lld %s", code, signal, now_ms(CLOCK_REALTIME),
                        logs[0].size, logs[1].size,
                        logs[0].incomplete || logs[1].incomplete ? "incomplete" : "complete");
  line[length] = ' ';
  line[sizeof line - 1] = '\n';
  while (pwrite(file, line, sizeof line, 0) != sizeof line) sleep_ms(1000);
  close(file);
  // ENOENT: the process directory was deleted.
  while (renameat(dir, name, dir, "exit") == -1 && errno != ENOENT) sleep_ms(1000);
  // Notifies the agent, which watches this directory.
  char notification[512];
  snprintf(notification, sizeof notification, "../.exited/%s", id);
  file = openat(dir, notification, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file != -1) close(file);
}

// ---- the runner ------------------------------------------------------------------------------------------------

static void ignore_signals(void) {
  static const int excluded[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL,
                                 SIGFPE,  SIGABRT, SIGTRAP, SIGSYS, SIGCHLD};
  for (int number = 1; number < NSIG; number++) {
    int is_excluded = 0;
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++) is_excluded |= excluded[i] == number;
    if (!is_excluded) signal(number, SIG_IGN);
  }
}

// Reaps exited children, including adopted ones. Returns 0 when no child is left.
static int reap(siginfo_t *command_exit) {
  for (;;) {
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == -1) return 0;
    if (info.si_pid == 0) return 1;
    if (info.si_pid == command) *command_exit = info;
  }
}

// Waits for output or for SIGCHLD and copies the output. Returns 1 on SIGCHLD.
static int poll_once(Log *logs, int child_signals) {
  struct pollfd polled[3] = {{logs[0].pipe, POLLIN, 0}, {logs[1].pipe, POLLIN, 0}, {child_signals, POLLIN, 0}};
  if (poll(polled, 3, -1) <= 0) return 0;
  for (int i = 0; i < 2; i++)
    if (polled[i].revents != 0) copy_output(&logs[i], CHUNK_BYTES);
  struct signalfd_siginfo info;
  return polled[2].revents != 0 && read(child_signals, &info, sizeof info) > 0;
}

static void wait_for_command(Log *logs, int child_signals, siginfo_t *command_exit) {
  while (command_exit->si_pid != command)
    if (poll_once(logs, child_signals) && !reap(command_exit)) break;
}

// Stays while background processes of the command run. Keeps the pipes open and discards the output, because a closed
// pipe would kill the writers with SIGPIPE. As their subreaper it also keeps them in the command's process tree.
static void wait_for_background(Log *logs, int child_signals, siginfo_t *command_exit) {
  for (int i = 0; i < 2; i++) {
    logs[i].full = 1;
    close(logs[i].file);
  }
  int has_children = reap(command_exit);
  while (has_children || logs[0].pipe != -1 || logs[1].pipe != -1)
    if (poll_once(logs, child_signals)) has_children = reap(command_exit);
}

// Sends an errno (0: success) through a pipe and closes it.
static void send_status(int to, int error) {
  unsigned char byte = error > 255 ? EIO : error;
  write_all(to, (char *)&byte, 1);
  close(to);
}

// Receives the errno; `if_closed` when the pipe was closed without one.
static int receive_status(int from, int if_closed) {
  unsigned char byte;
  ssize_t length;
  while ((length = read(from, &byte, 1)) == -1 && errno == EINTR) {
  }
  close(from);
  return length == 1 ? byte : if_closed;
}

static int run(char **arguments, char **environment, const char *id, int launcher) {
  Log logs[2] = {{.name = "stdout"}, {.name = "stderr"}};
  char exit_name[64];
  int output[2], status[2];
  snprintf(exit_name, sizeof exit_name, "exit.%d", getpid());
  for (int i = 0; i < 2; i++) {
    int ends[2];
    int error = open_log(&logs[i]);
    if (error != 0) return error;
    if (pipe2(ends, O_CLOEXEC) == -1) return errno;
    logs[i].pipe = ends[0];
    output[i] = ends[1];
  }
  int exit_file = reserve_exit_record(exit_name);
  if (exit_file == -1 || pipe2(status, O_CLOEXEC) == -1) return errno;

  // With an inherited SIG_IGN the kernel would discard the exit status of children.
  signal(SIGCHLD, SIG_DFL);
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  int child_signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (child_signals == -1) return errno;
  pid_t runner = getpid();
  unsigned long long start = own_start_time();
  command = fork();
  if (command == -1) return errno;
  if (command == 0) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    send_status(status[1], exec_command(arguments, environment, output, runner, start));
    _exit(127);
  }
  ignore_signals();
  // Orphaned descendants become children of the runner, so that they stay in the command's process tree.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  close(status[1]);
  close(output[0]);
  close(output[1]);
  // A successful execve closes the pipe.
  int error = receive_status(status[0], 0);
  if (error != 0) {
    unlinkat(dir, exit_name, 0);
    return error;
  }
  send_status(launcher, 0);
  // Does not keep a file system busy that is to be unmounted.
  if (chdir("/") == -1) return 0;
  for (int i = 0; i < 2; i++) fcntl(logs[i].pipe, F_SETFL, O_NONBLOCK);

  siginfo_t command_exit = {0};
  wait_for_command(logs, child_signals, &command_exit);
  for (int i = 0; i < 2; i++) drain(&logs[i]);
  record_exit(exit_file, exit_name, id, &command_exit, logs);
  wait_for_background(logs, child_signals, &command_exit);
  return 0;
}

int main(int count, char **arguments, char **environment) {
  // Probe by the agent: does the binary run on this system?
  if (count == 1) return 0;
  if (count < 6) return EINVAL;
  // The command inherits no descriptor of the agent.
  syscall(SYS_close_range, 3, ~0U, 0);
  max_log_bytes = atoll(arguments[3]);
  dir = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir == -1) return errno;
  const char *id = strrchr(arguments[1], '/');
  int status[2];
  if (pipe2(status, O_CLOEXEC) == -1) return errno;
  pid_t runner = fork();
  if (runner == -1) return errno;
  if (runner > 0) {
    close(status[1]);
    int error = receive_status(status[0], EIO);
    if (error != 0) waitpid(runner, NULL, 0);
    return error;
  }
  close(status[0]);
  setsid();
  int error = run(arguments + 2, environment, id == NULL ? arguments[1] : id + 1, status[1]);
  if (error != 0) send_status(status[1], error);
  return error;
}
