// Starts a process without copying the page tables of the one that asks: posix_spawn is vfork and exec.
// A thread for each running process waits for it, and tells JavaScript how it ended.
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

#define MAX_STRINGS 65536
#define WAITER_STACK (64 * 1024)

typedef struct {
  sem_t decided;
  // 0: there is none to wait for.
  pid_t pid;
  siginfo_t end;
  int error;
  napi_threadsafe_function exited;
} Waiter;

// ---- arguments -------------------------------------------------------------------------------------------------

// NULL for what is no string, and for one with a NUL byte: the kernel would take it for shorter than it is.
static char *to_text(napi_env env, napi_value value) {
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return NULL;
  char *text = malloc(length + 1);
  if (text == NULL) return NULL;
  napi_get_value_string_utf8(env, value, text, length + 1, &length);
  if (memchr(text, 0, length) == NULL) return text;
  free(text);
  return NULL;
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

static void free_waiter(Waiter *waiter) {
  sem_destroy(&waiter->decided);
  free(waiter);
}

static void call_exited(napi_env env, napi_value callback, void *context, void *data) {
  Waiter *waiter = data;
  if (env != NULL) {
    napi_value undefined, arguments[3];
    napi_get_undefined(env, &undefined);
    int exited = waiter->end.si_code == CLD_EXITED;
    napi_create_int32(env, exited ? waiter->end.si_status : -1, &arguments[0]);
    napi_create_int32(env, exited ? 0 : waiter->end.si_status, &arguments[1]);
    napi_create_int32(env, waiter->error, &arguments[2]);
    napi_call_function(env, undefined, callback, 3, arguments, NULL);
  }
  free_waiter(waiter);
}

// Leaves the zombie in place: its pid must not become another process's before JavaScript knows.
static void *wait_for_end(void *data) {
  Waiter *waiter = data;
  napi_threadsafe_function exited = waiter->exited;
  while (sem_wait(&waiter->decided) == -1) {
  }
  if (waiter->pid != 0) {
    int result;
    while ((result = waitid(P_PID, waiter->pid, &waiter->end, WEXITED | WNOWAIT)) == -1 && errno == EINTR) {
    }
    waiter->error = result == -1 ? errno : 0;
  }
  if (waiter->pid == 0 || napi_call_threadsafe_function(exited, waiter, napi_tsfn_blocking) != napi_ok)
    free_waiter(waiter);
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
  // glibc's sigfillset leaves out the two it uses itself, and its posix_spawn would have the process ignore them.
  memset(&all, 0xff, sizeof all);
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
// exited(exitCode, signal, error): exitCode is -1 when a signal ended it; error is not 0 when its end cannot be known.
// Then reap(pid) is due.
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
  if (waiter != NULL) sem_init(&waiter->decided, 0, 0);
  if (error == 0 && (napi_get_value_int32(env, arguments[4], &out) != napi_ok ||
                     napi_get_value_int32(env, arguments[5], &err) != napi_ok))
    error = EINVAL;
  napi_create_string_utf8(env, "exited", NAPI_AUTO_LENGTH, &name);
  if (error == 0 && napi_create_threadsafe_function(env, arguments[6], NULL, name, 0, 1, NULL, NULL, NULL,
                                                    call_exited, &waiter->exited) != napi_ok)
    error = ENOMEM;
  // Before the process: at the limit of processes a command must not have begun when we find that nobody can wait.
  if (error == 0 && (error = start_waiter(waiter)) != 0)
    napi_release_threadsafe_function(waiter->exited, napi_tsfn_release);
  pid_t pid = 0;
  if (error == 0) {
    error = start(&pid, file, argv, envp, cwd, out, err);
    waiter->pid = error == 0 ? pid : 0;
    // From here on it is the thread's.
    sem_post(&waiter->decided);
  } else if (waiter != NULL) {
    free_waiter(waiter);
  }
  free(cwd);
  free_list(envp);
  free_list(argv);
  free(file);
  napi_create_int32(env, error == 0 ? pid : -error, &result);
  return result;
}

// What this process inherited itself, from whoever started it, is not for its commands. All that Node opens is closed
// in them already.
static void keep_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  if (folder == NULL) return;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    int fd = atoi(entry->d_name);
    int flags = fd > 2 ? fcntl(fd, F_GETFD) : -1;
    if (flags != -1) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
  closedir(folder);
}

NAPI_MODULE_INIT() {
  napi_value function;
  keep_descriptors();
  napi_create_function(env, "spawn", NAPI_AUTO_LENGTH, spawn_process, NULL, &function);
  napi_set_named_property(env, exports, "spawn", function);
  napi_create_function(env, "reap", NAPI_AUTO_LENGTH, reap, NULL, &function);
  napi_set_named_property(env, exports, "reap", function);
  return exports;
}
