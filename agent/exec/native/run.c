// Runs one detached command: takes what it prints to its two logs, and writes down how it ended.
// It needs nobody: it outlives the agent that started it, and whoever reads its folder knows all there is to know.
//
//   run FOLDER CWD KEEP_BYTES FILE ARGV0 ARGUMENT...
//
// Exits with 0 once the command runs, else with the error number of what stopped it; EEXIST: this id runs already.
// A second process stays behind with the command. In FOLDER:
//   started   "PID START RUNNER_PID RUNNER_START": linked into place by the command's own process just before it becomes
//             the command, so that of any number of runners for one folder at most one ever runs it
//   stdout, stderr   what it printed. The runner is the only one who writes there: the command has pipes, because one
//             that has a file loses it all at its first `echo oops >/dev/stderr`, which opens the file anew and empties it
//   changes   a FIFO with a byte of the log's own for each time that something was added to one: who waits for output
//             sleeps on reading from it. Nobody has to; what no longer goes in is said already. To who has heard all
//             before, a short addition is told with its bytes, and need not be read: 1, the log's own byte, the offset
//             (6 bytes) and the length (2 bytes), least significant first, then as many bytes
//   exit      "EXITCODE SIGNAL FINISHED_MS STDOUT_BYTES STDERR_BYTES whole|cut", - for none; renamed into place
// The environment is the command's, but for its mark, which the command carries as BOXWOOD_PROCESS_ID and the runner as
// BOXWOOD_RUNNER_FOR: whoever ends the command's tree must not take the runner for a part of it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNNER_MARK "BOXWOOD_RUNNER_FOR"
#define COMMAND_MARK "BOXWOOD_PROCESS_ID"
// As large as a pipe: a log is never further over its bound than this.
#define CHUNK (64 * 1024)
#define BLOCK 4096
#define EXIT_BYTES 128
// How long the last bytes of an ended command wait for room on a full disk.
#define FULL_DISK_SECONDS 10
// A wait for a processor that is too long to be worth it that the command was not interrupted, and for how long the
// runner does interrupt it then.
#define LATE_NS 500000
#define INTERRUPT_MS 1000
// Between two looks at that, at least: they hold up who waits for the output.
#define LOOK_MS 100
// Told with its bytes is an addition of at most so many: with what precedes them well below what a FIFO takes whole.
#define TOLD_BYTES 1024
#define TOLD_HEAD_BYTES 10

typedef struct {
  const char *name;
  // What stands for it in `changes`.
  char letter;
  // The read end of the command's pipe; -1 when nobody can write to it any more.
  int pipe;
  int file;
  long long size;
  // Bytes at its head that were given back to the file system.
  long long given_up;
  // Where the file system gives nothing back: from then on nothing is kept.
  int full;
  int cut;
} Log;

static char chunk[CHUNK];
static int folder;
// -1: there is none, and who follows a log has to watch the file.
static int changes = -1;
static long long keep;
static int can_punch;
static pid_t command;

