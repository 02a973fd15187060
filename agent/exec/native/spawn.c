// Node addon: starts processes with posix_spawn (vfork and exec), which does not copy the caller's page tables.
// One thread per running process waits for the exit and reports it to JavaScript.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STRINGS 65536
#define WAITER_STACK_BYTES (64 * 1024)

typedef struct {
  // Posted once `pid` is set.
  sem_t started;
  // 0: the start failed.
  pid_t pid;
  siginfo_t exit_info;
  // The errno of a failed waitid, else 0.
  int wait_error;
  napi_threadsafe_function on_exit;
} Waiter;

// ---- arguments -------------------------------------------------------------------------------------------------

// NULL when the value is not a string or contains a NUL byte, which would truncate it.
static char *to_c_string(napi_env env, napi_value value) {
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return NULL;
  char *text = malloc(length + 1);
  if (text == NULL) return NULL;
  napi_get_value_string_utf8(env, value, text, length + 1, &length);
  if (memchr(text, 0, length) == NULL) return text;
  free(text);
  return NULL;
}

static void free_c_strings(char **strings) {
  if (strings == NULL) return;
  for (char **string = strings; *string != NULL; string++) free(*string);
  free(strings);
}

// A NULL-terminated array of strings for execve; NULL on error.
static char **to_c_strings(napi_env env, napi_value value) {
  uint32_t length;
  if (napi_get_array_length(env, value, &length) != napi_ok || length > MAX_STRINGS) return NULL;
  char **strings = calloc(length + 1, sizeof *strings);
  for (uint32_t i = 0; strings != NULL && i < length; i++) {
    napi_value item;
    if (napi_get_element(env, value, i, &item) != napi_ok || (strings[i] = to_c_string(env, item)) == NULL) {
      free_c_strings(strings);
      return NULL;
    }
  }
  return strings;
}

// ---- exit ------------------------------------------------------------------------------------------------------

static void free_waiter(Waiter *waiter) {
  sem_destroy(&waiter->started);
  free(waiter);
}

// Runs on the JavaScript thread. `env` is NULL when Node is shutting down: JavaScript cannot be called any more.
static void call_on_exit(napi_env env, napi_value callback, void *context, void *data) {
  Waiter *waiter = data;
  if (env != NULL) {
    napi_value undefined, arguments[3];
    napi_get_undefined(env, &undefined);
    int exited = waiter->exit_info.si_code == CLD_EXITED;
    napi_create_int32(env, exited ? waiter->exit_info.si_status : -1, &arguments[0]);
    napi_create_int32(env, exited ? 0 : waiter->exit_info.si_status, &arguments[1]);
    napi_create_int32(env, waiter->wait_error, &arguments[2]);
    napi_call_function(env, undefined, callback, 3, arguments, NULL);
  }
  free_waiter(waiter);
}

// WNOWAIT leaves the zombie, so that the kernel does not reuse the pid before JavaScript calls reap().
static void *wait_for_exit(void *data) {
  Waiter *waiter = data;
  napi_threadsafe_function on_exit = waiter->on_exit;
  while (sem_wait(&waiter->started) == -1) {
  }
  if (waiter->pid != 0) {
    int result;
    while ((result = waitid(P_PID, waiter->pid, &waiter->exit_info, WEXITED | WNOWAIT)) == -1 && errno == EINTR) {
    }
    waiter->wait_error = result == -1 ? errno : 0;
  }
  if (waiter->pid == 0 || napi_call_threadsafe_function(on_exit, waiter, napi_tsfn_blocking) != napi_ok)
    free_waiter(waiter);
  napi_release_threadsafe_function(on_exit, napi_tsfn_release);
  return NULL;
}

static int start_waiter(Waiter *waiter) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, WAITER_STACK_BYTES);
  // The new thread inherits this mask: Node's signal handlers must not run there.
  sigset_t all_signals, previous_mask;
  sigfillset(&all_signals);
  pthread_sigmask(SIG_SETMASK, &all_signals, &previous_mask);
  int error = pthread_create(&thread, &attributes, wait_for_exit, waiter);
  pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

// JavaScript: reap(pid) removes the zombie.
static napi_value js_reap(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument;
  int32_t pid = 0;
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  if (count == 1 && napi_get_value_int32(env, argument, &pid) == napi_ok && pid > 0)
    while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
    }
  return NULL;
}

// ---- start -----------------------------------------------------------------------------------------------------

// Opens the pipes of standard output and standard error. Only the read ends are non-blocking: programs expect blocking
// output. Returns 0 or an errno; the pipes that are open then are in the arrays.
static int open_pipes(int read_ends[2], int write_ends[2]) {
  for (int i = 0; i < 2; i++) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == -1) return errno;
    read_ends[i] = ends[0];
    write_ends[i] = ends[1];
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == -1) return errno;
  }
  return 0;
}

static void close_ends(int ends[2]) {
  for (int i = 0; i < 2; i++) {
    if (ends[i] != -1) close(ends[i]);
    ends[i] = -1;
  }
}

