// Runs one detached command, copies its output to two log files and records its exit.
//
//   run DIR CWD MAX_LOG_BYTES MODE FILE ARGV0 ARGUMENT...
//
// MODE is detached, attached or attached-stdin.
//
// runner.h describes the launcher, the runner, the environment and the file `started`.
//
// The runner is the parent of the command. The runner outlives the agent, and DIR holds the complete state:
//   started   see runner.h
//   stdout, stderr   the output, written only by the runner. The command has pipes: with the file itself as standard
//             error, `echo oops >/dev/stderr` would open the file with O_TRUNC and discard the log
//   stdout.times, stderr.times   when the output was read from the command's pipe: a ring buffer of records of two 64-bit
//             little-endian integers, the time in milliseconds since the epoch and the offset of the first byte
//   exit      "EXITCODE SIGNAL FINISHED_MS STDOUT_BYTES STDERR_BYTES complete|incomplete"; renamed into place.
//             EXITCODE is - for a command that a signal terminated; otherwise SIGNAL is -
//
// An attached command has a client that reads its output: the runner stops reading the command's pipe while the client is
// ATTACHED_WINDOW_BYTES behind, which blocks the command. FIFOs in DIR, created by the runner:
//   control   lines written by the agent: "ack STDOUT STDERR" (offsets that the client has processed), "eof" (end of
//             stdin) and "detach" (no client reads the output any more)
//   stdin     only with attached-stdin: the standard input of the command. The runner holds a write end until "eof", so that
//             the command sees no end of file when the agent is killed
//
// The runner sends no notification of new output: readers watch the log files (inotify).
#include "runner.h"

#include <endian.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

// Maximum size of one read from a pipe, equal to the default capacity of a pipe. A log exceeds its bound by at most this
// much.
#define CHUNK_BYTES (64 * 1024)
// Hole punching frees whole file system blocks.
#define BLOCK_BYTES 4096
#define EXIT_RECORD_BYTES 128
// Output that an attached command may write beyond what the client has acknowledged. ATTACHED_LOG_BYTES in start.ts is
// larger by enough, so that this output is never discarded.
#define ATTACHED_WINDOW_BYTES (8 * 1024 * 1024)
// Capacity of the stdin FIFO: larger than the default, for throughput.
#define STDIN_PIPE_BYTES (1024 * 1024)
// On a full disk, the runner retries for this long after the command's exit to write the final output.
#define FULL_DISK_TIMEOUT_SECONDS 10
// At most one record of the time index per interval. output-times.ts has the same two values.
#define TIME_INTERVAL_MS 100
#define MAX_TIME_RECORDS (64 * 1024)

typedef struct {
  const char *name;
  const char *times_name;
  // Read end of the command's pipe; -1 once every writer has closed the pipe.
  int pipe_fd;
  int file_fd;
  // The time index; -1 if it could not be created.
  int times_fd;
  long long time_records;
  // CLOCK_MONOTONIC.
  long long time_recorded_at;
  long long size;
  // Bytes that the attached client has processed.
  long long acknowledged;
  // Bytes discarded at the head.
  long long discarded_bytes;
  // Set when the bound is reached and the file system cannot punch holes, and when the command has exited.
  int discard_output;
  // A write failed; the log is incomplete.
  int incomplete;
} Log;

static char chunk[CHUNK_BYTES];
static const char *process_id;
static long long max_log_bytes;
static int can_punch_holes;
static pid_t command_pid;
// The output waits for an attached client.
static int is_attached;
// The FIFOs of an attached command; -1 when closed.
static int control_fd = -1;
static int stdin_write_fd = -1;

// ---- logs ------------------------------------------------------------------------------------------------------

static int command_has_exited(void) {
  siginfo_t info = {0};
  return waitid(P_PID, command_pid, &info, WEXITED | WNOHANG | WNOWAIT) == -1 || info.si_pid != 0;
}

