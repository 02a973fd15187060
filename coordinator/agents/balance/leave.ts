// Moves all agents away from a coordinator that stops, while it still serves requests.
import { setTimeout as sleep } from 'node:timers/promises'

export type LeaveOptions = {
  boxIds: readonly string[]
  /** Whether a request or a connection of a client uses the box. */
  isInUse(boxId: string): boolean
  /** See AgentConnections.moveAwayWhenUnused. */
  moveAway(boxId: string, waitMs: number): Promise<boolean>
  /** How long requests may use a tunnel. Default: 10 s. */
  graceMs?: number
}

/** A coordinator accepts the agents of another one at this rate, with TLS too. */
const MAX_PER_SECOND = 200
/** Fewer agents are moved in this time, and more agents faster than the rate. */
const MIN_SPREAD_MS = 2_000
const MAX_SPREAD_MS = 30_000
const MAX_INTERVAL_MS = 50
/** A box that is in use is moved between two requests. */
const PREFER_UNUSED_MS = 2_000
/** How long further requests wait for one in flight, before the tunnel serves them too. */
const HOLD_MS = 1_000
const GRACE_MS = 10_000
const POLL_MS = 20

/** Resolves to the number of agents that have not been moved, because requests have used their tunnels for too long. */
export async function moveAllAway(options: LeaveOptions): Promise<number> {
  const { boxIds, graceMs = GRACE_MS } = options
  const spreadMs = Math.max(MIN_SPREAD_MS, Math.min(MAX_SPREAD_MS, (boxIds.length / MAX_PER_SECOND) * 1000))
  const intervalMs = Math.min(MAX_INTERVAL_MS, spreadMs / boxIds.length)
  const moved = await Promise.all(
    boxIds.map(async (boxId, index) => {
      await sleep(index * intervalMs)
      return moveOne(options, boxId, performance.now() + graceMs)
    }),
  )
  return moved.filter((isMoved) => !isMoved).length
}

async function moveOne(
  { isInUse, moveAway }: LeaveOptions,
  boxId: string,
  deadline: number,
): Promise<boolean> {
  const preferUntil = Math.min(deadline, performance.now() + PREFER_UNUSED_MS)
  while (isInUse(boxId) && performance.now() < preferUntil) await sleep(POLL_MS)
  while (!(await moveAway(boxId, HOLD_MS))) {
    if (performance.now() >= deadline) return false
    await sleep(POLL_MS)
  }
  return true
}
