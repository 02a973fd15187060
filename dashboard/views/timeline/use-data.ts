// Loads what the timeline of a box shows. Each source has an error of its own.
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import { createPrompts } from '../../api/prompts.ts'
import { mayOpenPage } from '../../data/access.ts'
import { getBoxClient } from '../../data/box-clients.ts'
import { getClient, session } from '../../data/live.ts'
import { type Charts, createCharts } from '../../data/timeline/charts.ts'
import type { Sources } from '../../data/timeline/items.ts'
import type { Range } from '../../data/timeline/range.ts'
import {
  addNewest,
  type CommandPages,
  type EarlierRuns,
  hasEarlierRuns,
  type LoadCommandPage,
  loadCommands,
  loadEarlierRuns,
  loadRequests,
  type RequestPages,
} from '../../data/timeline/sources.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { useLoaded } from '../loaded.tsx'
import { type Earlier, useEarlier } from './use-earlier.ts'

export type TimelineData = {
  /** Null: not loaded. */
  charts: Charts | null
  commands: CommandPages | null
  sources: Sources
  /** The names of the members by id. */
  names: ReadonlyMap<string, string>
  errors: BoxwoodError[]
  earlierCommands: Pick<Earlier<CommandPages>, 'load'>
  earlierRuns: Earlier<EarlierRuns>
  /** Null: contractors may not read the audit log. */
  requests: Earlier<RequestPages> | null
  /** Whether the list of prompts lacks earlier ones of the range. */
  lacksRuns: boolean
}

export function useTimelineData(box: Box, range: Range): TimelineData {
  const client = getClient()
  const { id, observedState } = box
  const isRunning = observedState === 'running'
  const loadPage: LoadCommandPage = (query) => client.listCommands(id, query)
  const metrics = useLoaded(async () => createCharts(await client.loadMetrics(id, range)), [id, range])
  const detail = useLoaded(() => client.loadBox(id), [box, range])
  const snapshots = useLoaded(() => client.loadSnapshots(), [box, range])
  const newest = useLoaded(() => loadCommands(loadPage, range), [id, range])
  // Prompts are stored on the box, and can be read while it runs.
  const prompts = useLoaded(
    async () => (isRunning ? (await createPrompts(getBoxClient(id)).list(null)).runs : []),
    [id, range, isRunning],
  )
  // Contractors may not see the members.
  const seesMembers = session.value !== null && mayOpenPage(session.value.user.role, 'members')
  const members = useLoaded(
    async () => (seesMembers ? (await getWorkspaceClient().listMembers()).members : []),
    [seesMembers],
  )
  const earlierCommands = useEarlier<CommandPages>(id, range, (previous) =>
    loadCommands(loadPage, range, previous ?? newest.value ?? undefined),
  )
  const commands = addNewest(earlierCommands.pages, newest.value)
  const earlierRuns = useEarlier<EarlierRuns>(id, range, () =>
    loadEarlierRuns(createPrompts(getBoxClient(id)), range),
  )
  const runs = new Map(
    [...(earlierRuns.pages?.runs ?? []), ...(prompts.value ?? [])].map((run) => [run.id, run]),
  )
  const events = detail.value?.events ?? []
  const requests = useEarlier<RequestPages>(id, range, (previous) =>
    loadRequests(
      (query) => getWorkspaceClient().listAuditEvents(query),
      id,
      // The state changes that are stored begin here.
      { from: range.from, to: Date.parse(events.at(-1)?.at ?? '') || range.to },
      previous,
    ),
  )
  const errors = [
    metrics,
    detail,
    snapshots,
    newest,
    prompts,
    members,
    earlierCommands,
    earlierRuns,
    requests,
  ].flatMap(({ error }) => (error === null ? [] : [error]))
  return {
    charts: metrics.value,
    commands,
    sources: {
      events,
      requests: requests.pages?.requests ?? [],
      commands: commands?.commands ?? [],
      runs: [...runs.values()],
      snapshots: (snapshots.value?.snapshots ?? []).filter(({ boxId }) => boxId === id),
    },
    names: new Map((members.value ?? []).map(({ id, name, email }) => [id, name || (email ?? id)])),
    // A coordinator that does not respond is one problem.
    errors: errors.filter((error, index) => errors.findIndex(({ code }) => code === error.code) === index),
    earlierCommands,
    earlierRuns,
    requests: session.value !== null && mayOpenPage(session.value.user.role, 'audit') ? requests : null,
    lacksRuns: isRunning && hasEarlierRuns(prompts.value ?? [], range),
  }
}
