// Child process of fleet.ts: receives a Fleet message, opens the tunnels of its boxes and sends their heartbeats. Sends the
// parent the milliseconds until all tunnels were connected.
import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { reportRoutes } from '../agent/reports/routes.ts'
import { openSpool } from '../agent/reports/spool.ts'
import { createJsonRouter } from '../agent/requests/json-routes.ts'
import { openState } from '../agent/state.ts'
import { startTunnel } from '../agent/tunnel/tunnel.ts'
import { systemClock } from '../shared/clock.ts'
import type { Fleet } from '../test/support/fleet.ts'

process.once('message', async ({ url, boxes }: Fleet) => {
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
    return router
  }
  const startedAt = performance.now()
  let connectedCount = 0
  const onConnected = () => {
    connectedCount += 1
    if (connectedCount === boxes.length) process.send?.(performance.now() - startedAt)
  }
  for (const { boxId, token } of boxes) {
    startTunnel({
      readUrl: async () => url,
      boxId,
      readToken: async () => token,
      instanceId: randomUUID(),
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
