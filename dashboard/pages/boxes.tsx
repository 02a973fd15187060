// The page of all boxes.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { SORTS, type Sort, selectBoxes, type Team } from '../data/items.ts'
import { boxes, getClient, session } from '../data/live.ts'
import { query, replaceQuery } from '../data/navigation.ts'
import { describeProblem, listChanging } from '../data/state-problems.ts'
import { BoxTable } from '../views/box-table.tsx'
import { BulkActions } from '../views/bulk-actions.tsx'
import { Command } from '../views/command.tsx'
import { CreateBox } from '../views/create-box.tsx'
import { useLoaded } from '../views/loaded.tsx'
import { NextSteps } from '../views/next-steps.tsx'
import { Problem } from '../views/problem.tsx'
import { SearchField } from '../views/search-field.tsx'

/** Usage is not part of the feed. */
const TEAM_POLL_MS = 30_000
const NO_TEAM: Team = new Map()
const NO_PROBLEMS: ReadonlyMap<string, string> = new Map()

const loadTeam = async (): Promise<Team> =>
  new Map((await getClient().loadTeamStatus()).boxes.map((box) => [box.id, box]))

/** The attempts and errors of a job change without a change of the box. */
const PROBLEM_POLL_MS = 10_000

/** Why boxes do not reach their state, by id. A box that was deleted meanwhile has no reason. */
async function loadProblems(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const problems = await Promise.all(
    ids.map(async (id) => {
      const detail = await getClient()
        .loadBox(id)
        .catch(() => null)
      const problem = detail && describeProblem(detail)
      return problem === null ? [] : [[id, problem] as const]
    }),
  )
  return new Map(problems.flat())
}

function useProblems(): ReadonlyMap<string, string> {
  const ids = boxes.value === null ? [] : listChanging(boxes.value)
  const interval = ids.length === 0 ? undefined : PROBLEM_POLL_MS
  return useLoaded(() => loadProblems(ids), [ids.join()], interval).value ?? NO_PROBLEMS
}

export function BoxesPage() {
  const filter = useSignal('')
  const sort = useSignal<Sort>('name')
  const created = useSignal<string | null>(null)
  const chosen = useSignal<ReadonlySet<string>>(new Set())
  const { value, error } = useLoaded(loadTeam, [], TEAM_POLL_MS)
  const team = value ?? NO_TEAM
  const problems = useProblems()
  useEffect(() => {
    document.title = 'Boxes · Boxwood'
  }, [])
  const all = boxes.value
  const shown = all === null ? [] : selectBoxes(all, filter.value, sort.value, team)
  // A box may have been deleted since, or does not match the filter any more.
  const selected = shown.filter(({ id }) => chosen.value.has(id))
  // The command palette opens the dialog by the URL.
  const isCreating = new URLSearchParams(query.value).has('create')
  return (
    <>
      <h1 tabIndex={-1}>Boxes</h1>
      <p class="tools">
        <button type="button" class="primary" onClick={() => replaceQuery({ create: '' })}>
          Create a box
        </button>
        <SearchField label="Filter" value={filter} />
        <label>
          Sort by{' '}
          <select
            value={sort}
            onChange={({ currentTarget }) => {
              sort.value = currentTarget.value as Sort
            }}
          >
            {Object.entries(SORTS).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <Command text="box ls" />
      </p>
      {created.value !== null && <NextSteps name={created.value} />}
      <BulkActions
        selected={selected}
        clear={() => {
          chosen.value = new Set()
        }}
      />
      <Problem error={error} />
      {all === null ? (
        <p>Loading the boxes.</p>
      ) : shown.length === 0 ? (
        <p>{all.size === 0 ? 'There is no box.' : 'No box matches the filter.'}</p>
      ) : (
        <BoxTable
          items={shown}
          team={team}
          problems={problems}
          chosen={chosen.value}
          choose={(ids) => {
            chosen.value = ids
          }}
        />
      )}
      {/* What the form offers depends on the user. */}
      {isCreating && session.value !== null && (
        <CreateBox
          onClose={() => replaceQuery({})}
          onCreated={({ hostname }) => {
            created.value = hostname
          }}
        />
      )}
    </>
  )
}
