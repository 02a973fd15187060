// The page of all boxes.
import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Box } from '../../shared/api/boxes.ts'
import type { CpuOfBoxes } from '../../shared/api/metrics.ts'
import { ASLEEP, SORTS, selectBoxes, type Team } from '../data/items.ts'
import { boxes, getClient, session } from '../data/live.ts'
import { changeQuery, query } from '../data/navigation.ts'
import { isKeyOf } from '../data/routes.ts'
import { describeProblem, listChanging } from '../data/state-problems.ts'
import { EmptyState } from '../design/empty-state.tsx'
import { Icon } from '../design/icon.tsx'
import { BoxIcon, PlusIcon } from '../design/icons.ts'
import { SegmentedControl } from '../design/segmented-control.tsx'
import { Skeleton } from '../design/skeleton.tsx'
import { BoxTable } from '../views/box-table.tsx'
import { BulkActions } from '../views/bulk-actions.tsx'
import { Commands } from '../views/command.tsx'
import { CreateBox } from '../views/create-box.tsx'
import { useLoaded } from '../views/loaded.tsx'
import { NextSteps } from '../views/next-steps.tsx'
import { Problem } from '../views/problem.tsx'
import { SearchField } from '../views/search-field.tsx'

/** Usage is not part of the feed. */
const TEAM_POLL_MS = 30_000
const NO_TEAM: Team = new Map()

/** The CPU of the first rows is drawn. It has a value for every five minutes. */
const CPU_ROWS = 60
const CPU_POLL_MS = 300_000
const NO_CPU: CpuOfBoxes['boxes'] = {}

function useCpu(shown: readonly Box[]): CpuOfBoxes['boxes'] {
  const ids = shown
    .slice(0, CPU_ROWS)
    .map(({ id }) => id)
    .sort()
  const load = async () => (ids.length === 0 ? NO_CPU : (await getClient().listCpu(ids)).boxes)
  return useLoaded(load, [ids.join()], CPU_POLL_MS).value ?? NO_CPU
}
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

/** The tabs of the page, with the states of their boxes. */
const TABS = {
  all: { label: 'All', matches: () => true },
  running: { label: 'Running', matches: (state: string) => state === 'running' },
  suspended: { label: 'Suspended', matches: (state: string) => ASLEEP.includes(state) },
  failed: { label: 'Failed', matches: (state: string) => ['degraded', 'provision_failed'].includes(state) },
} as const
type Tab = keyof typeof TABS

export function BoxesPage() {
  const params = new URLSearchParams(query.value)
  const filter = useSignal(params.get('filter') ?? '')
  const created = useSignal<string | null>(null)
  const chosen = useSignal<ReadonlySet<string>>(new Set())
  const { value, error } = useLoaded(loadTeam, [], TEAM_POLL_MS)
  const team = value ?? NO_TEAM
  const problems = useProblems()
  const sort = toKey(SORTS, params.get('sort'), 'name')
  const tab = toKey(TABS, params.get('show'), 'all')
  useEffect(() => {
    document.title = 'Boxes · Boxwood'
  }, [])
  useSignalEffect(() => changeQuery({ filter: filter.value || null }))
  const all = boxes.value
  const matching = all === null ? [] : selectBoxes(all, filter.value, sort, team)
  const shown = matching.filter(({ observedState }) => TABS[tab].matches(observedState))
  // A box may have been deleted since, or does not match the filter any more.
  const cpu = useCpu(shown)
  const selected = shown.filter(({ id }) => chosen.value.has(id))
  return (
    <>
      <div class="page-head">
        <h1 tabIndex={-1}>Boxes</h1>
        <Commands texts={['box ls']} />
      </div>
      <div class="tools">
        <SegmentedControl
          label="State"
          options={(Object.keys(TABS) as Tab[]).map((name) => ({
            value: name,
            label: TABS[name].label,
            count: matching.filter(({ observedState }) => TABS[name].matches(observedState)).length,
          }))}
          value={tab}
          onChange={(name) => changeQuery({ show: name === 'all' ? null : name })}
        />
        <SearchField label="Filter" value={filter} />
        <BulkActions
          selected={selected}
          clear={() => {
            chosen.value = new Set()
          }}
        />
      </div>
      {created.value !== null && <NextSteps name={created.value} />}
      <Problem error={error} />
      {all === null ? (
        <Skeleton label="Loading the boxes." />
      ) : all.size === 0 ? (
        <NoBoxes />
      ) : shown.length === 0 ? (
        <p>No box matches the filter.</p>
      ) : (
        <BoxTable
          items={shown}
          team={team}
          cpu={cpu}
          problems={problems}
          sort={sort}
          onSort={(name) => changeQuery({ sort: name === 'name' ? null : name })}
          chosen={chosen.value}
          choose={(ids) => {
            chosen.value = ids
          }}
        />
      )}
      {/* What the form offers depends on the user. */}
      {params.has('create') && session.value !== null && (
        <CreateBox
          onClose={() => changeQuery({ create: null })}
          onCreated={({ hostname }) => {
            created.value = hostname
          }}
        />
      )}
    </>
  )
}

const toKey = <Keys extends object>(keys: Keys, text: string | null, other: keyof Keys & string) =>
  text !== null && isKeyOf(keys, text) ? text : other

function NoBoxes() {
  return (
    <EmptyState icon={BoxIcon} title="There is no box.">
      <p>A box is a Linux machine on which you and coding agents work.</p>
      <p class="buttons">
        <button type="button" class="primary" onClick={() => changeQuery({ create: '' })}>
          <Icon of={PlusIcon} />
          Create the first box
        </button>
        <a href="workspace/machines">Join a machine of yours</a>
        <a href="docs/guides/api">Use the API</a>
      </p>
    </EmptyState>
  )
}
