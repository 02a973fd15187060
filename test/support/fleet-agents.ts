// Child process with simulated agents: receives the URL and the boxes of a Fleet message, opens the tunnels of the boxes and sends
// their heartbeats. Sends the parent the milliseconds until all tunnels were connected. A command prints itself, and is not run.
import { randomBytes, randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { reportRoutes } from '../../agent/reports/routes.ts'
import { openSpool } from '../../agent/reports/spool.ts'
import { createJsonRouter } from '../../agent/requests/json-routes.ts'
import { openState } from '../../agent/state.ts'
import { startTunnel } from '../../agent/tunnel/tunnel.ts'
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { systemClock } from '../../shared/clock.ts'
import { LINEAGE_HEADER } from '../../shared/protocol.ts'
import type { Fleet } from './fleet.ts'

/** Default of `perSecond`: all agents start at once. */
export type SimulatedFleet = Pick<Fleet, 'url' | 'boxes'> & { perSecond?: number }

process.once('message', async ({ url, boxes, perSecond }: SimulatedFleet) => {
  const log = pino({ level: 'error' }, pino.destination(2))
  const stateDir = await mkdtemp(join(tmpdir(), 'boxwood-fleet-agents-'))
  const state = await openState(stateDir, log)
  const spool = await openSpool({ dir: join(stateDir, 'reports'), stateFile: state, log })
  const readVitals = () => ({
    cpu_pct: 1,
    mem_pct: 2,
    disk_pct: 3,
    idle_for_sec: 4,
    listeners_count: 5,
    agent_version: 'bench',
  })
  const listeners = new EventEmitter<{ change: [] }>().setMaxListeners(0)
  /** Each agent has routes of its own, because they have one stream of reports. */
  function createRouter() {
    const router = createJsonRouter()
    reportRoutes(router, {
      spool,
      readVitals,
      clock: systemClock,
      listeners: { current: () => null, events: listeners },
      flushRecorders: async () => undefined,
    })
    router.add('POST', '/exec', ({ body }): ExecResult => {
      const now = new Date(systemClock.now()).toISOString()
      return {
        ok: true,
        type: 'exec.result',
        exitCode: 0,
        signal: null,
        stdout: (body as ExecRequest).command,
        stderr: '',
        stdoutTruncated: false,
        stderrTruncated: false,
        timedOut: false,
        startedAt: now,
        finishedAt: now,
        cwd: '~',
      }
    })
    return router
  }
  const startedAt = performance.now()
  let connectedCount = 0
  const onConnected = () => {
    connectedCount += 1
    if (connectedCount === boxes.length) process.send?.(performance.now() - startedAt)
  }
  for (const { boxId, token } of boxes) {
    if (perSecond !== undefined) await delay(1_000 / perSecond)
    // An enrolled machine needs one.
    const lineage = randomBytes(8).toString('hex')
    startTunnel({
      readUrl: async () => url,
      boxId,
      readToken: async () => token,
      instanceId: randomUUID(),
      readHeaders: async () => ({ [LINEAGE_HEADER]: lineage }),
      onConnected,
      router: createRouter(),
      log,
      clock: systemClock,
    })
  }
  process.on('SIGTERM', async () => {
    await rm(stateDir, { recursive: true, force: true })
    process.exit(0)
  })
})
