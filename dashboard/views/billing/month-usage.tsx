// What boxes have cost in a month: by day, by box and by member.
import { useSignal } from '@preact/signals'
import type { BoxUsage, DayUsage, MemberUsage } from '../../../shared/api/usage.ts'
import { formatHours, formatMicros, listMonths } from '../../data/billing.ts'
import { getCoordinatorTime } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Freshness, useLoaded } from '../loaded.tsx'

/** The rows of a table; `box usage` lists all. */
const MAX_ROWS = 100

export function MonthUsage() {
  const months = listMonths(getCoordinatorTime())
  const month = useSignal(months[0] ?? '')
  const loaded = useLoaded(() => getWorkspaceClient().loadUsage(month.value), [month.value])
  // The value of another month is not shown as that of this one.
  const value = loaded.value?.month === month.value ? loaded.value : null
  return (
    <section>
      <h2>Usage</h2>
      <p class="tools">
        <label>
          Month in UTC{' '}
          <select
            value={month.value}
            onChange={({ currentTarget }) => {
              month.value = currentTarget.value
            }}
          >
            {months.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {value !== null && <span>Total: {formatMicros(value.totalMicros)}</span>}
      </p>
      {value !== null && value.totalMicros === 0 && <p>There is no usage in this month.</p>}
      {value !== null && value.totalMicros > 0 && (
        <>
          <Days days={value.days} />
          <Named title="By box" header="Box" rows={value.boxes.map(toBoxRow)} />
          <Named title="By member" header="Member" rows={value.members.map(toMemberRow)} />
        </>
      )}
      <Freshness loaded={{ ...loaded, value }} />
    </section>
  )
}

type Row = { id: string; name: string; micros: number; computeSeconds: number }

const toBoxRow = ({ boxId, hostname, ...amounts }: BoxUsage): Row => ({
  id: boxId,
  name: hostname ?? `deleted box ${boxId.slice(0, 8)}`,
  ...amounts,
})

const toMemberRow = ({ userId, name, email, micros, computeSeconds }: MemberUsage): Row => ({
  id: userId,
  name: email ?? name ?? userId,
  micros,
  computeSeconds,
})

const HOUR_SECONDS = 3600

function Days({ days }: { days: readonly DayUsage[] }) {
  const max = Math.max(...days.map(({ micros }) => micros))
  return (
    <>
      <h3>By day</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col">Cost</th>
            <th scope="col">Running</th>
            <th scope="col">Of the highest</th>
          </tr>
        </thead>
        <tbody>
          {days.map(({ day, micros, computeSeconds }) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              <td data-label="Cost" class="amount">
                {formatMicros(micros)}
              </td>
              <td data-label="Running">{formatHours(computeSeconds / HOUR_SECONDS)}</td>
              <td data-label="Of the highest">
                <meter min={0} max={max} value={micros} aria-label={`${day}: ${formatMicros(micros)}`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}

function Named({ title, header, rows }: { title: string; header: string; rows: readonly Row[] }) {
  const hidden = rows.length - MAX_ROWS
  return (
    <>
      <h3>{title}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">{header}</th>
            <th scope="col">Cost</th>
            <th scope="col">Running</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MAX_ROWS).map(({ id, name, micros, computeSeconds }) => (
            <tr key={id}>
              <th scope="row">{showHidden(name)}</th>
              <td data-label="Cost" class="amount">
                {formatMicros(micros)}
              </td>
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
