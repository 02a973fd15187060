// Loads what the timeline of a box shows. Each source has an error of its own.
import { useSignal } from '@preact/signals'
import type { Box } from '../../../shared/api/boxes.ts'
import type { PromptList } from '../../../shared/api/prompts.ts'
import { type RequestError, toRequestError } from '../../api/errors.ts'
import { getBoxClient } from '../../data/box-clients.ts'
import { getClient, session } from '../../data/live.ts'
import { type Charts, createCharts } from '../../data/timeline/charts.ts'
import type { Sources } from '../../data/timeline/items.ts'
import type { Range } from '../../data/timeline/range.ts'
import { type CommandPages, type LoadCommandPage, loadCommands } from '../../data/timeline/sources.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { useLoaded } from '../use-loaded.ts'

export type TimelineData = {
  /** Null: not loaded. */
  charts: Charts | null
  commands: CommandPages | null
  sources: Sources
  /** The names of the members by id. */
  names: ReadonlyMap<string, string>
  errors: RequestError[]
  loadEarlier(): Promise<void>
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
    async () => (isRunning ? (await getBoxClient(id).send<PromptList>('GET', 'prompts')).runs : []),
    [id, range, isRunning],
  )
  // Contractors may not see the members.
  const seesMembers = session.value !== null && session.value.user.role !== 'contractor'
  const members = useLoaded(
    async () => (seesMembers ? (await getWorkspaceClient().listMembers()).members : []),
    [seesMembers],
  )
  const earlier = useSignal<{ range: Range; pages: CommandPages } | null>(null)
  const earlierError = useSignal<RequestError | null>(null)
  const commands = earlier.value?.range === range ? earlier.value.pages : newest.value
  const errors = [
    metrics,
    detail,
    snapshots,
    newest,
    prompts,
    members,
    { error: earlierError.value },
  ].flatMap(({ error }) => (error === null ? [] : [error]))
  return {
    charts: metrics.value,
    commands,
    sources: {
      events: detail.value?.events ?? [],
      commands: commands?.commands ?? [],
      runs: prompts.value ?? [],
      snapshots: (snapshots.value?.snapshots ?? []).filter(({ boxId }) => boxId === id),
    },
    names: new Map((members.value ?? []).map(({ id, name, email }) => [id, name || (email ?? id)])),
    // A coordinator that does not respond is one problem.
    errors: errors.filter((error, index) => errors.findIndex(({ code }) => code === error.code) === index),
    async loadEarlier() {
      if (commands === null) return
      try {
        earlier.value = { range, pages: await loadCommands(loadPage, range, commands) }
        earlierError.value = null
      } catch (reason) {
        earlierError.value = toRequestError(reason)
      }
    },
  }
}