// Appends to the log. On a full disk, retries until there is space: the command's pipe fills up and blocks the command,
// so that no output is lost. After the command's exit, retries only for FULL_DISK_TIMEOUT_SECONDS. Marks the log
// incomplete on failure.
static void append_to_log(Log *log, const char *bytes, size_t length) {
  long long exit_seen_at = 0;
  while (length > 0) {
    ssize_t written = write(log->file_fd, bytes, length);
    if (written > 0) {
      log->size += written;
      bytes += written;
      length -= written;
      continue;
    }
    int error = errno;
    if (error == EINTR) continue;
    if (exit_seen_at == 0 && command_has_exited()) exit_seen_at = now_ms(CLOCK_MONOTONIC);
    int may_retry = exit_seen_at == 0 || now_ms(CLOCK_MONOTONIC) - exit_seen_at < FULL_DISK_TIMEOUT_SECONDS * 1000;
    if ((error != ENOSPC && error != EDQUOT) || !may_retry) {
      log->incomplete = 1;
      break;
    }
    sleep_ms(100);
  }
}

// Records when the next byte of the log was read. Written before the byte, so that a reader of the byte finds the record.
// A failed write is repeated with the next output. A record of 16 bytes is within one page: SIGKILL does not split it.
static void record_time(Log *log) {
  long long now = now_ms(CLOCK_MONOTONIC);
  if (log->times_fd == -1 || (log->time_records > 0 && now - log->time_recorded_at < TIME_INTERVAL_MS)) return;
  uint64_t record[2] = {htole64(now_ms(CLOCK_REALTIME)), htole64(log->size)};
  off_t position = log->time_records % MAX_TIME_RECORDS * sizeof record;
  if (pwrite(log->times_fd, record, sizeof record, position) != sizeof record) return;
  log->time_records += 1;
  log->time_recorded_at = now;
}

// Offset of the first retained byte. The agent's log-bounds.ts computes the same value from the size alone.
static long long first_retained_offset(long long size) {
  long long step = max_log_bytes / 8 / BLOCK_BYTES * BLOCK_BYTES;
  if (step < BLOCK_BYTES) step = BLOCK_BYTES;
  return size <= max_log_bytes ? 0 : (size - max_log_bytes + step - 1) / step * step;
}

// Writes output to the log and discards the head beyond the bound.
static void write_output(Log *log, const char *bytes, size_t length) {
  if (log->discard_output || log->incomplete) return;
  record_time(log);
  if (!can_punch_holes && !is_attached) {
    char notice[160];
    int notice_length = snprintf(notice, sizeof notice,
                                 "\n[boxwood: log limit of %lld bytes reached. Later output is discarded, because the "
                                 "file system does not support hole punching.]\n",
                                 max_log_bytes);
    if (log->size + (long long)length + notice_length > max_log_bytes) {
      long long space = max_log_bytes - notice_length - log->size;
      append_to_log(log, bytes, space > 0 ? space : 0);
      append_to_log(log, notice, notice_length);
      log->discard_output = 1;
      return;
    }
  }
  append_to_log(log, bytes, length);
  long long head = first_retained_offset(log->size);
  if (head <= log->discarded_bytes) return;
  fallocate(log->file_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, log->discarded_bytes,
            head - log->discarded_bytes);
  log->discarded_bytes = head;
}

// Copies up to `max` bytes from the pipe to the log.
static void copy_output(Log *log, size_t max) {
  ssize_t length = read(log->pipe_fd, chunk, max < CHUNK_BYTES ? max : CHUNK_BYTES);
  if (length > 0) return write_output(log, chunk, length);
  if (length == -1 && (errno == EINTR || errno == EAGAIN)) return;
  close(log->pipe_fd);
  log->pipe_fd = -1;
}

// Call at the command's exit. Copies the bytes that the pipe holds. Later output of background processes is discarded.
static void drain(Log *log) {
  int remaining = 0;
  if (log->pipe_fd == -1 || ioctl(log->pipe_fd, FIONREAD, &remaining) == -1) return;
  while (remaining > 0 && log->pipe_fd != -1) {
    size_t max = remaining < CHUNK_BYTES ? remaining : CHUNK_BYTES;
    remaining -= max;
    copy_output(log, max);
  }
}

