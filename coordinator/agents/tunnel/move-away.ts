// Closes a tunnel, so that its agent connects to another coordinator.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from './registry.ts'

const MOVED = 'this coordinator has more agents than the others'
const STOPPING = 'this coordinator is stopping'
/** A request may have got the tunnel, and not have used it yet. */
const UNUSED_MS = 50
const POLL_MS = 10

/** See AgentConnections. */
export function moveAway(registry: Registry, boxId: string, reconnectAfterMs: number): boolean {
  const session = registry.get(boxId)
  // A tunnel that is on hold may be about to restart its agent.
  if (session === undefined || session.isInUse() || !registry.hold(session)) return false
  registry.remove(session, MOVED)
  registry.release(session)
  session.destroyForReconnect(reconnectAfterMs, MOVED)
  return true
}

/** See AgentConnections. */
export async function moveAwayWhenUnused(
  registry: Registry,
  boxId: string,
  waitMs: number,
): Promise<boolean> {
  const session = registry.get(boxId)
  if (session === undefined) return true
  // The agent is being restarted.
  if (!registry.hold(session)) return false
  try {
    const deadline = performance.now() + waitMs
    let usedAt = performance.now()
    while (performance.now() - usedAt < UNUSED_MS) {
      if (performance.now() > deadline) return false
      await sleep(POLL_MS)
      if (session.isInUse()) usedAt = performance.now()
    }
    registry.remove(session, STOPPING)
    session.destroyForReconnect(0, STOPPING)
    return true
  } finally {
    registry.release(session)
  }
}
