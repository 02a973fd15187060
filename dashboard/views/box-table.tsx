// The table of boxes. A row is rendered again only when its box has changed.
import { useMemo, useRef } from 'preact/hooks'
import type { Box } from '../../shared/api/boxes.ts'
import type { CpuOfBoxes } from '../../shared/api/metrics.ts'
import type { TeamBox } from '../../shared/api/team.ts'
import { formatCount } from '../data/format-count.ts'
import { formatState, getLastActivity, getOwner, SORTS, type Sort, type Team } from '../data/items.ts'
import { session } from '../data/live.ts'
import { formatBoxPath } from '../data/routes.ts'
import { showHidden } from '../data/visible-text.ts'
import { Avatar } from '../design/avatar.tsx'
import { Meter } from '../design/meter.tsx'
import { SortHeader } from '../design/sort-header.tsx'
import { Sparkline } from '../design/sparkline.tsx'
import { Age } from './age.tsx'
import { BoxActions } from './box-actions.tsx'
import { useSlices } from './use-slices.ts'

export type BoxTableProps = {
  items: readonly Box[]
  team: Team
  /** Percent of the last hour, by id. Absent: not loaded. */
  cpu: CpuOfBoxes['boxes']
  /** Why boxes do not reach their state, by id. */
  problems: ReadonlyMap<string, string>
  sort: Sort
  onSort(sort: Sort): void
  /** The ids of the chosen boxes. */
  chosen: ReadonlySet<string>
  choose(ids: ReadonlySet<string>): void
}

const COLUMNS = ['name', 'state', 'owner', 'usage', 'memory', 'activity'] as const

/** Percent at the top of a drawing: less is not stretched to its whole height. */
const MIN_TOP = 10

const SORT_DIRECTIONS: Record<Sort, 'ascending' | 'descending'> = {
  name: 'ascending',
  state: 'ascending',
  owner: 'ascending',
  usage: 'descending',
  activity: 'descending',
}

export function BoxTable({ items, team, cpu, problems, sort, onSort, chosen, choose }: BoxTableProps) {
  const shown = useSlices(items.length)
  const current = useRef(chosen)
  current.current = chosen
  // The same function in each render, so that no row is rendered again because of it.
  const toggle = useMemo(
    () => (id: string, isChosen: boolean) => {
      const ids = new Set(current.current)
      if (isChosen) ids.add(id)
      else ids.delete(id)
      choose(ids)
    },
    [],
  )
  const areAllChosen = items.every(({ id }) => chosen.has(id))
  return (
    <table class="boxes">
      <thead>
        <tr>
          <th scope="col">
            <input
              type="checkbox"
              aria-label="Choose all shown boxes"
              checked={areAllChosen}
              onChange={() => choose(areAllChosen ? new Set() : new Set(items.map(({ id }) => id)))}
            />
          </th>
          {COLUMNS.map((name) =>
            name === 'memory' ? (
              <th key={name} scope="col">
                Memory
              </th>
            ) : (
              <SortHeader
                key={name}
                label={SORTS[name]}
                direction={name === sort ? SORT_DIRECTIONS[name] : undefined}
                onSort={() => onSort(name)}
              />
            ),
          )}
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.slice(0, shown).map((box) => (
          <BoxRow
            key={box.id}
            box={box}
            member={team.get(box.id)}
            cpu={cpu[box.id]}
            problem={problems.get(box.id)}
            owner={box.ownerUserId === session.value?.user.id ? 'you' : getOwner(box, team)}
            activity={getLastActivity(box, team)}
            isChosen={chosen.has(box.id)}
            toggle={toggle}
          />
        ))}
      </tbody>
    </table>
  )
}

type BoxRowProps = {
  box: Box
  member: TeamBox | undefined
  cpu: CpuOfBoxes['boxes'][string] | undefined
  problem: string | undefined
  owner: string
  activity: string
  isChosen: boolean
  toggle(id: string, isChosen: boolean): void
}

function BoxRow({ box, member, cpu, problem, owner, activity, isChosen, toggle }: BoxRowProps) {
  const { id, hostname, kind, observedState, tier, image } = box
  const [percent, memory] = [toPercent(member?.cpuPct), toPercent(member?.memPct)]
  const sessions = member?.sessions ?? 0
  return useMemo(
    () => (
      <tr>
        <td>
          <input
            type="checkbox"
            aria-label={`Choose ${hostname}`}
            checked={isChosen}
            onChange={({ currentTarget }) => toggle(id, currentTarget.checked)}
          />
        </td>
        <th scope="row">
          <a href={formatBoxPath(hostname)}>{showHidden(hostname)}</a>
          <small>
            {kind === 'machine'
              ? 'machine'
              : [tier, image]
                  .filter(Boolean)
                  .map((text) => showHidden(text ?? ''))
                  .join(' · ')}
          </small>
        </th>
        <td data-label="State">
          <span class={`state ${observedState}`}>{formatState(observedState)}</span>
          {sessions > 0 && <small> {formatCount(sessions, 'open session')}</small>}
          {problem !== undefined && <small class="problem"> {showHidden(problem)}</small>}
        </td>
        <td data-label="Owner">
          <span class="person" title={showHidden(owner)}>
            <Avatar
              name={
                owner === 'you' ? (session.value?.user.email ?? session.value?.user.name ?? owner) : owner
              }
            />
            <span>{showHidden(owner)}</span>
          </span>
        </td>
        <td data-label="CPU">
          <span class="meter-row">
            {cpu !== undefined && (
              <Sparkline
                label={`CPU of ${hostname} in the last hour`}
                values={cpu}
                top={Math.max(MIN_TOP, ...cpu.map((value) => value ?? 0))}
              />
            )}
            <span>{percent === null ? '–' : `${percent} %`}</span>
          </span>
        </td>
        <td data-label="Memory">
          <Meter label={`Memory of ${hostname}`} value={memory} />
        </td>
        <td data-label="Last activity">
          <Age at={activity} />
        </td>
        <td class="row-actions">
          <BoxActions box={box} />
        </td>
      </tr>
    ),
    [box, owner, percent, cpu, memory, sessions, activity, isChosen, problem],
  )
}

/** Whole percents: a smaller change does not render a row again. */
const toPercent = (value: number | null | undefined): number | null =>
  value == null ? null : Math.round(value)
