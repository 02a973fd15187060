// Starts a native program that stays with a process when the agent is restarted: native/run.c and native/terminal.c.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { getSystemErrorMap } from 'node:util'
import { loadNativeSpawn } from './native-spawn.ts'
import type { SpawnerKind } from './spawner.ts'

/**
 * Holds the process id in the program's environment. The program does not have BOXWOOD_PROCESS_ID, so that terminating the
 * process tree does not signal the program.
 */
export const RUNNER_VARIABLE = 'BOXWOOD_RUNNER_FOR'

/**
 * Resolves when the process runs, or when an earlier program has started it. Rejects with the system error; the program
 * may still start the process afterwards.
 * @param args follow the directory @param env of the process
 */
export type Launch = (dir: string, args: string[], env: Record<string, string>) => Promise<void>

/** @param file a native program, whose first argument is the directory of the process */
export function createLauncher(file: string, kind: SpawnerKind | null): Launch {
  const runToExit = createRunToExit(kind)
  return async (dir, args, env) => {
    // The launcher in native/runner.h forks the program and exits: with 0 once the process runs, else with the errno of
    // the failed call.
    const status = await runToExit(file, [dir, ...args], { ...env, [RUNNER_VARIABLE]: basename(dir) })
    if (status === 0 || existsSync(join(dir, 'started'))) return
    const errno = -(status ?? 0)
    const [code = 'UNKNOWN', message = `status ${status}`] = getSystemErrorMap().get(errno) ?? []
    throw Object.assign(new Error(`run ${code}: ${message}`), { errno, code, syscall: 'run' })
  }
}

/** Runs a program in its own session until its exit. Resolves with the exit code; null when a signal terminated it. */
type RunToExit = (file: string, args: string[], env: Record<string, string>) => Promise<number | null>

function createRunToExit(kind: SpawnerKind | null): RunToExit {
  const nativeSpawn = kind === 'node' ? null : loadNativeSpawn()
  if (nativeSpawn !== null) {
    return async (file, args, env) => {
      const child = nativeSpawn(file, [file, ...args], { cwd: '/', env, output: 'ignore' })
      return (await child.exit).exitCode
    }
  }
  return async (file, args, env) => {
    const child = spawn(file, args, { cwd: '/', env, detached: true, stdio: 'ignore' })
    // Rejects when the spawn fails.
    const [exitCode] = await once(child, 'exit')
    return exitCode
  }
}
