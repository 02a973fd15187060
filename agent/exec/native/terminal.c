// The terminal host: runs the program of one terminal session in a pseudoterminal, and holds its output.
//
//   terminal DIR CWD COLS ROWS FILE ARGV0 ARGUMENT...
//
// runner.h describes the launcher, the runner (here the host), the environment and the file `started`. The host outlives the
// agent, and listens on the Unix socket DIR/socket. One agent at a time is connected, and connects again after a restart.
//
// A message is its length (32 bits, of what follows), its type (8 bits) and a body; integers are little-endian. agent/
// terminal/host/frames.ts has the same types and bodies. Offsets count the bytes of the output, or of the input of a client,
// from the start of the session.
//
// The host sends the state when an agent connects: CLIENT for each known client, SCREEN if an agent has stored one, HELLO, the
// output that it holds, and EXIT if the program has exited. Output that follows is sent as soon as it is read.
//
// The host reads the output of the program up to a limit, which the agent sets; beyond it the program blocks. Another limit
// applies while no agent is connected, so that the next agent gets all output that a client may lack.
//
// The host exits when the agent sends CLOSE, when DIR has been deleted and no agent is connected, and one hour after the
// exit of the program. The kernel then hangs up the pseudoterminal of a program that runs.
#include "runner.h"

#include <endian.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>

// Increase it when the agent of an earlier build cannot use this host, or the files of its session. The agent of a new build
// uses the hosts of earlier builds whose versions are in TERMINAL_HOST_VERSIONS (shared/agent-build.ts): where one is missing,
// an upgrade waits until no session has such a host.
#define PROTOCOL_VERSION 1
// A power of two.
#define RING_BYTES (4 * 1024 * 1024)
// Before an agent has set the limits.
#define INITIAL_LIMIT_BYTES (2 * 1024 * 1024)
#define CHUNK_BYTES (64 * 1024)
#define MAX_INPUT_BYTES (64 * 1024)
// A message is not larger, except one of OUTPUT.
#define MAX_FRAME_BYTES (4 * 1024 * 1024)
#define MAX_CLIENTS 256
#define MAX_CLIENT_ID_BYTES 64
// A background process may have the terminal open after the exit. More than the kernel buffers.
#define MAX_DRAINED_BYTES (1024 * 1024)
#define EXITED_TIMEOUT_MS (60 * 60 * 1000)
#define DIRECTORY_CHECK_MS 10000

enum { FRAME_CLIENT = 1, FRAME_SCREEN, FRAME_HELLO, FRAME_OUTPUT, FRAME_WRITTEN, FRAME_EXIT };
enum { FRAME_INPUT = 16, FRAME_RESIZE, FRAME_LIMITS, FRAME_STORE_SCREEN, FRAME_CLOSE };

// A client of the session, with the number of input bytes that the host has accepted from it.
typedef struct {
  char id[MAX_CLIENT_ID_BYTES];
  size_t id_length;
  uint64_t accepted;
  uint64_t used_at;
} Client;

// The output at offset N is at N modulo RING_BYTES.
static char ring[RING_BYTES];
static uint64_t output_end;
// Offsets up to which the output is read while an agent is connected, and while none is.
static uint64_t connected_limit, offline_limit = INITIAL_LIMIT_BYTES;

static char screen[MAX_FRAME_BYTES];
static size_t screen_length;
static Client clients[MAX_CLIENTS];
static size_t client_count;
static uint64_t client_uses;

// Input that the terminal has not accepted yet.
static char input[MAX_INPUT_BYTES];
static size_t input_length, input_position;

static char inbox[MAX_FRAME_BYTES + 4];
static size_t inbox_length;

static struct winsize size;
static pid_t program_pid;
static int listen_fd = -1, agent_fd = -1, master_fd = -1, slave_fd = -1;
static int has_exited;
static int exit_code, exit_signal;
static long long finished_at, exited_at;

// ---- messages --------------------------------------------------------------------------------------------------

static uint16_t read_u16(const char *bytes) {
  uint16_t value;
  memcpy(&value, bytes, sizeof value);
  return le16toh(value);
}

static uint32_t read_u32(const char *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return le32toh(value);
}

static uint64_t read_u64(const char *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return le64toh(value);
}

static char *put(char *at, uint64_t value, size_t bytes) {
  uint64_t encoded = htole64(value);
  memcpy(at, &encoded, bytes);
  return at + bytes;
}

static void disconnect(void) {
  close_fd(&agent_fd);
  inbox_length = 0;
}

