// Starts the runner of a detached process: what stays with the command while agents come and go.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { getSystemErrorMap } from 'node:util'
import { ApiError } from '../../../shared/errors.ts'
import { BUNDLED_NATIVE_RUN, nativeRunFile } from '../../../shared/native-spawn-file.ts'
import { loadNativeSpawn } from '../native-spawn.ts'
import { SHELL, shellArguments } from '../shell.ts'
import type { SpawnerKind } from '../spawner.ts'
import { COMMAND_SCRIPT, RUNNER_SCRIPT } from './runner-script.ts'

/** native: native/run.c, where a compiler was. sh: a shell script, which knows less (see runner-script.ts). */
export const RUNNER_KINDS = ['native', 'sh'] as const
export type RunnerKind = (typeof RUNNER_KINDS)[number]

/** What the runner carries instead of BOXWOOD_PROCESS_ID: it is no part of the tree that a signal is meant for. */
export const RUNNER_VARIABLE = 'BOXWOOD_RUNNER_FOR'

export type Launch = {
  processId: string
  folder: string
  cwd: string
  command: string
  env: Record<string, string>
  keepBytes: number
}

export type Runner = {
  readonly kind: RunnerKind
  /**
   * Resolves when the command runs, or when another runner has started this id before. Rejects with the system's error,
   * or with ApiError exec_failed; then it may still be on its way.
   */
  launch(launch: Launch): Promise<void>
}

const POLL_MS = 5
const START_TIMEOUT_MS = 10_000

/** @param kind null: native where it runs. @throws Error when native is asked for and there is none */
export function createRunner(kind: RunnerKind | null, spawner: SpawnerKind | null): Runner {
  const native = kind === 'sh' ? undefined : findNativeRunner()
  if (kind === 'native' && native === undefined)
    throw new Error('The native runner was not built, or not for this system.')
  if (native === undefined) return { kind: 'sh', launch: launchWithShell }
  const start = createStart(spawner)
  return {
    kind: 'native',
    async launch({ folder, cwd, command, env, keepBytes, processId }) {
      const own = [folder, cwd, String(keepBytes), SHELL, 'sh', ...shellArguments(command)]
      const status = await start(native, own, { ...env, [RUNNER_VARIABLE]: processId })
      if (status === 0 || existsSync(join(folder, 'started'))) return
      const [code = 'UNKNOWN', words = `status ${status}`] = getSystemErrorMap().get(-(status ?? 0)) ?? []
      throw Object.assign(new Error(`run ${code}: ${words}`), { errno: -(status ?? 0), code, syscall: 'run' })
    },
  }
}

function findNativeRunner(): string | undefined {
  const beside = (path: string) => fileURLToPath(new URL(path, import.meta.url))
  const source = beside('../native/run.c')
  // A box has the bundle alone.
  const file = existsSync(source)
    ? beside(`../native/${nativeRunFile(readFileSync(source))}`)
    : beside(`./${BUNDLED_NATIVE_RUN}`)
  // It may be for another system, or on a file system that runs nothing.
  return spawnSync(file, [], { env: {} }).status === 0 ? file : undefined
}

/** Runs a program to its end, in a session of its own; answers its exit code, null for a signal. */
type Start = (file: string, args: string[], env: Record<string, string>) => Promise<number | null>

function createStart(kind: SpawnerKind | null): Start {
  const native = kind === 'node' ? null : loadNativeSpawn()
  if (native !== null) {
    return async (file, args, env) => {
      const nothing = openSync('/dev/null', 'w')
      try {
        const started = native(file, [file, ...args], { cwd: '/', env, stdout: nothing, stderr: nothing })
        return (await started.exit).exitCode
      } finally {
        closeSync(nothing)
      }
    }
  }
  return async (file, args, env) => {
    const child = spawn(file, args, { cwd: '/', env, detached: true, stdio: 'ignore' })
    // Rejects with the error of a start that failed.
    const [exitCode] = await once(child, 'exit')
    return exitCode
  }
}

async function launchWithShell({ folder, cwd, command, env, processId }: Launch): Promise<void> {
  const args = ['-c', RUNNER_SCRIPT, 'sh', folder, cwd, COMMAND_SCRIPT, ...shellArguments(command)]
  const own = { ...env, [RUNNER_VARIABLE]: processId }
  // Stays a child of this agent, and outlives it: it leads a session of its own.
  const child = spawn(SHELL, args, { cwd: '/', env: own, detached: true, stdio: 'ignore' })
  await once(child, 'spawn')
  child.unref()
  for (const began = performance.now(); !existsSync(join(folder, 'started')); await delay(POLL_MS)) {
    const failed = join(folder, 'failed')
    const late = performance.now() - began > START_TIMEOUT_MS
    if (existsSync(failed)) throw new ApiError('exec_failed', readFileSync(failed, 'utf8').trim())
    if (late) throw new ApiError('exec_failed', 'The command did not start in time.')
  }
}
