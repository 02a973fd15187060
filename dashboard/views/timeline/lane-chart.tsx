// The time axis and the lanes of state changes, commands, prompts and snapshots. Screen readers use the list of the same items.
import type { Ref } from 'preact'
import { KIND_LABELS, type TimelineItem } from '../../data/timeline/items.ts'
import type { Bar } from '../../data/timeline/lanes.ts'
import { PLOT_LEFT, PLOT_RIGHT } from '../../data/timeline/plot.ts'
import { type Range, toX } from '../../data/timeline/range.ts'
import { AXIS_HEIGHT, getLaneTop, type Row, type Rows } from '../../data/timeline/rows.ts'
import type { Tick } from '../../data/timeline/ticks.ts'
import { showHidden } from '../../data/visible-text.ts'

/** Narrower bars have no text. */
const TEXT_WIDTH = 40
const CHARACTER_WIDTH = 6.5
/** The label of a tick. */
const LABEL_WIDTH = 34

export type LaneChartProps = {
  svg: Ref<SVGSVGElement>
  layout: Rows
  range: Range
  ticks: readonly Tick[]
  plotWidth: number
}

export function LaneChart({ svg, layout, range, ticks, plotWidth }: LaneChartProps) {
  const { rows, height } = layout
  const width = plotWidth + PLOT_LEFT + PLOT_RIGHT
  return (
    <svg ref={svg} class="lanes" aria-hidden="true" width={width} height={height}>
      {ticks.map(({ at, label }) => {
        const x = PLOT_LEFT + toX(at, range, plotWidth)
        return (
          <g key={at}>
            <line class="grid" x1={x} x2={x} y1={AXIS_HEIGHT - 6} y2={height} />
            <text x={Math.min(x, width - LABEL_WIDTH / 2)} y={12} text-anchor="middle">
              {label}
            </text>
          </g>
        )
      })}
      {rows.map((row) => (
        <g key={row.kind}>
          <text x={0} y={row.top + 11}>
            {KIND_LABELS[row.kind]}
          </text>
          {row.lanes.bars.map((bar) => (
            <BarView key={bar.item.id} bar={bar} row={row} />
          ))}
        </g>
      ))}
    </svg>
  )
}

function BarView({ bar: { item, lane, x, width }, row }: { bar: Bar<TimelineItem>; row: Row }) {
  const y = getLaneTop(row, lane)
  const left = PLOT_LEFT + x
  return (
    <>
      <rect class={`bar ${item.tone}`} x={left} y={y} width={width} height={row.laneHeight} rx={2} />
      {row.kind === 'state' && width >= TEXT_WIDTH && (
        <text class="bar-text" x={left + 4} y={y + 13}>
          {showHidden(item.title).slice(0, Math.floor((width - 6) / CHARACTER_WIDTH))}
        </text>
      )}
    </>
  )
}
