// The lanes, the charts and the surface above them, with one time axis.
import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { formatLocalTime } from '../../data/local-time.ts'
import type { Charts } from '../../data/timeline/charts.ts'
import type { TimelineItem } from '../../data/timeline/items.ts'
import { getPlotWidth, PLOT_LEFT } from '../../data/timeline/plot.ts'
import { type TimelineView, toTime } from '../../data/timeline/range.ts'
import { findItem, type Rows } from '../../data/timeline/rows.ts'
import { listTicks } from '../../data/timeline/ticks.ts'
import { showHidden } from '../../data/visible-text.ts'
import { lazy } from '../lazy.tsx'
import type { ChartListProps } from './charts.tsx'
import { LaneChart } from './lane-chart.tsx'
import { Surface } from './surface.tsx'

const ChartList = lazy<ChartListProps>(async () => (await import('./charts.tsx')).ChartList)

/** Pixels between two labels of the time axis. */
const TICK_SPACE = 70
const TITLE_CHARS = 120

export type PlotProps = {
  /** Has the width of the plot. */
  element: RefObject<HTMLDivElement | null>
  width: number
  view: TimelineView
  charts: Charts | null
  layout: Rows
  change(next: TimelineView): void
  /** @param itemId of the bar at the pointer */
  onSelect(at: number, itemId: string | null): void
}

export function Plot({ element, width, view, charts, layout, change, onSelect }: PlotProps) {
  const svg = useRef<SVGSVGElement>(null)
  const pointer = useSignal<{ x: number; y: number } | null>(null)
  const { range } = view
  const plotWidth = getPlotWidth(width)
  // The charts are drawn again for other ticks.
  const ticks = useMemo(() => listTicks(range, plotWidth / TICK_SPACE), [range, plotWidth])
  const hoverTime = pointer.value && toTime(pointer.value.x, range, plotWidth)
  const hovered = pointer.value && findItem(layout, pointer.value.x, pointer.value.y)
  const locate = ({ clientX, clientY }: { clientX: number; clientY: number }) => {
    const box = svg.current?.getBoundingClientRect()
    return { x: clientX - (box?.left ?? 0) - PLOT_LEFT, y: clientY - (box?.top ?? 0) }
  }
  return (
    <div ref={element} class="plot">
      <LaneChart svg={svg} layout={layout} range={range} ticks={ticks} plotWidth={plotWidth} />
      {charts !== null && width > 0 && (
        <ChartList data={charts} range={range} ticks={ticks} width={width} time={hoverTime} />
      )}
      <Surface
        view={view}
        plotWidth={plotWidth}
        hoverTime={hoverTime}
        readout={
          hoverTime !== null && `${formatLocalTime(hoverTime)}${hovered ? ` · ${describe(hovered)}` : ''}`
        }
        change={change}
        onHover={(position) => {
          pointer.value = position && locate(position)
        }}
        onClick={(position) => {
          const { x, y } = locate(position)
          onSelect(toTime(x, range, plotWidth), findItem(layout, x, y)?.id ?? null)
        }}
      />
    </div>
  )
}

const describe = ({ title, result }: TimelineItem): string =>
  `${showHidden(title.slice(0, TITLE_CHARS))} · ${showHidden(result)}`
