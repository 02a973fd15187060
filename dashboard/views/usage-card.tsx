// What a box uses, with the course of the last hour.
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import { getClient, getCoordinatorTime } from '../data/live.ts'
import { formatBoxPath } from '../data/routes.ts'
import { type Chart, createCharts } from '../data/timeline/charts.ts'
import { Card } from '../design/card.tsx'
import { Sparkline } from '../design/sparkline.tsx'
import { useLoaded } from './loaded.tsx'

const HOUR_MS = 3_600_000
const POLL_MS = 30_000

/** Those of the timeline, in short words. */
const NAMES: Partial<Record<Chart['id'], string>> = {
  cpu: 'CPU',
  memory: 'Memory',
  space: 'Disk',
  network: 'Network',
}

export function UsageCard({ box, vitals }: { box: Box; vitals: BoxDetail['vitals'] }) {
  const isRunning = box.observedState === 'running'
  const { value } = useLoaded(
    async () => {
      const to = getCoordinatorTime()
      return createCharts(await getClient().loadMetrics(box.id, { from: to - HOUR_MS, to })).charts
    },
    [box.id, isRunning],
    isRunning ? POLL_MS : undefined,
  )
  /** Reported more often than the samples. */
  const live: Partial<Record<Chart['id'], number | null | undefined>> = {
    cpu: vitals?.cpu_pct,
    memory: vitals?.mem_pct,
    space: vitals?.disk_pct,
  }
  const charts = new Map(value?.map((chart) => [chart.id, chart]))
  return (
    <Card title="Usage" href={formatBoxPath(box.hostname, 'timeline')} link="Timeline">
      {vitals === null && value?.length === 0 ? (
        <p>The box has not reported its usage.</p>
      ) : (
        <ul class="lines usage">
          {(Object.keys(NAMES) as Chart['id'][]).map((id) => {
            const chart = charts.get(id)
            const values = chart?.lines[0]?.values ?? []
            const last = values.findLast((known) => known !== null)
            const percent = live[id]
            return (
              <li key={id}>
                <span>{NAMES[id]}</span>
                <Sparkline label={`${NAMES[id]}, last hour`} values={values} top={chart?.top ?? 1} />
                <span class="number">
                  {percent != null
                    ? `${Math.round(percent)} %`
                    : chart !== undefined && last != null
                      ? chart.format(last)
                      : '–'}
                </span>
              </li>
            )
          })}
        </ul>
      )}
    </Card>
  )
}
