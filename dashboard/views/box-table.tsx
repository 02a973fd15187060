// The table of boxes. A row is rendered again only when its box has changed.
import { useMemo, useRef } from 'preact/hooks'
import type { Box } from '../../shared/api/boxes.ts'
import type { TeamBox } from '../../shared/api/team.ts'
import { formatState, getLastActivity, getOwner, type Team } from '../data/items.ts'
import { session } from '../data/live.ts'
import { formatBoxPath } from '../data/routes.ts'
import { showHidden } from '../data/visible-text.ts'
import { Age } from './age.tsx'
import { BoxActions } from './box-actions.tsx'
import { useSlices } from './use-slices.ts'

export type BoxTableProps = {
  items: readonly Box[]
  team: Team
  /** Why boxes do not reach their state, by id. */
  problems: ReadonlyMap<string, string>
  /** The ids of the chosen boxes. */
  chosen: ReadonlySet<string>
  choose(ids: ReadonlySet<string>): void
}

export function BoxTable({ items, team, problems, chosen, choose }: BoxTableProps) {
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
          <th scope="col">Name</th>
          <th scope="col">State</th>
          <th scope="col">Tier</th>
          <th scope="col">Owner</th>
          <th scope="col">Usage</th>
          <th scope="col">Last activity</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {items.slice(0, shown).map((box) => (
          <BoxRow
            key={box.id}
            box={box}
            member={team.get(box.id)}
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
  problem: string | undefined
  owner: string
  activity: string
  isChosen: boolean
  toggle(id: string, isChosen: boolean): void
}

function BoxRow({ box, member, problem, owner, activity, isChosen, toggle }: BoxRowProps) {
  const { id, hostname, kind, observedState, tier } = box
  const usage = member === undefined ? '' : formatUsage(member)
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
          {kind === 'machine' && <small> machine</small>}
        </th>
        <td data-label="State">
          <span class={`state ${observedState}`}>{formatState(observedState)}</span>
          {problem !== undefined && <small class="problem"> {showHidden(problem)}</small>}
        </td>
        <td data-label="Tier">{tier}</td>
        <td data-label="Owner">{showHidden(owner)}</td>
        <td data-label="Usage">{usage || '–'}</td>
        <td data-label="Last activity">
          <Age at={activity} />
        </td>
        <td>
          <BoxActions box={box} />
        </td>
      </tr>
    ),
    [box, owner, usage, activity, isChosen, problem],
  )
}

/** Empty: not known. */
function formatUsage({ cpuPct, memPct }: TeamBox): string {
  return [
    cpuPct !== null && `CPU ${Math.round(cpuPct)} %`,
    memPct !== null && `memory ${Math.round(memPct)} %`,
  ]
    .filter(Boolean)
    .join(', ')
}
