// Starts a detached process: writes the record, launches the runner, and removes both when the start fails.

import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { AgentStartRequest } from '../../../shared/api/processes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { PROCESS_ID_VARIABLE } from '../../process-table.ts'
import type { CreateEnvironment } from '../environment.ts'
import { toStartError } from '../start-error.ts'
import { findCwdError, resolveCwd } from '../working-directory.ts'
import { type ProcessMetadata, preventStart, readStartRecord, writeMetadata } from './record.ts'
import type { Runner, RunnerKind } from './runner.ts'
import { createTimeIndex } from './time-recorder.ts'

/**
 * The bound of each log of an attached command, at least: more than ATTACHED_WINDOW_BYTES of native/run.c and the pipe of
 * the command, so that output that the client has not read is never discarded.
 */
const ATTACHED_LOG_BYTES = 16 * 1024 * 1024
/** The shell runner does not wait for the client. */
const UNBOUNDED = 2 ** 50

export type StartDeps = {
  /** State directory of all processes. */
  dir: string
  home: string
  createEnv: CreateEnvironment
  bootId: string
  maxLogBytes: number
  runner: Runner
  clock: Clock
  log: Logger
  /** Removes a process directory. */
  remove(dir: string): Promise<void>
}

export type StartResult = {
  meta: ProcessMetadata
  /** To be called when the stdin FIFO of an attached command is open for writing. */
  releaseStdin(): void
}

/**
 * Resolves when the command runs.
 * @throws ApiError not_found, invalid_path or permission_denied for an unusable cwd; exec_failed, with the system's
 * message, when the command cannot be started
 */
export async function startProcess(request: AgentStartRequest, deps: StartDeps): Promise<StartResult> {
  const { processId, command, timeoutSeconds } = request
  const { home, createEnv, bootId, runner, clock, log } = deps
  const dir = join(deps.dir, processId)
  const cwd = resolveCwd(home, request.cwd)
  const startedAt = clock.now()
  const attached = request.attached
    ? {
        stdin: request.stdin ?? false,
        disconnectTimeoutMs: Math.ceil(
          1000 * (request.disconnectTimeoutSeconds ?? LIMITS.disconnectTimeoutSeconds.default),
        ),
      }
    : null
  const maxLogBytes =
    attached === null ? deps.maxLogBytes : getAttachedLogBytes(runner.kind, deps.maxLogBytes)
  const mode = attached === null ? 'detached' : attached.stdin ? 'attached-stdin' : 'attached'
  const meta: ProcessMetadata = {
    processId,
    digest: digestOf(request),
    command,
    cwd: request.cwd || '~',
    startedAt,
    deadline: timeoutSeconds === undefined ? null : startedAt + Math.ceil(timeoutSeconds * 1000),
    bootId,
    maxLogBytes,
    runner: runner.kind,
    record: request.record ?? null,
    attached,
  }
  const env = createEnv(request.boxEnv, request.env)
  // The runner sets this variable for the command. The runner's own environment must not have it.
  delete env[PROCESS_ID_VARIABLE]
  try {
    await mkdir(dir, { mode: 0o700 })
    await writeMetadata(dir, meta)
    if (runner.kind === 'sh') createTimeIndex(dir)
    const { releaseStdin } = await runner.launch({ processId, dir, cwd, command, env, maxLogBytes, mode })
    return { meta, releaseStdin }
  } catch (error) {
    if (!hasStarted(dir)) {
      await deps.remove(dir)
      const cwdError = request.cwd === undefined ? undefined : await findCwdError(cwd)
      throw cwdError ?? toStartError(error)
    }
    log.error({ err: error, processId }, 'the command runs although its runner reported an error')
    return { meta, releaseStdin: () => undefined }
  }
}

const getAttachedLogBytes = (runner: RunnerKind, configured: number): number =>
  runner === 'sh' ? UNBOUNDED : Math.max(configured, ATTACHED_LOG_BYTES)

/** Identifies a start request. Excludes claimsToken and boxEnv, which may change between two attempts. */
export function digestOf(request: AgentStartRequest): string {
  const { command, cwd, timeoutSeconds, env, attached = false, stdin = false } = request
  const variables = Object.entries(env ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const parts = JSON.stringify([command, cwd ?? null, timeoutSeconds ?? null, variables, attached, stdin])
  return createHash('sha256').update(parts).digest('hex')
}

/** Returns whether the command has started. False also prevents a later start. */
function hasStarted(dir: string): boolean {
  try {
    return !preventStart(dir)
  } catch {
    // The disk is full: the runner cannot create the file either.
    return readStartRecord(dir) !== undefined
  }
}
