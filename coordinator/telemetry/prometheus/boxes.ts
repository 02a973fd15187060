// The number of boxes in each observed state.
import { Gauge, type Registry } from 'prom-client'
import { OBSERVED_STATES } from '../../../shared/api/boxes.ts'
import type { Lifecycle } from '../../lifecycle/lifecycle.ts'

/** The query reads every live box, so it runs at most once in this time, independent of the number of scrapes. */
const REFRESH_MS = 60_000

export function createBoxMetrics(registers: Registry[], countBoxes: Lifecycle['countBoxes']): void {
  let counts: ReturnType<typeof countBoxes> | undefined
  let countedAt = Number.NEGATIVE_INFINITY
  new Gauge({
    name: 'boxwood_boxes',
    help: 'Boxes by observed state, without deleted ones. Counted once a minute.',
    labelNames: ['state'],
    registers,
    async collect() {
      if (counts === undefined || performance.now() - countedAt > REFRESH_MS) {
        countedAt = performance.now()
        counts = countBoxes()
      }
      // A failed query is counted by boxwood_store_query_failures_total.
      const current = await counts.catch(() => {
        counts = undefined
      })
      this.reset()
      if (current === undefined) return
      for (const state of OBSERVED_STATES)
        if (state !== 'terminated') this.set({ state }, current.get(state) ?? 0)
    },
  })
}
