// The stream of heartbeats, listening ports and spooled reports.
import { type EventEmitter, once } from 'node:events'
import type { Vitals } from '../../shared/api/boxes.ts'
import type { ListeningTuple } from '../../shared/api/process-snapshots.ts'
import type { Heartbeat, ListenersLine } from '../../shared/api/reports.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Cursor } from './segments.ts'
import { type Spool, START_CURSOR } from './spool.ts'

export type ReportStreamDeps = {
  spool: Spool
  /** Returns the vitals of the last sample. */
  readVitals(): Vitals
  /** The listening ports. */
  listeners: { current(): readonly ListeningTuple[] | null; events: EventEmitter<{ change: [] }> }
  /** After 'change', a heartbeat follows at once. */
  codingAgents?: { events: EventEmitter<{ change: [] }> }
  clock: Clock
  heartbeatIntervalMs?: number
}

/**
 * Yields a heartbeat immediately and then every `heartbeatIntervalMs`, and the listening ports immediately and after each
 * change. In between, yields the reports of the spool: first the stored reports, then each new report. When the
 * coordinator stalls, only one chunk is buffered and no heartbeats accumulate.
 */
export async function* streamReports(
  deps: ReportStreamDeps,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  const { spool, clock, readVitals, listeners, heartbeatIntervalMs = 10_000 } = deps
  let cursor: Cursor = START_CURSOR
  let nextHeartbeat = 0
  let sentPorts: readonly ListeningTuple[] | null = null
  // A listener for the whole stream: changes while the coordinator stalls count too.
  const sendHeartbeatNow = () => {
    nextHeartbeat = 0
  }
  deps.codingAgents?.events.on('change', sendHeartbeatNow)
  signal.addEventListener('abort', () => deps.codingAgents?.events.off('change', sendHeartbeatNow))
  while (!signal.aborted) {
    if (performance.now() >= nextHeartbeat) {
      nextHeartbeat = performance.now() + heartbeatIntervalMs
      const heartbeat: Heartbeat = { type: 'heartbeat', at: clock.now(), vitals: readVitals() }
      yield toLine(heartbeat)
    }
    const ports = listeners.current()
    if (ports !== null && ports !== sentPorts) {
      sentPorts = ports
      yield toLine({ type: 'listeners', at: clock.now(), ports: JSON.stringify(ports) })
      continue
    }
    // Subscribe before reading, so that a report appended in between is not missed.
    const waitController = new AbortController()
    const timer = setTimeout(() => waitController.abort(), Math.max(0, nextHeartbeat - performance.now()))
    const waitSignal = AbortSignal.any([signal, waitController.signal])
    const nextChange = Promise.race([
      spool.waitForReport(waitSignal),
      once(listeners.events, 'change', { signal: waitSignal }),
      ...(deps.codingAgents ? [once(deps.codingAgents.events, 'change', { signal: waitSignal })] : []),
    ]).catch(() => undefined)
    try {
      const batch = await spool.read(cursor)
      if (batch === null) {
        await nextChange
        continue
      }
      cursor = batch.next
      yield batch.lines
    } finally {
      clearTimeout(timer)
      waitController.abort()
    }
  }
}

const toLine = (value: Heartbeat | ListenersLine): Buffer => Buffer.from(`${JSON.stringify(value)}\n`)