static void pause_ms(long ms) {
  struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static long long now_ms(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

// Ticks from the boot to the start of this process: with the pid it names it for good.
static unsigned long long own_start(void) {
  char line[1024];
  int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  ssize_t length = file == -1 ? -1 : read(file, line, sizeof line - 1);
  if (file != -1) close(file);
  if (length <= 0) return 0;
  line[length] = 0;
  // The name stands in parentheses and may itself hold spaces and parentheses.
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

// ---- the logs --------------------------------------------------------------------------------------------------

static int has_ended(void) {
  siginfo_t end = {0};
  return waitid(P_PID, command, &end, WEXITED | WNOHANG | WNOWAIT) == -1 || end.si_pid != 0;
}

static void open_changes(void) {
  if (mkfifoat(folder, "changes", 0600) == -1 && errno != EEXIST) return;
  // For reading too, as long as it runs: it opens without a reader, and no reader's end is the end of it.
  changes = openat(folder, "changes", O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (changes == -1) unlinkat(folder, "changes", 0);
  // All that a FIFO without a reader may take of the system's memory.
  else fcntl(changes, F_SETPIPE_SZ, BLOCK);
}

static int all_heard(void) {
  int unheard;
  return ioctl(changes, FIONREAD, &unheard) == 0 && unheard == 0;
}

// The bytes are the last of the log.
static void say_added(const Log *log, const char *bytes, size_t length) {
  char head[TOLD_HEAD_BYTES] = {1, log->letter};
  struct iovec told[2] = {{head, sizeof head}, {(char *)bytes, length}};
  struct iovec letter = {(char *)&log->letter, 1};
  if (changes == -1) return;
  for (int i = 0; i < 6; i++) head[2 + i] = (log->size - (long long)length) >> (8 * i);
  for (int i = 0; i < 2; i++) head[8 + i] = length >> (8 * i);
  int with_bytes = length <= TOLD_BYTES && all_heard();
  // That it is full says enough.
  if (writev(changes, with_bytes ? told : &letter, with_bytes ? 2 : 1) == -1) return;
}

// A full disk stops the command like a pipe that nobody reads, until there is room again: nothing is lost by it.
static void append(Log *log, const char *bytes, size_t length) {
  long long ended_at = 0;
  while (length > 0) {
    ssize_t written = write(log->file, bytes, length);
    if (written > 0) {
      log->size += written;
      say_added(log, bytes, written);
      bytes += written;
      length -= written;
      continue;
    }
    if (errno == EINTR) continue;
    if (ended_at == 0 && has_ended()) ended_at = now_ms(CLOCK_MONOTONIC);
    int patient = ended_at == 0 || now_ms(CLOCK_MONOTONIC) - ended_at < FULL_DISK_SECONDS * 1000;
    if ((errno != ENOSPC && errno != EDQUOT) || !patient) {
      log->cut = 1;
      break;
    }
    pause_ms(100);
  }
}

// The same sum as in the agent's ring.ts: from a size alone each reader knows which bytes may be gone.
static long long head_of(long long size) {
  long long granule = keep / 8 / BLOCK * BLOCK;
  if (granule < BLOCK) granule = BLOCK;
  return size <= keep ? 0 : (size - keep + granule - 1) / granule * granule;
}

static void keep_output(Log *log, const char *bytes, size_t length) {
  if (log->full || log->cut) return;
  if (!can_punch) {
    char notice[160];
    int words = snprintf(notice, sizeof notice,
                         "\n[boxwood: the rest is not kept: this file system cannot give up the beginning of a "
                         "log of %lld bytes]\n",
                         keep);
    if (log->size + (long long)length + words > keep) {
      append(log, bytes, keep - words > log->size ? keep - words - log->size : 0);
      append(log, notice, words);
      log->full = 1;
      return;
    }
  }
  append(log, bytes, length);
  long long head = head_of(log->size);
  if (head <= log->given_up) return;
  fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, log->given_up, head - log->given_up);
  log->given_up = head;
}

// Takes over at most `most` bytes.
static void take(Log *log, size_t most) {
  ssize_t length = read(log->pipe, chunk, most < CHUNK ? most : CHUNK);
  if (length > 0) return keep_output(log, chunk, length);
  if (length == -1 && (errno == EINTR || errno == EAGAIN)) return;
  close(log->pipe);
  log->pipe = -1;
}

// What was in the pipe when the command ended; what others write later belongs to no command.
static void drain(Log *log) {
  int waiting = 0;
  if (log->pipe == -1 || ioctl(log->pipe, FIONREAD, &waiting) == -1) return;
  while (waiting > 0 && log->pipe != -1) {
    size_t most = waiting < CHUNK ? waiting : CHUNK;
    waiting -= most;
    take(log, most);
  }
}

static int open_log(Log *log) {
  log->file = openat(folder, log->name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log->file == -1) return errno;
  // Of an empty file, to learn whether it could be done.
  can_punch = fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK) == 0;
  return 0;
}

// ---- the command -----------------------------------------------------------------------------------------------

static char **command_environment(char **environment) {
  size_t count = 0, length = strlen(RUNNER_MARK "=");
  while (environment[count] != NULL) count++;
  char **result = calloc(count + 1, sizeof *result);
  for (size_t i = 0; result != NULL && i < count; i++) {
    result[i] = environment[i];
    if (strncmp(environment[i], RUNNER_MARK "=", length) != 0) continue;
    if (asprintf(&result[i], COMMAND_MARK "=%s", environment[i] + length) == -1) return NULL;
  }
  return result;
}

static int claim(pid_t runner, unsigned long long runner_start) {
  char name[64], line[128];
  snprintf(name, sizeof name, "started.%d", getpid());
  int length = snprintf(line, sizeof line, "%d %llu %d %llu\n", getpid(), own_start(), runner, runner_start);
  int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file == -1) return errno;
  int error = write_all(file, line, length);
  if (close(file) == -1 && error == 0) error = errno;
  if (error == 0 && linkat(folder, name, folder, "started", 0) == -1) error = errno;
  unlinkat(folder, name, 0);
  return error;
}

static int become(char **arguments, char **environment, const int output[2], pid_t runner, unsigned long long start) {
  setsid();
  if (dup2(output[0], 1) == -1 || dup2(output[1], 2) == -1) return errno;
  if (chdir(arguments[0]) == -1) return errno;
  char **own = command_environment(environment);
  if (own == NULL) return ENOMEM;
  int error = claim(runner, start);
  if (error != 0) return error;
  execve(arguments[2], arguments + 3, own);
  error = errno;
  // It is ours, and it did not become true.
  unlinkat(folder, "started", 0);
  return error;
}

// ---- the end ---------------------------------------------------------------------------------------------------

// Made at the start: to tell of the end must not take room on a disk that is full by then.
static int reserve(const char *name) {
  char blank[EXIT_BYTES];
  memset(blank, ' ', sizeof blank);
  int file = openat(folder, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file == -1) return -1;
  int error = write_all(file, blank, sizeof blank);
  if (error == 0) return file;
  close(file);
  errno = error;
  return -1;
}

static void tell(int file, const char *name, const char *id, const siginfo_t *end, const Log *logs) {
  char line[EXIT_BYTES], code[16], signal[16];
  int exited = end->si_code == CLD_EXITED;
  snprintf(code, sizeof code, exited ? "%d" : "-", end->si_status);
  snprintf(signal, sizeof signal, exited ? "-" : "%d", end->si_status);
  memset(line, ' ', sizeof line);
  int length = snprintf(line, sizeof line, "%s %s %lld %lld %lld %s", code, signal, now_ms(CLOCK_REALTIME), logs[0].size,
                        logs[1].size, logs[0].cut || logs[1].cut ? "cut" : "whole");
  line[length] = ' ';
  line[sizeof line - 1] = '\n';
  while (pwrite(file, line, sizeof line, 0) != sizeof line) pause_ms(1000);
  close(file);
  // ENOENT: the record was given up.
  while (renameat(folder, name, folder, "exit") == -1 && errno != ENOENT) pause_ms(1000);
  char news[512];
  snprintf(news, sizeof news, "../.ended/%s", id);
  file = openat(folder, news, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file != -1) close(file);
}

// ---- the runner ------------------------------------------------------------------------------------------------

static void ignore_signals(void) {
  static const int faults[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGCHLD};
  for (int number = 1; number < NSIG; number++) {
    int fault = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) fault |= faults[i] == number;
    if (!fault) signal(number, SIG_IGN);
  }
}

