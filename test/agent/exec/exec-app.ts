// A small app with the exec routes alone, for the tests of this folder.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fastify } from 'fastify'
import type { Test } from 'tap'
import type { DetachedProcesses } from '../../../agent/exec/detached/types.ts'
import { hasEnvironmentVariable, listPids } from '../../../agent/exec/process-table.ts'
import { execRoutes } from '../../../agent/exec/routes.ts'
import { SPAWNER_KINDS } from '../../../agent/exec/spawner.ts'
import type { StreamDialer } from '../../../agent/tunnel/stream-dialer.ts'
import { createActivityTracker } from '../../../agent/vitals/activity-tracker.ts'
import { type ExecResult, execResult } from '../../../shared/api/exec.ts'
import { systemClock } from '../../../shared/clock.ts'
import { ApiError, edgeErrorBody } from '../../../shared/errors.ts'
import { createTempDir } from '../../support/temp-dir.ts'

export type Refusal = { ok: false; error: { code: string; message: string } }

/** For tests of synchronous commands. */
const NO_PROCESSES: DetachedProcesses = {
  start: () => Promise.reject(new Error('detached processes have tests of their own')),
  list: () => [],
  get: () => undefined,
  kill: () => Promise.reject(new ApiError('not_found')),
  subscribe: () => () => {},
  close: () => Promise.resolve(),
}

export const NO_STREAMS: StreamDialer = {
  send: () => Promise.reject(new Error('no stream dialer in this test')),
  close: () => undefined,
}

export function execApp(t: Test) {
  const home = createTempDir(t, 'exec')
  const activity = createActivityTracker(systemClock)
  const app = fastify({ bodyLimit: 16 * 1024 * 1024 })
  const spawner = SPAWNER_KINDS.find((kind) => kind === process.env.BOXWOOD_SPAWNER) ?? null
  const processes = NO_PROCESSES
  const deps = { home, log: app.log, clock: systemClock, activity, spawner, processes, streams: NO_STREAMS }
  app.setErrorHandler((error, _request, reply) => {
    const refusal = error instanceof ApiError ? error : new ApiError('internal_error', String(error))
    return reply.status(refusal.status).send(edgeErrorBody(refusal))
  })
  app.register(async (scope) => {
    await execRoutes(scope, deps)
  })
  t.teardown(() => app.close())

  const post = (body: object) => app.inject({ method: 'POST', url: '/exec', payload: body })
  return {
    app,
    deps,
    home,
    activity,
    /** Runs to the answer, which must have the documented shape. */
    async exec(command: string, more: object = {}): Promise<ExecResult> {
      const answer = await post({ command, ...more })
      if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${answer.body}`)
      return execResult.parse(answer.json())
    },
    async refused(body: object): Promise<{ status: number; code: string; message: string }> {
      const answer = await post(body)
      const { error } = answer.json<Refusal>()
      return { status: answer.statusCode, ...error }
    },
  }
}

const DEADLINE_MS = 10_000

/** Waits for a condition, not for a time. */
export async function waitUntil(what: string, condition: () => boolean): Promise<void> {
  for (const start = Date.now(); !condition(); await delay(5)) {
    if (Date.now() - start > DEADLINE_MS) throw new Error(`it never came to this: ${what}`)
  }
}

/** The pid that a fixture wrote into a file of the home directory, once it is there. */
export async function pidIn(home: string, name: string): Promise<number> {
  const path = join(home, name)
  const text = () => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  await waitUntil(`${name} holds a pid`, () => text().endsWith('\n'))
  return Number(text())
}

/** False for a zombie too: it runs nothing any more. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** Everything alive that was started by the app with this home directory, unless it cleaned its environment. */
export const startedUnder = (home: string): number[] =>
  listPids().filter((pid) => isAlive(pid) && hasEnvironmentVariable(pid, `HOME=${home}`))
