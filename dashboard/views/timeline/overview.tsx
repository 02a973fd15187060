// The life of the box, or its last 30 days, as a strip: the range that is shown can be moved in it.
import { useRef } from 'preact/hooks'
import type { Box } from '../../../shared/api/boxes.ts'
import type { Metrics } from '../../../shared/api/metrics.ts'
import { getClient, getCoordinatorTime } from '../../data/live.ts'
import type { TimelineItem } from '../../data/timeline/items.ts'
import { getPlotWidth, PLOT_LEFT } from '../../data/timeline/plot.ts'
import {
  getSpan,
  MAX_SPAN_MS,
  MIN_SPAN_MS,
  pan,
  type Range,
  selectRange,
  type TimelineView,
  toTime,
  toX,
} from '../../data/timeline/range.ts'
import { useLoaded } from '../loaded.tsx'

const HEIGHT = 34
/** Of the states, below the usage. */
const STATE_HEIGHT = 4
const POLL_MS = 300_000
/** A narrower range is drawn so that it can still be moved. */
const MIN_WIDTH = 8
/** A pointer that has moved less has chosen the middle of the range. */
const CLICK_PIXELS = 4

export type OverviewProps = {
  box: Box
  states: readonly TimelineItem[]
  width: number
  view: TimelineView
  change(next: TimelineView): void
}

/** Only for pointers: the keys of the surface do the same. */
export function Overview({ box, states, width, view, change }: OverviewProps) {
  const now = getCoordinatorTime()
  const whole = {
    from: Math.min(Math.max(Date.parse(box.createdAt), now - MAX_SPAN_MS), now - MIN_SPAN_MS),
    to: now,
  }
  const { value } = useLoaded(() => getClient().loadMetrics(box.id, whole), [box.id], POLL_MS)
  const plotWidth = getPlotWidth(width)
  const drag = useRef<{ x: number; view: TimelineView; isInside: boolean; moved: boolean } | null>(null)
  const x = (at: number) => Math.min(plotWidth, Math.max(0, toX(at, whole, plotWidth)))
  const shownWidth = Math.min(plotWidth, Math.max(MIN_WIDTH, x(view.range.to) - x(view.range.from)))
  const left = Math.min(x(view.range.from), plotWidth - shownWidth)
  const locate = (event: PointerEvent) =>
    event.clientX - (event.currentTarget as Element).getBoundingClientRect().left

  function move(event: PointerEvent): void {
    const { current } = drag
    if (current === null) return
    const end = locate(event)
    if (Math.abs(end - current.x) >= CLICK_PIXELS) current.moved = true
    if (!current.moved) return
    const ms = ((end - current.x) / plotWidth) * getSpan(whole)
    change(
      current.isInside
        ? pan(current.view, ms, now)
        : selectRange(current.view, toTime(current.x, whole, plotWidth), toTime(end, whole, plotWidth), now),
    )
  }

  return (
    <svg
      class="overview"
      aria-hidden="true"
      width={plotWidth}
      height={HEIGHT}
      style={{ marginLeft: `${PLOT_LEFT}px` }}
      onPointerDown={(event) => {
        if (event.button !== 0) return
        event.currentTarget.setPointerCapture(event.pointerId)
        const start = locate(event)
        const isInside = start >= left && start <= left + shownWidth
        drag.current = { x: start, view, isInside, moved: false }
      }}
      onPointerMove={move}
      onPointerUp={(event) => {
        const { current } = drag
        drag.current = null
        if (current === null || current.moved || current.isInside) return
        const middle = (view.range.from + view.range.to) / 2
        change(pan(view, toTime(locate(event), whole, plotWidth) - middle, now))
      }}
      onPointerCancel={() => {
        drag.current = null
      }}
    >
      {value !== null && <path class="usage" d={drawUsage(value, whole, plotWidth)} />}
      {states.map(({ id, from, to, tone }) => (
        <rect
          key={id}
          class={`bar ${tone}`}
          x={x(from)}
          y={HEIGHT - STATE_HEIGHT}
          width={Math.max(1, x(to ?? now) - x(from))}
          height={STATE_HEIGHT}
        />
      ))}
      <rect class="shade" x={0} y={0} width={left} height={HEIGHT} />
      <rect
        class="shade"
        x={left + shownWidth}
        y={0}
        width={Math.max(0, plotWidth - left - shownWidth)}
        height={HEIGHT}
      />
      <rect
        class="window"
        x={left + 0.5}
        y={0.5}
        width={Math.max(0, shownWidth - 1)}
        height={HEIGHT - 1}
        rx={3}
      />
    </svg>
  )
}

/** The highest CPU of each bucket as an area, scaled to the highest of all. */
function drawUsage({ buckets, res, series }: Metrics, whole: Range, width: number): string {
  const values = series.cpu_pct.max
  const top = Math.max(1, ...values.map((value) => value ?? 0))
  const height = HEIGHT - STATE_HEIGHT - 4
  const round = (value: number) => Math.round(value * 10) / 10
  return buckets
    .map((start, index) => {
      const value = values[index] ?? null
      if (value === null) return ''
      const left = round(Math.max(0, toX(start * 1000, whole, width)))
      const right = round(Math.min(width, toX((start + res) * 1000, whole, width)))
      const y = round(height + 4 - (value / top) * height)
      return right <= left ? '' : `M${left} ${height + 4}V${y}H${right}V${height + 4}Z`
    })
    .join('')
}