// Blocks until the agent has read enough of what it was sent: the limits bound the output, so that this is rare.
static void send_bytes(const char *bytes, size_t length) {
  if (agent_fd != -1 && write_all(agent_fd, bytes, length) != 0) disconnect();
}

// Sends a message whose body is `head` and `rest`.
static void send_frame(int type, const char *head, size_t head_length, const char *rest, size_t rest_length) {
  char prefix[128];
  char *at = put(prefix, 1 + head_length + rest_length, 4);
  at = put(at, type, 1);
  memcpy(at, head, head_length);
  send_bytes(prefix, 5 + head_length);
  send_bytes(rest, rest_length);
}

static void send_output(uint64_t from) {
  while (from < output_end && agent_fd != -1) {
    size_t index = from % RING_BYTES;
    size_t length = output_end - from < CHUNK_BYTES ? output_end - from : CHUNK_BYTES;
    if (length > RING_BYTES - index) length = RING_BYTES - index;
    char head[8];
    put(head, from, 8);
    send_frame(FRAME_OUTPUT, head, sizeof head, ring + index, length);
    from += length;
  }
}

static void send_exit(void) {
  char body[16];
  put(put(put(body, exit_code, 4), exit_signal, 4), finished_at, 8);
  send_frame(FRAME_EXIT, body, sizeof body, "", 0);
}

static uint64_t output_start(void) { return output_end > RING_BYTES ? output_end - RING_BYTES : 0; }

static void send_state(void) {
  for (size_t i = 0; i < client_count; i++) {
    char accepted[8];
    put(accepted, clients[i].accepted, 8);
    send_frame(FRAME_CLIENT, accepted, sizeof accepted, clients[i].id, clients[i].id_length);
  }
  if (screen_length > 0) send_frame(FRAME_SCREEN, "", 0, screen, screen_length);
  char hello[23], *at = put(hello, PROTOCOL_VERSION, 1);
  at = put(put(at, output_start(), 8), output_end, 8);
  put(put(put(put(at, size.ws_col, 2), size.ws_row, 2), input_length > 0, 1), has_exited, 1);
  send_frame(FRAME_HELLO, hello, sizeof hello, "", 0);
  send_output(output_start());
  if (has_exited) send_exit();
}

// ---- input -----------------------------------------------------------------------------------------------------

// Returns the client with this id. The client that was used least recently is replaced by a new one.
static Client *find_client(const char *id, size_t id_length) {
  Client *oldest = &clients[0];
  for (size_t i = 0; i < client_count; i++) {
    if (clients[i].id_length == id_length && memcmp(clients[i].id, id, id_length) == 0) return &clients[i];
    if (clients[i].used_at < oldest->used_at) oldest = &clients[i];
  }
  Client *client = client_count < MAX_CLIENTS ? &clients[client_count++] : oldest;
  memset(client, 0, sizeof *client);
  memcpy(client->id, id, id_length);
  client->id_length = id_length;
  return client;
}

static void finish_input(void) {
  input_length = input_position = 0;
  send_frame(FRAME_WRITTEN, "", 0, "", 0);
}

static void write_input(void) {
  ssize_t written = write(master_fd, input + input_position, input_length - input_position);
  if (written > 0) input_position += written;
  // EIO: the terminal was hung up.
  else if (errno != EAGAIN && errno != EINTR) input_position = input_length;
  if (input_position == input_length) finish_input();
}

// The body is the offset of the client's input, the length of its id, the id and the bytes. Bytes below the number that was
// accepted from the client are ignored: an agent repeats them. Returns 0 for an invalid message.
static int accept_input(const char *body, size_t length) {
  if (length < 9) return 0;
  uint64_t offset = read_u64(body);
  size_t id_length = (unsigned char)body[8];
  if (id_length > MAX_CLIENT_ID_BYTES || length - 9 < id_length) return 0;
  const char *bytes = body + 9 + id_length;
  size_t count = length - 9 - id_length;
  // Without bytes, the message only makes the client known.
  if (count > MAX_INPUT_BYTES || (count > 0 && input_length > 0)) return 0;
  if (id_length > 0) {
    Client *client = find_client(body + 9, id_length);
    client->used_at = ++client_uses;
    if (count == 0) return 1;
    uint64_t repeated = client->accepted > offset ? client->accepted - offset : 0;
    if (repeated > count) repeated = count;
    bytes += repeated;
    count -= repeated;
    if (offset + repeated + count > client->accepted) client->accepted = offset + repeated + count;
  }
  if (id_length == 0 && count == 0) return 1;
  memcpy(input, bytes, count);
  input_length = count;
  input_position = 0;
  if (count == 0 || master_fd == -1) finish_input();
  else write_input();
  return 1;
}

