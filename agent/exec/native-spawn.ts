// Loads the posix_spawn addon (native/spawn.c), which starts processes without copying the agent's page tables.
import { getSystemErrorMap } from 'node:util'
import { NATIVE_PARTS } from '../../shared/native-file-names.ts'
import { locateNativeFile } from './native-program.ts'
import { signalName } from './signal-name.ts'

export type Exit = {
  /** null when a signal terminated the process. */
  exitCode: number | null
  /** The name without SIG, such as TERM; the number of a real-time signal. null when the process exited by itself. */
  signal: string | null
}

type Addon = {
  /**
   * Returns the pid, or the negated errno, and the non-blocking read ends of the pipes of stdout and stderr. Without
   * output, or when the start failed, these are -1. `onExit(exitCode, signal, error)`: exitCode is -1 when a signal
   * terminated the process; error is the errno of a failed wait, else 0.
   */
  spawn(
    file: string,
    argv: string[],
    envp: string[],
    cwd: string,
    hasOutput: boolean,
    onExit: (exitCode: number, signal: number, error: number) => void,
  ): [pid: number, stdout: number, stderr: number]
  /** Removes the zombie. The kernel does not reuse the pid before. */
  reap(pid: number): void
  /** Keeps descriptors that an addon opened out of the processes that the agent starts. */
  setCloseOnExec(): void
}

export type SpawnedProcess = {
  pid: number
  /** False once the process is reaped, when the kernel may reuse its pid. */
  isRunning(): boolean
  exit: Promise<Exit>
}

export type NativeSpawn = (
  file: string,
  argv: string[],
  /** output: pipe, where the caller closes both descriptors, or ignore, for /dev/null. */
  options: { cwd: string; env: Record<string, string>; output: 'pipe' | 'ignore' },
) => SpawnedProcess & { stdout: number; stderr: number }

/** null where the addon was not compiled or cannot be loaded; the caller falls back to child_process. */
export function loadNativeSpawn(): NativeSpawn | null {
  const addon = loadAddon()
  return addon === null ? null : nativeSpawn(addon)
}

/** Without the addon, the processes that the agent starts inherit descriptors that other addons have opened. */
export const setCloseOnExec = (): void => loadAddon()?.setCloseOnExec()

function loadAddon(): Addon | null {
  const loaded: { exports: Partial<Addon> } = { exports: {} }
  try {
    process.dlopen(loaded, locateNativeFile(NATIVE_PARTS.spawner))
  } catch {
    return null
  }
  const { spawn, reap, setCloseOnExec } = loaded.exports
  const isComplete = spawn !== undefined && reap !== undefined && setCloseOnExec !== undefined
  return isComplete ? { spawn, reap, setCloseOnExec } : null
}

const nativeSpawn =
  ({ spawn, reap }: Addon): NativeSpawn =>
  (file, argv, { cwd, env, output }) => {
    let running = true
    const exit = Promise.withResolvers<Exit>()
    const envp = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const hasOutput = output === 'pipe'
    const [pid, stdout, stderr] = spawn(file, argv, envp, cwd, hasOutput, (exitCode, signal, error) => {
      running = false
      if (error !== 0) return exit.reject(systemError(error, 'waitid'))
      reap(pid)
      exit.resolve(
        exitCode >= 0 ? { exitCode, signal: null } : { exitCode: null, signal: signalName(signal) },
      )
    })
    if (pid < 0) throw systemError(-pid, `spawn ${file}`)
    return { pid, isRunning: () => running, exit: exit.promise, stdout, stderr }
  }

/** Has the properties of child_process errors. */
function systemError(errno: number, syscall: string): Error {
  const code = getSystemErrorMap().get(-errno)?.[0] ?? 'UNKNOWN'
  return Object.assign(new Error(`${syscall} ${code}`), { errno: -errno, code, syscall })
}
