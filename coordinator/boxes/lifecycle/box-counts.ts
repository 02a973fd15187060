// The number of boxes in each observed state, as a metric.
import { OBSERVED_STATES } from '../../../shared/field-values.ts'
import type { Metric } from '../../http/module.ts'
import type { Lifecycle } from './lifecycle.ts'

/** The query reads every live box, so it runs at most once in this time, independent of the number of scrapes. */
const REFRESH_MS = 60_000

export function createBoxCounts(countBoxes: Lifecycle['countBoxes']): Metric {
  let counts: ReturnType<typeof countBoxes> | undefined
  let countedAt = Number.NEGATIVE_INFINITY
  return {
    type: 'gauge',
    name: 'boxwood_boxes',
    help: 'Boxes by observed state, without deleted ones. Counted once a minute.',
    label: 'state',
    isOfDatabase: true,
    async collect() {
      if (counts === undefined || performance.now() - countedAt > REFRESH_MS) {
        countedAt = performance.now()
        counts = countBoxes()
      }
      // A failed query is counted by boxwood_store_query_failures_total.
      const current = await counts.catch(() => {
        counts = undefined
      })
      if (current === undefined) return null
      const states = OBSERVED_STATES.filter((state) => state !== 'terminated')
      return new Map(states.map((state) => [state, current.get(state) ?? 0]))
    },
  }
}
