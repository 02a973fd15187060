// Starts the runner of a detached process: the parent that stays with the command across agent restarts.
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { getSystemErrorMap, promisify } from 'node:util'
import { ApiError } from '../../../shared/errors.ts'
import { BUNDLED_RUNNER_FILE_NAME, getRunnerFileName } from '../../../shared/native-file-names.ts'
import { loadNativeSpawn } from '../native-spawn.ts'
import { SHELL, shellArguments } from '../shell.ts'
import type { SpawnerKind } from '../spawner.ts'
import { COMMAND_SCRIPT, RUNNER_SCRIPT } from './runner-script.ts'

/** native: native/run.c, compiled. sh: a shell script with the limits listed in runner-script.ts. */
export const RUNNER_KINDS = ['native', 'sh'] as const
export type RunnerKind = (typeof RUNNER_KINDS)[number]

/**
 * Holds the process id in the runner's environment. The runner does not have BOXWOOD_PROCESS_ID, so that terminating the
 * process tree does not signal the runner.
 */
export const RUNNER_VARIABLE = 'BOXWOOD_RUNNER_FOR'

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
  const native = kind === 'sh' ? undefined : findNativeRunner()
  if (kind === 'native' && native === undefined)
    throw new Error(
      'The native runner was not compiled, or does not run on this system. Unset BOXWOOD_RUNNER to use the shell runner.',
    )
  if (native === undefined) return { kind: 'sh', launch: launchWithShell }
  const runToExit = createRunToExit(spawner)
  return {
    kind: 'native',
    async launch({ dir, cwd, command, env, maxLogBytes, processId, mode }) {
      // The launcher in native/run.c forks the runner and exits: with 0 once the command runs, else with the errno of the
      // failed call.
      const args = [dir, cwd, String(maxLogBytes), mode, SHELL, 'sh', ...shellArguments(command)]
      const status = await runToExit(native, args, { ...env, [RUNNER_VARIABLE]: processId })
      if (status === 0 || existsSync(join(dir, 'started'))) return { releaseStdin: () => undefined }
      const errno = -(status ?? 0)
      const [code = 'UNKNOWN', message = `status ${status}`] = getSystemErrorMap().get(errno) ?? []
      throw Object.assign(new Error(`run ${code}: ${message}`), { errno, code, syscall: 'run' })
    },
  }
}

function findNativeRunner(): string | undefined {
  const resolvePath = (path: string) => fileURLToPath(new URL(path, import.meta.url))
  const source = resolvePath('../native/run.c')
  // A box has only the bundle, without sources.
  const file = existsSync(source)
    ? resolvePath(`../native/${getRunnerFileName(readFileSync(source))}`)
    : resolvePath(`./${BUNDLED_RUNNER_FILE_NAME}`)
  // Probe: the binary may be for another system, or on a file system mounted noexec.
  return spawnSync(file, [], { env: {} }).status === 0 ? file : undefined
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
