// The days of a month as stacked bars, and the same as a table.
import { useRef } from 'preact/hooks'
import {
  type Bar,
  formatMicros,
  formatPrice,
  MICROS_PER_DOLLAR,
  roundUp,
  type UsageRow,
} from '../../data/billing.ts'
import { showHidden } from '../../data/visible-text.ts'
import { useWidth } from '../use-width.ts'

const HEIGHT = 200
const LEFT = 56
const BOTTOM = 24
const TOP = 10
const GAP = 3
const LINES = 4
/** The lines of a smaller axis are not whole cents. */
const CENTS = (LINES * MICROS_PER_DOLLAR) / 100
/** Below it, only every fifth day has its number. */
const LABEL_WIDTH = 22
/** The API names this number of rows; all others have the last colour. */
const SERIES = 7

/** The class with the colour of the row; null: all others. */
export const getSeries = (row: number | null): string =>
  `series-${row === null || row >= SERIES ? SERIES : row}`

export type DayBarsProps = { bars: readonly Bar[]; rows: readonly UsageRow[]; split: 'box' | 'member' }

export function DayBars({ bars, rows, split }: DayBarsProps) {
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const max = roundUp(Math.max(...bars.map(({ micros }) => micros)))
  const toY = (micros: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - micros / max)
  const step = (width - LEFT) / bars.length
  return (
    <div ref={frame} class="day-bars">
      {width > 0 && (
        <svg
          class="days"
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`The cost of each day by ${split}`}
        >
          {Array.from({ length: LINES + 1 }, (_, index) => {
            const micros = (max * index) / LINES
            return (
              <g key={index}>
                <line x1={LEFT} x2={width} y1={toY(micros)} y2={toY(micros)} />
                <text x={LEFT - 8} y={toY(micros) + 4} text-anchor="end">
                  {(max < CENTS ? formatPrice : formatMicros)(micros)}
                </text>
              </g>
            )
          })}
          {bars.map((bar, index) => (
            <g key={bar.day}>
              <title>{`${bar.day}: ${formatMicros(bar.micros)}${bar.parts.length > 0 ? `\n${describeParts(bar, rows)}` : ''}`}</title>
              <rect class="day" x={LEFT + index * step} y={TOP} width={step} height={HEIGHT - TOP - BOTTOM} />
              {stack(bar).map(({ row, from, to }) => (
                <rect
                  key={row}
                  class={getSeries(row)}
                  x={LEFT + index * step + GAP / 2}
                  y={toY(to)}
                  width={Math.max(1, step - GAP)}
                  height={toY(from) - toY(to)}
                />
              ))}
              {(step >= LABEL_WIDTH || index % 5 === 0) && (
                <text x={LEFT + (index + 0.5) * step} y={HEIGHT - 6} text-anchor="middle">
                  {index + 1}
                </text>
              )}
            </g>
          ))}
        </svg>
      )}
    </div>
  )
}

const describeParts = ({ parts }: Bar, rows: readonly UsageRow[]): string =>
  parts
    .map(
      ({ row, micros }) =>
        `${row === null ? 'others' : showHidden(rows[row]?.name ?? '')} ${formatMicros(micros)}`,
    )
    .join(', ')

/** The values of the bars. */
export function DayTable({ bars, rows, split }: DayBarsProps) {
  return (
    <details>
      <summary>The days as a table</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col">Cost</th>
            <th scope="col">{split === 'box' ? 'Boxes' : 'Members'}</th>
          </tr>
        </thead>
        <tbody>
          {bars
            .filter(({ micros }) => micros > 0)
            .map((bar) => (
              <tr key={bar.day}>
                <th scope="row">{bar.day}</th>
                <td data-label="Cost" class="amount">
                  {formatMicros(bar.micros)}
                </td>
                <td data-label={split === 'box' ? 'Boxes' : 'Members'}>{describeParts(bar, rows)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </details>
  )
}

/** The parts of a bar above each other, in micro-dollars. */
function stack({ parts }: Bar): { row: number | null; from: number; to: number }[] {
  let from = 0
  return parts.map(({ row, micros }) => {
    const part = { row, from, to: from + micros }
    from = part.to
    return part
  })
}
