// Warnings about what boxes report: at most one line per box and hour, because a box can repeat its reports at will.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'

/** `fields` are added to the line. */
export type WarnOfBox = (boxId: string, message: string, fields?: Record<string, unknown>) => void

const INTERVAL_MS = 60 * 60 * 1000
const MAX_BOXES = 10_000

export function createBoxWarnings({ log, clock }: { log: Pick<Logger, 'warn'>; clock: Clock }): WarnOfBox {
  /** The time of each box's last line, oldest first. */
  const lastLines = new Map<string, number>()

  return (boxId, message, fields = {}) => {
    const now = clock.now()
    const last = lastLines.get(boxId)
    if (last !== undefined && Math.abs(now - last) < INTERVAL_MS) return
    lastLines.delete(boxId)
    lastLines.set(boxId, now)
    const [oldestId] = lastLines.keys()
    if (lastLines.size > MAX_BOXES && oldestId !== undefined) lastLines.delete(oldestId)
    log.warn({ boxId, ...fields }, message)
  }
}