// Returns 0 for an invalid message.
static int handle_frame(int type, const char *body, size_t length) {
  if (type == FRAME_INPUT) return accept_input(body, length);
  if (type == FRAME_CLOSE) exit(0);
  if (type == FRAME_RESIZE && length == 4) {
    size.ws_col = read_u16(body);
    size.ws_row = read_u16(body + 2);
    if (master_fd != -1) ioctl(master_fd, TIOCSWINSZ, &size);
  } else if (type == FRAME_LIMITS && length == 16) {
    connected_limit = read_u64(body);
    offline_limit = read_u64(body + 8);
  } else if (type == FRAME_STORE_SCREEN) {
    memcpy(screen, body, length);
    screen_length = length;
  } else
    return 0;
  return 1;
}

static void read_agent(void) {
  ssize_t received = recv(agent_fd, inbox + inbox_length, sizeof inbox - inbox_length, MSG_DONTWAIT);
  if (received == -1 && (errno == EAGAIN || errno == EINTR)) return;
  if (received <= 0) return disconnect();
  inbox_length += received;
  size_t at = 0;
  while (agent_fd != -1 && inbox_length - at >= 4) {
    size_t length = read_u32(inbox + at);
    if (length == 0 || length > MAX_FRAME_BYTES) return disconnect();
    if (inbox_length - at - 4 < length) break;
    if (!handle_frame(inbox[at + 4], inbox + at + 5, length - 1)) return disconnect();
    at += 4 + length;
  }
  if (agent_fd == -1) return;
  inbox_length -= at;
  memmove(inbox, inbox + at, inbox_length);
}

// Another user is refused. The directory of the socket is closed to other users too.
static void accept_agent(void) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd == -1) return;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1 || peer.uid != getuid()) {
    close(fd);
    return;
  }
  agent_fd = fd;
  connected_limit = output_end;
  send_state();
}

// ---- output ----------------------------------------------------------------------------------------------------

// Reads up to `max` bytes, and sends them. Returns the number of bytes, 0 when none can be read now, or -1 when no more will
// follow.
static ssize_t read_output(size_t max) {
  uint64_t from = output_end;
  ssize_t length = 0;
  // A terminal returns at most a page at once.
  while (output_end - from < max) {
    size_t index = output_end % RING_BYTES, space = max - (output_end - from);
    length = read(master_fd, ring + index, space < RING_BYTES - index ? space : RING_BYTES - index);
    if (length <= 0) break;
    output_end += length;
  }
  int has_ended = length == 0 || (length == -1 && errno != EAGAIN && errno != EINTR);
  send_output(from);
  return output_end > from ? (ssize_t)(output_end - from) : has_ended ? -1 : 0;
}

static size_t readable_bytes(void) {
  uint64_t limit = agent_fd == -1 ? offline_limit : connected_limit;
  if (master_fd == -1 || limit <= output_end) return 0;
  return limit - output_end < CHUNK_BYTES ? limit - output_end : CHUNK_BYTES;
}

static void close_terminal(void) {
  close_fd(&master_fd);
  close_fd(&slave_fd);
  if (input_length > 0) finish_input();
}

static void handle_exit(void) {
  siginfo_t info = {0};
  if (waitid(P_PID, program_pid, &info, WEXITED | WNOHANG) == -1 || info.si_pid == 0) return;
  for (ssize_t total = 0, length = 1; master_fd != -1 && length > 0 && total < MAX_DRAINED_BYTES; total += length)
    length = read_output(CHUNK_BYTES);
  close_terminal();
  has_exited = 1;
  exit_code = info.si_code == CLD_EXITED ? info.si_status : 0;
  exit_signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
  finished_at = now_ms(CLOCK_REALTIME);
  exited_at = now_ms(CLOCK_BOOTTIME);
  send_exit();
}

// ---- the host --------------------------------------------------------------------------------------------------

static int should_stop(void) {
  if (agent_fd != -1) return 0;
  if (has_exited && now_ms(CLOCK_BOOTTIME) - exited_at > EXITED_TIMEOUT_MS) return 1;
  return faccessat(dir_fd, "started", F_OK, 0) == -1 && errno == ENOENT;
}