// Reaps who has ended, also what the command left behind. False when there is nobody left to wait for.
static int reap(siginfo_t *end) {
  for (;;) {
    siginfo_t one = {0};
    if (waitid(P_ALL, 0, &one, WEXITED | WNOHANG) == -1) return 0;
    if (one.si_pid == 0) return 1;
    if (one.si_pid == command) *end = one;
  }
}

// Waits for output, or for someone's end; true when it was that. `child_ends` is a signalfd: the system need not be asked
// each time whether there is one.
static int wait_and_take(Log *logs, int child_ends) {
  struct pollfd polled[3] = {{logs[0].pipe, POLLIN, 0}, {logs[1].pipe, POLLIN, 0}, {child_ends, POLLIN, 0}};
  if (poll(polled, 3, -1) <= 0) return 0;
  for (int i = 0; i < 2; i++)
    if (polled[i].revents != 0) take(&logs[i], CHUNK);
  struct signalfd_siginfo heard;
  return polled[2].revents != 0 && read(child_ends, &heard, sizeof heard) > 0;
}

static void set_policy(int policy) {
  static int current = SCHED_OTHER;
  struct sched_param none = {0};
  if (policy != current && sched_setscheduler(0, policy, &none) == 0) current = policy;
}

// A command that has written something goes on undisturbed (SCHED_BATCH) until it waits, as it mostly does: that costs it
// less, and whoever reads its output is woken on this processor, not on one that sleeps. One that computes on would keep
// its line from its readers for a time slice: once that is seen of the waits since the last look, the runner interrupts it
// for a while, as anybody would.
static void choose_policy(int statistics) {
  static unsigned long long waited_before;
  static long long looked_at, interrupt_until;
  static unsigned waits;
  char line[96];
  unsigned long long waited;
  long long now = now_ms(CLOCK_MONOTONIC);
  waits++;
  if (now - looked_at < LOOK_MS) return;
  ssize_t length = pread(statistics, line, sizeof line - 1, 0);
  if (length <= 0) return;
  line[length] = 0;
  if (sscanf(line, "%*u %llu", &waited) != 1) return;
  if (waited - waited_before > waits * (unsigned long long)LATE_NS) interrupt_until = now + INTERRUPT_MS;
  waited_before = waited;
  looked_at = now;
  waits = 0;
  set_policy(now < interrupt_until ? SCHED_OTHER : SCHED_BATCH);
}

