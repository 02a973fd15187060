// The start of a detached process: first the record, then the runner, and nothing of both where it fails.
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
  /** Of all processes. */
  folder: string
  home: string
  baseEnv: Record<string, string>
  bootId: string
  logBytes: number
  runner: Runner
  clock: Clock
  log: FastifyBaseLogger
  /** Removes the folder of one process. */
  remove(folder: string): Promise<void>
}

/**
 * Resolves when the command runs.
 * @throws ApiError not_found, invalid_path or permission_denied for a cwd it cannot start in; exec_failed, with the
 * system's words, when it cannot be started
 */
export async function startProcess(request: AgentStartRequest, deps: StartDeps): Promise<Meta> {
  const { processId, command, timeoutSeconds } = request
  const { home, baseEnv, bootId, logBytes, runner, clock, log } = deps
  const folder = join(deps.folder, processId)
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
    keepBytes: logBytes,
    runner: runner.kind,
    record: request.record ?? null,
  }
  const env: Record<string, string> = { ...baseEnv, ...request.boxEnv, ...request.env }
  // The runner adds it for the command, and must not carry it itself.
  delete env[PROCESS_ID_VARIABLE]
  try {
    await mkdir(folder, { mode: 0o700 })
    await writeMeta(folder, meta)
    await runner.launch({ processId, folder, cwd, command, env, keepBytes: logBytes })
  } catch (error) {
    if (isStopped(folder)) {
      await deps.remove(folder)
      const problem = request.cwd === undefined ? undefined : await cwdProblem(cwd)
      throw problem ?? startError(error)
    }
    log.error({ err: error, processId }, 'it was started, though its runner said otherwise')
  }
  return meta
}

/**
 * Of what makes it the same request: the coordinator may have sealed its receipt anew, and the box's own variables may
 * have changed since.
 */
export function digestOf({ command, cwd, timeoutSeconds, env }: AgentStartRequest): string {
  const variables = Object.entries(env ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const parts = JSON.stringify([command, cwd ?? null, timeoutSeconds ?? null, variables])
  return createHash('sha256').update(parts).digest('hex')
}

/** True when it has not begun, and never will. On a disk that cannot take a name more, what is there tells. */
function isStopped(folder: string): boolean {
  try {
    return preventStart(folder)
  } catch {
    return readStarted(folder) === undefined
  }
}
