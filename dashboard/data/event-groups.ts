// The events of a box, as the steps of what was asked for.
import type { BoxEvent } from '../../shared/api/boxes.ts'

/** What was asked for, with its newest event, and the states before it, oldest first. */
export type EventGroup = { event: BoxEvent; earlier: BoxEvent['toState'][] }

/** A later step belongs to another request. */
const MAX_GAP_MS = 600_000

/** @param events newest first. Those that follow each other with the same reason and actor are one group */
export function groupEvents(events: readonly BoxEvent[]): EventGroup[] {
  const groups: EventGroup[] = []
  let last: BoxEvent | undefined
  for (const event of events) {
    const group = groups.at(-1)
    const isSame =
      last !== undefined &&
      event.reason === last.reason &&
      event.actor === last.actor &&
      event.code === last.code &&
      event.toState === last.fromState &&
      Date.parse(last.at) - Date.parse(event.at) <= MAX_GAP_MS
    if (group !== undefined && isSame) group.earlier.unshift(event.toState)
    else groups.push({ event, earlier: [] })
    last = event
  }
  return groups
}
