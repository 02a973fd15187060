// Starts the runner of a detached process: the parent that stays with the command across agent restarts.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { ApiError } from '../../../shared/errors.ts'
import { NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { createLauncher, RUNNER_VARIABLE } from '../native-launcher.ts'
import { findNativeProgram } from '../native-program.ts'
import { SHELL, shellArguments } from '../shell.ts'
import type { SpawnerKind } from '../spawner.ts'
import { COMMAND_SCRIPT, RUNNER_SCRIPT } from './runner-script.ts'

/** native: native/run.c, compiled. sh: a shell script with the limits listed in runner-script.ts. */
export const RUNNER_KINDS = ['native', 'sh'] as const
export type RunnerKind = (typeof RUNNER_KINDS)[number]

export type Launch = {
  processId: string
  /** The process directory. */
  dir: string
  cwd: string
  command: string
  env: Record<string, string>
  maxLogBytes: number
  /** attached: the output waits for the client; see native/run.c. The shell runner never waits. */
  mode: 'detached' | 'attached' | 'attached-stdin'
}

export type LaunchResult = {
  /** To be called when the stdin FIFO is open for writing. */
  releaseStdin(): void
}

export type Runner = {
  readonly kind: RunnerKind
  /**
   * Resolves when the command runs, or when an earlier runner has started this id. Rejects with the system error or with
   * ApiError exec_failed; the runner may still start the command afterwards.
   */
  launch(launch: Launch): Promise<LaunchResult>
}

const POLL_MS = 5
const START_TIMEOUT_MS = 10_000

/** @param kind null: native where available. @throws Error when native is required and not available */
export function createRunner(kind: RunnerKind | null, spawner: SpawnerKind | null): Runner {
  const native = kind === 'sh' ? undefined : findNativeProgram(NATIVE_PARTS.runner)
  if (kind === 'native' && native === undefined)
    throw new Error(
      'The native runner was not compiled, or does not run on this system. Unset BOXWOOD_RUNNER to use the shell runner.',
    )
  if (native === undefined) return { kind: 'sh', launch: launchWithShell }
  const launch = createLauncher(native, spawner)
  return {
    kind: 'native',
    async launch({ dir, cwd, command, env, maxLogBytes, mode }) {
      await launch(dir, [cwd, String(maxLogBytes), mode, SHELL, 'sh', ...shellArguments(command)], env)
      return { releaseStdin: () => undefined }
    },
  }
}

async function launchWithShell({ dir, cwd, command, env, processId, mode }: Launch): Promise<LaunchResult> {
  const stdin = mode === 'attached-stdin' ? await createStdinFifo(dir) : null
  const releaseStdin = () => {
    if (stdin !== null) closeSync(stdin.fd)
  }
  try {
    await launchShell({ dir, cwd, command, env, processId, stdinPath: stdin?.path ?? '/dev/null' })
    return { releaseStdin }
  } catch (error) {
    releaseStdin()
    throw error
  }
}

/** The descriptor, open for reading and writing, lets the shell open the FIFO without waiting for a writer. */
async function createStdinFifo(dir: string): Promise<{ path: string; fd: number }> {
  const path = join(dir, 'stdin')
  await promisify(execFile)('mkfifo', ['-m', '600', path])
  return { path, fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK) }
}

type ShellLaunch = Omit<Launch, 'maxLogBytes' | 'mode'> & { stdinPath: string }

async function launchShell({ dir, cwd, command, env, processId, stdinPath }: ShellLaunch): Promise<void> {
  const args = ['-c', RUNNER_SCRIPT, 'sh', dir, cwd, stdinPath, COMMAND_SCRIPT, ...shellArguments(command)]
  // The runner is a child of the agent. Its own session lets it outlive the agent.
  const child = spawn(SHELL, args, {
    cwd: '/',
    env: { ...env, [RUNNER_VARIABLE]: processId },
    detached: true,
    stdio: 'ignore',
  })
  await once(child, 'spawn')
  child.unref()
  for (const startedAt = performance.now(); !existsSync(join(dir, 'started')); await delay(POLL_MS)) {
    const failed = join(dir, 'failed')
    const isLate = performance.now() - startedAt > START_TIMEOUT_MS
    if (existsSync(failed)) throw new ApiError('exec_failed', readFileSync(failed, 'utf8').trim())
    if (isLate)
      throw new ApiError(
        'exec_failed',
        `The command did not start within ${START_TIMEOUT_MS / 1000} s. Try again.`,
      )
  }
}
