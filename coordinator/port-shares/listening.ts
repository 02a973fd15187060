// The listening ports that a box has reported, if the report is recent.
import type { ObservedState } from '../../shared/api/boxes.ts'
import type { Listening } from '../../shared/api/port-shares.ts'
import type { ListeningPort } from '../../shared/api/process-snapshots.ts'
import { toTimestamp } from '../../shared/clock.ts'
import type { BoxRow } from '../db/schema.ts'

/** Reports that this coordinator has in memory and that the row may not have yet. `at`: milliseconds since the epoch. */
export type RecentReports = {
  heartbeat: { at: number } | undefined
  ports: { ports: readonly ListeningPort[]; at: number } | undefined
}

/** An agent reports every ten seconds. */
const MAX_AGE_MS = 3 * 60 * 1000
/** In other states the stored list is that of an earlier machine, or there is none. */
const STATES_WITH_PORTS: readonly ObservedState[] = ['running', 'suspending', 'degraded']

/** Returns null when the list may be outdated. The agent sends every change at once: each report confirms the list. */
export function findListening(
  row: Pick<BoxRow, 'observed_state' | 'listening_ports' | 'last_heartbeat_at'>,
  { heartbeat, ports: unwritten }: RecentReports,
  now: number,
): Listening | null {
  if (!STATES_WITH_PORTS.includes(row.observed_state)) return null
  const at = Math.max(row.last_heartbeat_at ?? 0, heartbeat?.at ?? 0, unwritten?.at ?? 0)
  if (now - at > MAX_AGE_MS) return null
  const ports = unwritten?.ports ?? parsePorts(row.listening_ports)
  if (ports === null) return null
  return { at: toTimestamp(at), ports: [...ports].sort((a, b) => a.port - b.port) }
}

/** Does not validate: the coordinator wrote the JSON from validated values. */
const parsePorts = (text: string | null): ListeningPort[] | null =>
  text === null ? null : (JSON.parse(text) as ListeningPort[])