static void follow(Log *logs, int child_ends, siginfo_t *end) {
  // How long this process has waited for a processor. -1, where the system does not tell: it stays as anybody is.
  int statistics = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  while (end->si_pid != command) {
    if (wait_and_take(logs, child_ends) && !reap(end)) break;
    choose_policy(statistics);
  }
  close(statistics);
}

// The background of the command: it may go on writing, to nobody, where a closed pipe would kill it at its next line;
// and it stays ours, so that it can still be found.
static void outlive(Log *logs, int child_ends, siginfo_t *end) {
  for (int i = 0; i < 2; i++) {
    logs[i].full = 1;
    close(logs[i].file);
  }
  if (changes != -1) close(changes);
  int children = reap(end);
  while (children || logs[0].pipe != -1 || logs[1].pipe != -1)
    if (wait_and_take(logs, child_ends)) children = reap(end);
}

static void report(int to, int error) {
  unsigned char byte = error > 255 ? EIO : error;
  write_all(to, (char *)&byte, 1);
  close(to);
}

// What `from` reports; `nothing` when it was closed without a word.
static int reported(int from, int nothing) {
  unsigned char byte;
  ssize_t length;
  while ((length = read(from, &byte, 1)) == -1 && errno == EINTR) {
  }
  close(from);
  return length == 1 ? byte : nothing;
}

static int run(char **arguments, char **environment, const char *id, int launcher) {
  Log logs[2] = {{.name = "stdout", .letter = 'o'}, {.name = "stderr", .letter = 'e'}};
  char exit_name[64];
  int output[2], said[2];
  snprintf(exit_name, sizeof exit_name, "exit.%d", getpid());
  for (int i = 0; i < 2; i++) {
    int ends[2];
    int error = open_log(&logs[i]);
    if (error != 0) return error;
    if (pipe2(ends, O_CLOEXEC) == -1) return errno;
    logs[i].pipe = ends[0];
    output[i] = ends[1];
  }
  open_changes();
  int exit_file = reserve(exit_name);
  if (exit_file == -1 || pipe2(said, O_CLOEXEC) == -1) return errno;

  // Whoever ignores it is not asked for the status of an ended child.
  signal(SIGCHLD, SIG_DFL);
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  int child_ends = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (child_ends == -1) return errno;
  pid_t runner = getpid();
  unsigned long long start = own_start();
  command = fork();
  if (command == -1) return errno;
  if (command == 0) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    report(said[1], become(arguments, environment, output, runner, start));
    _exit(127);
  }
  ignore_signals();
  // What loses its parent becomes ours, so that it is still found as a part of the command's tree.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  close(said[1]);
  close(output[0]);
  close(output[1]);
  int error = reported(said[0], 0);
  if (error != 0) {
    unlinkat(folder, exit_name, 0);
    return error;
  }
  report(launcher, 0);
  // It must not hold a file system that is to be unmounted.
  if (chdir("/") == -1) return 0;
  for (int i = 0; i < 2; i++) fcntl(logs[i].pipe, F_SETFL, O_NONBLOCK);

  siginfo_t end = {0};
  follow(logs, child_ends, &end);
  for (int i = 0; i < 2; i++) drain(&logs[i]);
  tell(exit_file, exit_name, id, &end, logs);
  outlive(logs, child_ends, &end);
  return 0;
}

int main(int count, char **arguments, char **environment) {
  // Asked whether it runs here at all.
  if (count == 1) return 0;
  if (count < 6) return EINVAL;
  // Nothing of what the agent has open is the command's.
  syscall(SYS_close_range, 3, ~0U, 0);
  keep = atoll(arguments[3]);
  folder = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder == -1) return errno;
  const char *id = strrchr(arguments[1], '/');
  int told[2];
  if (pipe2(told, O_CLOEXEC) == -1) return errno;
  pid_t runner = fork();
  if (runner == -1) return errno;
  if (runner > 0) {
    close(told[1]);
    int error = reported(told[0], EIO);
    if (error != 0) waitpid(runner, NULL, 0);
    return error;
  }
  close(told[0]);
  setsid();
  int error = run(arguments + 2, environment, id == NULL ? arguments[1] : id + 1, told[1]);
  if (error != 0) report(told[1], error);
  return error;
}
