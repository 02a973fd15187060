// posix_spawn, where it was compiled (native/spawn.c): a start that does not copy the agent's page tables.
import { existsSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { getSystemErrorMap } from 'node:util'
import { BUNDLED_NATIVE_SPAWN, nativeSpawnFile } from '../../shared/native-spawn-file.ts'
import type { Exit } from './spawner.ts'

type Addon = {
  /**
   * The pid, or minus the error number. `exited(exitCode, signal, error)`: exitCode is -1 when a signal ended it; error
   * is an error number when its end cannot be known, else 0.
   */
  spawn(
    file: string,
    argv: string[],
    envp: string[],
    cwd: string,
    stdout: number,
    stderr: number,
    exited: (exitCode: number, signal: number, error: number) => void,
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

const beside = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Null where it was not compiled, or cannot be loaded on this system. */
export function loadNativeSpawn(): NativeSpawn | null {
  const loaded: { exports: Partial<Addon> } = { exports: {} }
  try {
    process.dlopen(loaded, addonPath())
  } catch {
    // Not there, or for another system: the caller has its fallback, and says which one is in force.
    return null
  }
  const { spawn, reap } = loaded.exports
  return spawn === undefined || reap === undefined ? null : nativeSpawn({ spawn, reap })
}

function addonPath(): string {
  const source = beside('./native/spawn.c')
  // A box has the bundle alone.
  if (!existsSync(source)) return beside(`./${BUNDLED_NATIVE_SPAWN}`)
  return beside(`./native/${nativeSpawnFile(readFileSync(source))}`)
}

const nativeSpawn =
  ({ spawn, reap }: Addon): NativeSpawn =>
  (file, argv, { cwd, env, stdout, stderr }) => {
    let running = true
    const exit = Promise.withResolvers<Exit>()
    const envp = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const result = spawn(file, argv, envp, cwd, stdout, stderr, (exitCode, signal, error) => {
      running = false
      if (error !== 0) return exit.reject(systemError(error, 'waitid'))
      reap(result)
      exit.resolve(
        exitCode >= 0 ? { exitCode, signal: null } : { exitCode: null, signal: signalName(signal) },
      )
    })
    if (result < 0) throw systemError(-result, `spawn ${file}`)
    return { pid: result, isRunning: () => running, exit: exit.promise }
  }

const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name.slice('SIG'.length)]),
)

/** Without SIG; a real-time signal by its number, as it has no other name that all shells share. */
export const signalName = (signal: number): string => SIGNALS.get(signal) ?? String(signal)

/** Like the errors of child_process. */
function systemError(errno: number, syscall: string): Error {
  const code = getSystemErrorMap().get(-errno)?.[0] ?? 'UNKNOWN'
  return Object.assign(new Error(`${syscall} ${code}`), { errno: -errno, code, syscall })
}
