// Starts a detached process: writes the record, launches the runner, and removes both when the start fails.
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { AgentStartRequest } from '../../../shared/api/processes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { PROCESS_ID_VARIABLE } from '../environment.ts'
import { startError } from '../start-error.ts'
import { cwdProblem, resolveCwd } from '../working-directory.ts'
import { type Meta, preventStart, readStarted, writeMeta } from './record.ts'
import type { Runner } from './runner.ts'

export type StartDeps = {
  /** State directory of all processes. */
  dir: string
  home: string
  baseEnv: Record<string, string>
  bootId: string
  logBytes: number
  runner: Runner
  clock: Clock
  log: FastifyBaseLogger
  /** Removes a process directory. */
  remove(dir: string): Promise<void>
}

/**
 * Resolves when the command runs.
 * @throws ApiError not_found, invalid_path or permission_denied for an unusable cwd; exec_failed, with the system's
 * message, when the command cannot be started
 */
export async function startProcess(request: AgentStartRequest, deps: StartDeps): Promise<Meta> {
  const { processId, command, timeoutSeconds } = request
  const { home, baseEnv, bootId, logBytes, runner, clock, log } = deps
  const dir = join(deps.dir, processId)
  const cwd = resolveCwd(home, request.cwd)
  const startedAt = clock.now()
  const meta: Meta = {
    processId,
    digest: digestOf(request),
    command,
    cwd: request.cwd || '~',
    startedAt,
    deadline: timeoutSeconds === undefined ? null : startedAt + Math.ceil(timeoutSeconds * 1000),
    bootId,
    maxLogBytes: logBytes,
    runner: runner.kind,
    record: request.record ?? null,
  }
  const env: Record<string, string> = { ...baseEnv, ...request.boxEnv, ...request.env }
  // The runner sets it for the command and must not carry it itself.
  delete env[PROCESS_ID_VARIABLE]
  try {
    await mkdir(dir, { mode: 0o700 })
    await writeMeta(dir, meta)
    await runner.launch({ processId, dir, cwd, command, env, maxLogBytes: logBytes })
  } catch (error) {
    if (!hasStarted(dir)) {
      await deps.remove(dir)
      const problem = request.cwd === undefined ? undefined : await cwdProblem(cwd)
      throw problem ?? startError(error)
    }
    log.error({ err: error, processId }, 'the command runs although its runner reported an error')
  }
  return meta
}

/** Identifies a start request. Excludes claimsToken and boxEnv, which may change between two attempts. */
export function digestOf({ command, cwd, timeoutSeconds, env }: AgentStartRequest): string {
  const variables = Object.entries(env ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const parts = JSON.stringify([command, cwd ?? null, timeoutSeconds ?? null, variables])
  return createHash('sha256').update(parts).digest('hex')
}

/** False when the command has not started; it then never will. */
function hasStarted(dir: string): boolean {
  try {
    return !preventStart(dir)
  } catch {
    // A full disk: no file can be created, by the runner neither.
    return readStarted(dir) !== undefined
  }
}