static void serve(int sigchld_fd) {
  while (!should_stop()) {
    struct pollfd polled[4] = {{sigchld_fd, POLLIN, 0}, {-1, POLLIN, 0}, {agent_fd, POLLIN, 0}, {-1, 0, 0}};
    // A second agent waits until the first one has disconnected.
    if (agent_fd == -1) polled[1].fd = listen_fd;
    if (readable_bytes() > 0) polled[3].events |= POLLIN;
    if (input_length > 0) polled[3].events |= POLLOUT;
    // POLLHUP is reported without being requested.
    if (polled[3].events != 0) polled[3].fd = master_fd;
    if (poll(polled, 4, agent_fd == -1 ? DIRECTORY_CHECK_MS : -1) <= 0) continue;
    struct signalfd_siginfo info;
    if (polled[0].revents != 0 && read(sigchld_fd, &info, sizeof info) > 0) handle_exit();
    if (polled[2].revents != 0 && agent_fd != -1) read_agent();
    if (polled[1].revents != 0) accept_agent();
    if (master_fd == -1) continue;
    if ((polled[3].revents & POLLOUT) != 0 && input_length > 0) write_input();
    if ((polled[3].revents & ~POLLOUT) != 0 && readable_bytes() > 0 && read_output(readable_bytes()) == -1)
      close_terminal();
  }
}

// Returns 0 or an errno.
static int open_socket(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  struct stat stats;
  if (fstat(dir_fd, &stats) == -1) return errno;
  if (stats.st_uid != getuid() || (stats.st_mode & 077) != 0) return EPERM;
  listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // The path of the directory may be longer than the address of a socket.
  if (listen_fd == -1 || fchdir(dir_fd) == -1) return errno;
  if (bind(listen_fd, (struct sockaddr *)&address, sizeof address) == -1) return errno;
  return listen(listen_fd, 4) == -1 ? errno : 0;
}

// Returns 0 or an errno.
static int open_terminal(void) {
  struct termios settings;
  master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (master_fd == -1 || unlockpt(master_fd) == -1) return errno;
  // While the host has the slave open, the program can close it without a hangup of the master.
  slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave_fd == -1 || tcgetattr(slave_fd, &settings) == -1) return errno;
  settings.c_iflag |= IUTF8;
  if (tcsetattr(slave_fd, TCSANOW, &settings) == -1) return errno;
  return ioctl(master_fd, TIOCSWINSZ, &size) == -1 ? errno : 0;
}

// Runs in the forked child. Returns the errno of the failed call. `arguments` are CWD COLS ROWS FILE ARGV0 ARGUMENT...
static int exec_program(char **arguments, char **environment, pid_t host_pid, unsigned long long host_start) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  if (setsid() == -1 || ioctl(slave_fd, TIOCSCTTY, 0) == -1) return errno;
  for (int fd = 0; fd < 3; fd++)
    if (dup2(slave_fd, fd) == -1) return errno;
  if (chdir(arguments[0]) == -1) return errno;
  char **envp = command_environment(environment);
  if (envp == NULL) return ENOMEM;
  int error = claim_start(host_pid, host_start);
  if (error != 0) return error;
  execve(arguments[3], arguments + 4, envp);
  error = errno;
  // claim_start() created `started`, but the program did not start.
  unlinkat(dir_fd, "started", 0);
  return error;
}

static int run_program(char **arguments, char **environment, int launcher_fd) {
  int exec_status_fds[2];
  sigset_t previous_mask;
  size.ws_col = atoi(arguments[1]);
  size.ws_row = atoi(arguments[2]);
  int error = open_socket();
  if (error == 0) error = open_terminal();
  if (error != 0) return error;
  int sigchld_fd = open_sigchld(&previous_mask);
  if (sigchld_fd == -1 || pipe2(exec_status_fds, O_CLOEXEC) == -1) return errno;
  pid_t host_pid = getpid();
  unsigned long long host_start = own_start_time();
  program_pid = fork();
  if (program_pid == -1) return errno;
  if (program_pid == 0) {
    sigset_t no_signals;
    sigemptyset(&no_signals);
    sigprocmask(SIG_SETMASK, &no_signals, NULL);
    send_status(exec_status_fds[1], exec_program(arguments, environment, host_pid, host_start));
    _exit(127);
  }
  ignore_signals();
  close(exec_status_fds[1]);
  // A successful execve closes the pipe, which has O_CLOEXEC.
  error = receive_status(exec_status_fds[0], 0);
  if (error != 0) return error;
  send_status(launcher_fd, 0);
  // Leaves the directory, so that its file system can be unmounted.
  if (chdir("/") == -1) return 0;
  serve(sigchld_fd);
  return 0;
}

int main(int count, char **arguments, char **environment) {
  // The agent runs the program without arguments to test whether it works on this system.
  if (count == 1) return 0;
  if (count < 7) return EINVAL;
  return launch(arguments, environment, run_program);
}
