// What boxes have cost in a month: the days as stacked bars, and a table of the boxes or the members.
import type { ComponentChildren } from 'preact'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { DayUsage } from '../../../shared/api/usage.ts'
import { formatHours, formatMicros, listBars, type UsageRow } from '../../data/billing.ts'
import { showHidden } from '../../data/visible-text.ts'
import { SegmentedControl } from '../../design/segmented-control.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Problem } from '../problem.tsx'
import { DayBars, DayTable, getSeries } from './day-bars.tsx'

/** What the bars and the table are divided by. */
export type Split = 'box' | 'member'

export type Month = {
  /** Such as 2030-01. */
  month: string
  split: Split
  totalMicros: number
  days: readonly DayUsage[]
  /** The highest amount first. */
  rows: readonly UsageRow[]
}

export type MonthUsageProps = {
  months: readonly string[]
  month: string
  onMonth(month: string): void
  split: Split
  onSplit(split: Split): void
  /** Null: not loaded. */
  usage: Month | null
  error: BoxwoodError | null
  /** What the usage means. */
  children: ComponentChildren
}

const SPLITS = [
  { value: 'box', label: 'By box' },
  { value: 'member', label: 'By member' },
] as const

export function MonthUsage(props: MonthUsageProps) {
  const { months, month, onMonth, split, onSplit, usage, error, children } = props
  const bars = usage === null ? [] : listBars(usage)
  return (
    <section>
      <h2>Usage</h2>
      <div class="tools">
        <SegmentedControl label="Divided by" options={SPLITS} value={split} onChange={onSplit} />
        <label>
          Month in UTC{' '}
          <select value={month} onChange={({ currentTarget }) => onMonth(currentTarget.value)}>
            {months.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Problem error={error} />
      {usage === null && error === null && <Skeleton label="Loading the usage." rows={10} />}
      {usage !== null && usage.totalMicros === 0 && <p>There is no usage in this month.</p>}
      {usage !== null && usage.totalMicros > 0 && (
        <>
          {children}
          <DayBars bars={bars} rows={usage.rows} split={split} />
          <Rows usage={usage} />
          <DayTable bars={bars} rows={usage.rows} split={split} />
        </>
      )}
    </section>
  )
}

/** The rows of the table; `box usage` lists all. */
const MAX_ROWS = 100
const HOUR_SECONDS = 3600

function Rows({ usage: { split, rows, totalMicros } }: { usage: Month }) {
  const hidden = rows.length - MAX_ROWS
  return (
    <>
      <table class="usage">
        <thead>
          <tr>
            <th scope="col">{split === 'box' ? 'Box' : 'Member'}</th>
            <th scope="col">Cost</th>
            <th scope="col">Share</th>
            <th scope="col">Running</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MAX_ROWS).map(({ id, name, micros, computeSeconds }, index) => (
            <tr key={id}>
              <th scope="row">
                <i class={`swatch ${getSeries(index)}`} /> {showHidden(name)}
              </th>
              <td data-label="Cost" class="amount">
                {formatMicros(micros)}
              </td>
              <td data-label="Share">{Math.round((100 * micros) / totalMicros)} %</td>
              <td data-label="Running">{formatHours(computeSeconds / HOUR_SECONDS)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {hidden > 0 && (
        <p>
          {hidden} more have cost less: <code>box usage</code> lists all.
        </p>
      )}
    </>
  )
}
