// posix_spawn, where it was compiled (native/spawn.c): a start that does not copy the agent's page tables.
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { getSystemErrorMap } from 'node:util'
import type { Exit } from './spawner.ts'

type Addon = {
  /** The pid, or minus the error number. `exited(exitCode, signal)`: exitCode is -1 when a signal ended it. */
  spawn(
    file: string,
    argv: string[],
    envp: string[],
    cwd: string,
    stdout: number,
    stderr: number,
    exited: (exitCode: number, signal: number) => void,
  ): number
  /** Lets the ended process go; until then its pid is nobody else's. */
  reap(pid: number): void
}

export type NativeProcess = { pid: number; isRunning(): boolean; exit: Promise<Exit> }

export type NativeSpawn = (
  file: string,
  argv: string[],
  options: { cwd: string; env: Record<string, string>; stdout: number; stderr: number },
) => NativeProcess

/** Beside this file among the sources, beside the bundle in a box. */
const PLACES = ['./spawn.node', './native/spawn.node']

/** Null where it was not compiled, or cannot be loaded on this system. */
export function loadNativeSpawn(): NativeSpawn | null {
  for (const place of PLACES) {
    const loaded: { exports: Partial<Addon> } = { exports: {} }
    try {
      process.dlopen(loaded, fileURLToPath(new URL(place, import.meta.url)))
    } catch {
      // Not there, or for another system: the caller has its fallback, and says which one is in force.
      continue
    }
    const { spawn, reap } = loaded.exports
    if (spawn !== undefined && reap !== undefined) return nativeSpawn({ spawn, reap })
  }
  return null
}

const nativeSpawn =
  ({ spawn, reap }: Addon): NativeSpawn =>
  (file, argv, { cwd, env, stdout, stderr }) => {
    let running = true
    const exit = Promise.withResolvers<Exit>()
    const envp = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const result = spawn(file, argv, envp, cwd, stdout, stderr, (exitCode, signal) => {
      running = false
      reap(result)
      exit.resolve(
        exitCode >= 0 ? { exitCode, signal: null } : { exitCode: null, signal: signalName(signal) },
      )
    })
    if (result < 0) throw spawnError(-result, file)
    return { pid: result, isRunning: () => running, exit: exit.promise }
  }

const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name.slice('SIG'.length)]),
)

/** Without SIG; a real-time signal by its number, as it has no other name that all shells share. */
const signalName = (signal: number): string => SIGNALS.get(signal) ?? String(signal)

/** Like the errors of child_process. */
function spawnError(errno: number, file: string): Error {
  const code = getSystemErrorMap().get(-errno)?.[0] ?? 'UNKNOWN'
  return Object.assign(new Error(`spawn ${file} ${code}`), { errno: -errno, code, syscall: `spawn ${file}` })
}
