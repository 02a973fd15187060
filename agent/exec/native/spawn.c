// Starts a process without copying the page tables of the one that asks: posix_spawn is vfork and exec.
// A thread for each running process waits for it, and tells JavaScript how it ended.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define MAX_STRINGS 65536
#define WAITER_STACK (64 * 1024)

typedef struct {
  pid_t pid;
  int status;
  napi_threadsafe_function exited;
} Waiter;

// ---- arguments -------------------------------------------------------------------------------------------------

static char *to_text(napi_env env, napi_value value) {
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return NULL;
  char *text = malloc(length + 1);
  if (text != NULL) napi_get_value_string_utf8(env, value, text, length + 1, &length);
  return text;
}

static void free_list(char **list) {
  if (list == NULL) return;
  for (char **item = list; *item != NULL; item++) free(*item);
  free(list);
}

// A list of strings as execve takes it, or NULL.
static char **to_list(napi_env env, napi_value value) {
  uint32_t length;
  if (napi_get_array_length(env, value, &length) != napi_ok || length > MAX_STRINGS) return NULL;
  char **list = calloc(length + 1, sizeof *list);
  for (uint32_t i = 0; list != NULL && i < length; i++) {
    napi_value item;
    if (napi_get_element(env, value, i, &item) != napi_ok || (list[i] = to_text(env, item)) == NULL) {
      free_list(list);
      return NULL;
    }
  }
  return list;
}

// ---- the end of a process --------------------------------------------------------------------------------------

static void call_exited(napi_env env, napi_value callback, void *context, void *data) {
  Waiter *waiter = data;
  if (env != NULL) {
    napi_value undefined, arguments[2];
    napi_get_undefined(env, &undefined);
    int signaled = WIFSIGNALED(waiter->status);
    napi_create_int32(env, signaled ? -1 : WEXITSTATUS(waiter->status), &arguments[0]);
    napi_create_int32(env, signaled ? WTERMSIG(waiter->status) : 0, &arguments[1]);
    napi_call_function(env, undefined, callback, 2, arguments, NULL);
  }
  free(waiter);
}

// Leaves the zombie in place: its pid must not become another process's before JavaScript knows.
static void *wait_for_end(void *data) {
  Waiter *waiter = data;
  siginfo_t info;
  while (waitid(P_PID, waiter->pid, &info, WEXITED | WNOWAIT) == -1 && errno == EINTR) {
  }
  waiter->status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
  napi_threadsafe_function exited = waiter->exited;
  if (napi_call_threadsafe_function(exited, waiter, napi_tsfn_blocking) != napi_ok) free(waiter);
  napi_release_threadsafe_function(exited, napi_tsfn_release);
  return NULL;
}

static int start_waiter(Waiter *waiter) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, WAITER_STACK);
  // No signal of the process may land in a thread that has no handler's world around it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, wait_for_end, waiter);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

// reap(pid): lets the ended process go.
static napi_value reap(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument;
  int32_t pid = 0;
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  if (count == 1 && napi_get_value_int32(env, argument, &pid) == napi_ok && pid > 0)
    while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
    }
  return NULL;
}

// ---- the start of a process ------------------------------------------------------------------------------------

static int start(pid_t *pid, const char *file, char **argv, char **envp, const char *cwd, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  int error = posix_spawn_file_actions_addchdir_np(&actions, cwd);
  if (error == 0) error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, err, 2);
  // A session of its own, no signal blocked, and none ignored that we ignore.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  if (error == 0) error = posix_spawnattr_setsigmask(&attributes, &none);
  if (error == 0) error = posix_spawnattr_setsigdefault(&attributes, &all);
  if (error == 0)
    error = posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (error == 0) error = posix_spawn(pid, file, &actions, &attributes, argv, envp);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// spawn(file, argv, envp, cwd, stdout, stderr, exited): the pid, or minus the error number.
// exited(exitCode, signal): exitCode is -1 when a signal ended it. Then reap(pid) is due.
static napi_value spawn_process(napi_env env, napi_callback_info info) {
  size_t count = 7;
  napi_value arguments[7], result, name;
  int32_t out, err;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  char *file = count == 7 ? to_text(env, arguments[0]) : NULL;
  char **argv = file ? to_list(env, arguments[1]) : NULL;
  char **envp = argv ? to_list(env, arguments[2]) : NULL;
  char *cwd = envp ? to_text(env, arguments[3]) : NULL;
  Waiter *waiter = cwd ? calloc(1, sizeof *waiter) : NULL;
  int error = waiter ? 0 : EINVAL;
  if (error == 0 && (napi_get_value_int32(env, arguments[4], &out) != napi_ok ||
                     napi_get_value_int32(env, arguments[5], &err) != napi_ok))
    error = EINVAL;
  // Made before the process, so that no process can exist whose end nobody would hear of.
  if (error == 0) {
    napi_create_string_utf8(env, "exited", NAPI_AUTO_LENGTH, &name);
    if (napi_create_threadsafe_function(env, arguments[6], NULL, name, 0, 1, NULL, NULL, NULL, call_exited,
                                        &waiter->exited) != napi_ok)
      error = ENOMEM;
  }
  napi_threadsafe_function exited = error == 0 ? waiter->exited : NULL;
  if (error == 0) error = start(&waiter->pid, file, argv, envp, cwd, out, err);
  pid_t pid = waiter ? waiter->pid : 0;
  if (error == 0 && (error = start_waiter(waiter)) != 0) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
  }
  if (error != 0) {
    if (exited != NULL) napi_release_threadsafe_function(exited, napi_tsfn_release);
    free(waiter);
  }
  free(cwd);
  free_list(envp);
  free_list(argv);
  free(file);
  napi_create_int32(env, error == 0 ? pid : -error, &result);
  return result;
}

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "spawn", NAPI_AUTO_LENGTH, spawn_process, NULL, &function);
  napi_set_named_property(env, exports, "spawn", function);
  napi_create_function(env, "reap", NAPI_AUTO_LENGTH, reap, NULL, &function);
  napi_set_named_property(env, exports, "reap", function);
  return exports;
}