// Returns 0 or an errno.
static int open_log(Log *log) {
  log->file_fd = openat(dir_fd, log->name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log->file_fd == -1) return errno;
  log->times_fd = openat(dir_fd, log->times_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  // Tests on the empty file whether the file system supports hole punching.
  can_punch_holes = fallocate(log->file_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK_BYTES) == 0;
  return 0;
}

// ---- attached commands -----------------------------------------------------------------------------------------

// Returns 0 or an errno.
static int open_control_fifo(void) {
  if (mkfifoat(dir_fd, "control", 0600) == -1) return errno;
  // With a write end of its own, the runner sees no end of file when the agent closes its end.
  control_fd = openat(dir_fd, "control", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  return control_fd == -1 ? errno : 0;
}

// Opens both ends of the stdin FIFO. The caller closes `*read_fd` once the command has its own read end. Returns 0 or an
// errno.
static int open_stdin_fifo(int *read_fd) {
  if (mkfifoat(dir_fd, "stdin", 0600) == -1) return errno;
  *read_fd = openat(dir_fd, "stdin", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (*read_fd == -1) return errno;
  stdin_write_fd = openat(dir_fd, "stdin", O_WRONLY | O_CLOEXEC);
  if (stdin_write_fd == -1) return errno;
  // Fails when the user has too many large pipes; the default capacity is used then.
  fcntl(stdin_write_fd, F_SETPIPE_SZ, STDIN_PIPE_BYTES);
  // The command gets a blocking read end.
  return fcntl(*read_fd, F_SETFL, 0) == -1 ? errno : 0;
}

static void detach(void) {
  is_attached = 0;
  close_fd(&stdin_write_fd);
}

static int is_waiting_for_client(const Log *log) {
  return is_attached && log->size - log->acknowledged >= ATTACHED_WINDOW_BYTES;
}

static void handle_control_line(Log *logs, const char *line) {
  long long stdout_offset, stderr_offset;
  if (sscanf(line, "ack %lld %lld", &stdout_offset, &stderr_offset) == 2) {
    if (stdout_offset > logs[0].acknowledged) logs[0].acknowledged = stdout_offset;
    if (stderr_offset > logs[1].acknowledged) logs[1].acknowledged = stderr_offset;
  } else if (strcmp(line, "eof") == 0)
    close_fd(&stdin_write_fd);
  else if (strcmp(line, "detach") == 0)
    detach();
}

// Reads lines from the control FIFO. The agent writes each line at once, but a read may end inside a line.
static void read_control(Log *logs) {
  static char buffer[4096];
  static size_t used = 0;
  ssize_t length = read(control_fd, buffer + used, sizeof buffer - 1 - used);
  if (length <= 0) return;
  used += length;
  buffer[used] = 0;
  char *line = buffer, *newline;
  while ((newline = strchr(line, '\n')) != NULL) {
    *newline = 0;
    handle_control_line(logs, line);
    line = newline + 1;
  }
  used -= line - buffer;
  memmove(buffer, line, used);
  // Not a line of the agent.
  if (used == sizeof buffer - 1) used = 0;
}

// ---- the command -----------------------------------------------------------------------------------------------

// Runs in the forked child: executes the command. Returns the errno of the failed call.
// `arguments` are CWD MAX_LOG_BYTES MODE FILE ARGV0 ARGUMENT...; `output_fds` are the write ends of the pipes; `stdin_fd`
// is -1 when the command inherits stdin.
static int exec_command(char **arguments, char **environment, int stdin_fd, const int output_fds[2], pid_t runner_pid,
                        unsigned long long runner_start) {
  const char *cwd = arguments[0], *file = arguments[3];
  char **argv = arguments + 4;
  setsid();
  if (stdin_fd != -1 && dup2(stdin_fd, 0) == -1) return errno;
  if (dup2(output_fds[0], 1) == -1 || dup2(output_fds[1], 2) == -1) return errno;
  if (chdir(cwd) == -1) return errno;
  char **envp = command_environment(environment);
  if (envp == NULL) return ENOMEM;
  int error = claim_start(runner_pid, runner_start);
  if (error != 0) return error;
  execve(file, argv, envp);
  error = errno;
  // claim_start() created `started`, but the command did not start.
  unlinkat(dir_fd, "started", 0);
  return error;
}

// ---- the exit record -------------------------------------------------------------------------------------------

// Allocates the exit record before the command starts: the disk may be full when the command exits.
// Returns the descriptor, or -1 with errno.
static int reserve_exit_record(const char *temp_name) {
  char blank[EXIT_RECORD_BYTES];
  memset(blank, ' ', sizeof blank);
  int fd = openat(dir_fd, temp_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd == -1) return -1;
  int error = write_all(fd, blank, sizeof blank);
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

static void record_exit(int fd, const char *temp_name, const siginfo_t *info, const Log *logs) {
  char line[EXIT_RECORD_BYTES], code_text[16], signal_text[16];
  int exited = info->si_code == CLD_EXITED;
  snprintf(code_text, sizeof code_text, exited ? "%d" : "-", info->si_status);
  snprintf(signal_text, sizeof signal_text, exited ? "-" : "%d", info->si_status);
  memset(line, ' ', sizeof line);
  int length = snprintf(line, sizeof line, "%s %s %lld %lld %lld %s", code_text, signal_text,
                        now_ms(CLOCK_REALTIME), logs[0].size, logs[1].size,
                        logs[0].incomplete || logs[1].incomplete ? "incomplete" : "complete");
  line[length] = ' ';
  line[sizeof line - 1] = '\n';
  while (pwrite(fd, line, sizeof line, 0) != sizeof line) sleep_ms(1000);
  close(fd);
  // ENOENT: the process directory was deleted.
  while (renameat(dir_fd, temp_name, dir_fd, "exit") == -1 && errno != ENOENT) sleep_ms(1000);
  // Notifies the agent, which watches the directory .exited.
  char notification[512];
  snprintf(notification, sizeof notification, "../.exited/%s", process_id);
  fd = openat(dir_fd, notification, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd != -1) close(fd);
}

// ---- the runner ------------------------------------------------------------------------------------------------

// Reaps exited children, including orphaned descendants of the command that were reparented to the runner. Returns 0 when
// no child is left.
static int reap(siginfo_t *command_exit) {
  for (;;) {
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == -1) return 0;
    if (info.si_pid == 0) return 1;
    if (info.si_pid == command_pid) *command_exit = info;
  }
}

// Waits for output, a control line or SIGCHLD, and copies the output. Returns 1 on SIGCHLD.
static int poll_once(Log *logs, int sigchld_fd) {
  struct pollfd polled[4] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}, {sigchld_fd, POLLIN, 0}, {control_fd, POLLIN, 0}};
  for (int i = 0; i < 2; i++)
    if (!is_waiting_for_client(&logs[i])) polled[i].fd = logs[i].pipe_fd;
  if (poll(polled, 4, -1) <= 0) return 0;
  if (polled[3].revents != 0) read_control(logs);
  for (int i = 0; i < 2; i++)
    if (polled[i].revents != 0) copy_output(&logs[i], CHUNK_BYTES);
  struct signalfd_siginfo info;
  return polled[2].revents != 0 && read(sigchld_fd, &info, sizeof info) > 0;
}

static void wait_for_command(Log *logs, int sigchld_fd, siginfo_t *command_exit) {
  while (command_exit->si_pid != command_pid)
    if (poll_once(logs, sigchld_fd) && !reap(command_exit)) break;
}

// Waits until the background processes of the command have exited. Keeps the pipes open and discards the output,
// because a closed pipe would kill the writers with SIGPIPE. As subreaper, the runner also keeps these processes in the
// command's process tree.
static void wait_for_background_processes(Log *logs, int sigchld_fd, siginfo_t *command_exit) {
  detach();
  close_fd(&control_fd);
  for (int i = 0; i < 2; i++) {
    logs[i].discard_output = 1;
    close(logs[i].file_fd);
    close_fd(&logs[i].times_fd);
  }
  int has_children = reap(command_exit);
  while (has_children || logs[0].pipe_fd != -1 || logs[1].pipe_fd != -1)
    if (poll_once(logs, sigchld_fd)) has_children = reap(command_exit);
}

// The runner. Sends 0 to the launcher once the command runs. Returns the errno of a failed start, else 0 after the
// command and its background processes have exited.
static int run_command(char **arguments, char **environment, int launcher_fd) {
  Log logs[2] = {{.name = "stdout", .times_name = "stdout.times"}, {.name = "stderr", .times_name = "stderr.times"}};
  char exit_temp_name[64];
  int output_fds[2], exec_status_fds[2];
  snprintf(exit_temp_name, sizeof exit_temp_name, "exit.%d", getpid());
  for (int i = 0; i < 2; i++) {
    int pipe_fds[2];
    int error = open_log(&logs[i]);
    if (error != 0) return error;
    if (pipe2(pipe_fds, O_CLOEXEC) == -1) return errno;
    logs[i].pipe_fd = pipe_fds[0];
    output_fds[i] = pipe_fds[1];
  }
  const char *mode = arguments[2];
  int stdin_fd = -1, error = 0;
  is_attached = strcmp(mode, "detached") != 0;
  if (is_attached) error = open_control_fifo();
  if (error == 0 && strcmp(mode, "attached-stdin") == 0) error = open_stdin_fifo(&stdin_fd);
  if (error != 0) return error;
  int exit_fd = reserve_exit_record(exit_temp_name);
  if (exit_fd == -1 || pipe2(exec_status_fds, O_CLOEXEC) == -1) return errno;

  sigset_t previous_mask;
  int sigchld_fd = open_sigchld(&previous_mask);
  if (sigchld_fd == -1) return errno;
  pid_t runner_pid = getpid();
  unsigned long long runner_start = own_start_time();
  command_pid = fork();
  if (command_pid == -1) return errno;
  if (command_pid == 0) {
    sigprocmask(SIG_SETMASK, &previous_mask, NULL);
    send_status(exec_status_fds[1], exec_command(arguments, environment, stdin_fd, output_fds, runner_pid, runner_start));
    _exit(127);
  }
  ignore_signals();
  // Orphaned descendants become children of the runner, so that they stay in the command's process tree.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  close(exec_status_fds[1]);
  close(output_fds[0]);
  close(output_fds[1]);
  // A successful execve closes the pipe, which has O_CLOEXEC.
  error = receive_status(exec_status_fds[0], 0);
  close_fd(&stdin_fd);
  if (error != 0) {
    unlinkat(dir_fd, exit_temp_name, 0);
    return error;
  }
  send_status(launcher_fd, 0);
  // Leave the working directory, so that its file system can be unmounted.
  if (chdir("/") == -1) return 0;
  for (int i = 0; i < 2; i++) fcntl(logs[i].pipe_fd, F_SETFL, O_NONBLOCK);

  siginfo_t command_exit = {0};
  wait_for_command(logs, sigchld_fd, &command_exit);
  for (int i = 0; i < 2; i++) drain(&logs[i]);
  record_exit(exit_fd, exit_temp_name, &command_exit, logs);
  wait_for_background_processes(logs, sigchld_fd, &command_exit);
  return 0;
}

int main(int count, char **arguments, char **environment) {
  // The agent runs the program without arguments to test whether it works on this system.
  if (count == 1) return 0;
  if (count < 7) return EINVAL;
  max_log_bytes = atoll(arguments[3]);
  // The name of the process directory is the process id.
  const char *slash = strrchr(arguments[1], '/');
  process_id = slash == NULL ? arguments[1] : slash + 1;
  return launch(arguments, environment, run_command);
}