// A write end of -1 stands for /dev/null. Returns 0 or an errno.
static int spawn_process(pid_t *pid, const char *file, char **argv, char **envp, const char *cwd,
                         const int write_ends[2]) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  int error = posix_spawn_file_actions_addchdir_np(&actions, cwd);
  if (error == 0) error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  for (int i = 0; error == 0 && i < 2; i++)
    error = write_ends[i] == -1 ? posix_spawn_file_actions_addopen(&actions, i + 1, "/dev/null", O_WRONLY, 0)
                                : posix_spawn_file_actions_adddup2(&actions, write_ends[i], i + 1);
  // New session, no blocked signals, default disposition for every signal.
  sigset_t no_signals, all_signals;
  sigemptyset(&no_signals);
  // sigfillset leaves out the two signals that glibc reserves, and posix_spawn would then set them to SIG_IGN.
  memset(&all_signals, 0xff, sizeof all_signals);
  if (error == 0) error = posix_spawnattr_setsigmask(&attributes, &no_signals);
  if (error == 0) error = posix_spawnattr_setsigdefault(&attributes, &all_signals);
  if (error == 0)
    error = posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (error == 0) error = posix_spawn(pid, file, &actions, &attributes, argv, envp);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

static napi_value to_js_array(napi_env env, const int *numbers, uint32_t count) {
  napi_value array, number;
  napi_create_array_with_length(env, count, &array);
  for (uint32_t i = 0; i < count; i++) {
    napi_create_int32(env, numbers[i], &number);
    napi_set_element(env, array, i, number);
  }
  return array;
}

// JavaScript: spawn(file, argv, envp, cwd, hasOutput, onExit) returns [pid or negated errno, stdout, stderr]. stdout and
// stderr are the read ends of pipes, which the caller closes; -1 without output, and when the start failed.
// onExit(exitCode, signal, error): exitCode is -1 when a signal terminated the process; error is the errno of a failed
// wait, else 0. The caller then calls reap(pid).
static napi_value js_spawn(napi_env env, napi_callback_info info) {
  size_t count = 6;
  napi_value arguments[6], name;
  bool has_output = false;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  char *file = count == 6 ? to_c_string(env, arguments[0]) : NULL;
  char **argv = file ? to_c_strings(env, arguments[1]) : NULL;
  char **envp = argv ? to_c_strings(env, arguments[2]) : NULL;
  char *cwd = envp ? to_c_string(env, arguments[3]) : NULL;
  Waiter *waiter = cwd ? calloc(1, sizeof *waiter) : NULL;
  int error = waiter ? 0 : EINVAL;
  if (waiter != NULL) sem_init(&waiter->started, 0, 0);
  if (error == 0 && napi_get_value_bool(env, arguments[4], &has_output) != napi_ok) error = EINVAL;
  napi_create_string_utf8(env, "onExit", NAPI_AUTO_LENGTH, &name);
  if (error == 0 && napi_create_threadsafe_function(env, arguments[5], NULL, name, 0, 1, NULL, NULL, NULL,
                                                    call_on_exit, &waiter->on_exit) != napi_ok)
    error = ENOMEM;
  // Start the thread before the command. At the process limit no thread can be created, and the exit of the
  // command would never be reported.
  if (error == 0 && (error = start_waiter(waiter)) != 0)
    napi_release_threadsafe_function(waiter->on_exit, napi_tsfn_release);
  int read_ends[2] = {-1, -1}, write_ends[2] = {-1, -1};
  pid_t pid = 0;
  if (error == 0) {
    if (has_output) error = open_pipes(read_ends, write_ends);
    if (error == 0) error = spawn_process(&pid, file, argv, envp, cwd, write_ends);
    waiter->pid = error == 0 ? pid : 0;
    // The thread owns the waiter from here on.
    sem_post(&waiter->started);
    // The command has its own copies of the write ends.
    close_ends(write_ends);
    if (error != 0) close_ends(read_ends);
  } else if (waiter != NULL) {
    free_waiter(waiter);
  }
  free(cwd);
  free_c_strings(envp);
  free_c_strings(argv);
  free(file);
  return to_js_array(env, (int[]){error == 0 ? pid : -error, read_ends[0], read_ends[1]}, 3);
}

// Sets close-on-exec on all descriptors. Node sets the flag only on descriptors that Node opens: not on those that this
// process inherited, or that another addon opened.
static void set_close_on_exec(void) {
  DIR *dir = opendir("/proc/self/fd");
  if (dir == NULL) return;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    int fd = atoi(entry->d_name);
    int flags = fd > 2 ? fcntl(fd, F_GETFD) : -1;
    if (flags != -1) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
  closedir(dir);
}

// JavaScript: setCloseOnExec().
static napi_value js_set_close_on_exec(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  set_close_on_exec();
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  set_close_on_exec();
  napi_create_function(env, "spawn", NAPI_AUTO_LENGTH, js_spawn, NULL, &function);
  napi_set_named_property(env, exports, "spawn", function);
  napi_create_function(env, "reap", NAPI_AUTO_LENGTH, js_reap, NULL, &function);
  napi_set_named_property(env, exports, "reap", function);
  napi_create_function(env, "setCloseOnExec", NAPI_AUTO_LENGTH, js_set_close_on_exec, NULL, &function);
  napi_set_named_property(env, exports, "setCloseOnExec", function);
  return exports;
}
