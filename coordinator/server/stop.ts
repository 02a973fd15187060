// Stops serving requests: as the only coordinator at once, and as one of several only when the others have taken over.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { withTimeout } from '../base/timeout.ts'
import type { HttpServer } from '../http/server.ts'
import type { TlsListener } from '../http/tls-listener.ts'
import type { Replica } from '../replicas/replica.ts'
import type { ModuleList } from './module-list.ts'

export type StopOptions = {
  /** The phase is what GET /readyz responds with. */
  health: { phase: 'starting' | 'ready' | 'draining' }
  http: Omit<HttpServer, 'close'>
  /** null: there is no HTTPS listener. */
  tls: Pick<TlsListener, 'stopListening'> | null
  modules: Pick<ModuleList, 'leave' | 'beginStop' | 'drain'>
  replica: Pick<Replica, 'id' | 'fleet' | 'isLeaseValid'>
  log: Pick<Logger, 'warn'>
}

export type Stop = {
  /** Begins nothing new. Requests get 503 from now on; where the others have taken over, they are still served. */
  begin(): Promise<void>
  /** Waits up to `ms` for requests in flight, and then serves none. Does nothing when begin() has refused requests already. */
  finishRequests(ms: number): Promise<void>
  /** See Coordinator. */
  drain(ms: number): Promise<void>
}

const POLL_MS = 20
const READ_MS = 2_000

export function createStop({ health, http, tls, modules, replica, log }: StopOptions): Stop {
  let hasLeft = false

  /** Whether another coordinator accepts agents. */
  async function hasSuccessor(): Promise<boolean> {
    const { fleet, id } = replica
    if (fleet === null || !replica.isLeaseValid) return false
    try {
      const members = await withTimeout(fleet.read(), READ_MS, 'the database does not respond')
      return members.some((member) => member.id !== id && member.tunnels !== null)
    } catch (err) {
      log.warn({ err }, 'the other coordinators are not known; stops without them')
      return false
    }
  }

  async function waitUntilIdle(deadline: number): Promise<void> {
    while (http.getInFlightCount() > 0 && performance.now() < deadline) await sleep(POLL_MS)
  }

  async function begin(): Promise<void> {
    health.phase = 'draining'
    if (await hasSuccessor()) {
      http.beginLeaving()
      await modules.leave()
      hasLeft = true
    } else http.rejectNewRequests()
    modules.beginStop()
  }

  async function finishRequests(ms: number): Promise<void> {
    if (!hasLeft) return
    const now = performance.now()
    // Some proxies do not check the health: requests arrive until it stops to listen.
    await waitUntilIdle(now + ms / 2)
    http.stopListening()
    tls?.stopListening()
    await waitUntilIdle(now + ms)
    http.rejectNewRequests()
  }

  return {
    begin,
    finishRequests,
    async drain(ms) {
      await begin()
      if (hasLeft) await finishRequests(ms)
      else await waitUntilIdle(performance.now() + ms)
      await modules.drain()
    },
  }
}
