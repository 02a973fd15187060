// The list of `box prompts`: runs and queued prompts.
import type { PromptList, QueuedPrompt, Run } from '../../shared/api/prompts.ts'
import { PROVIDERS, RUN_STATUSES } from '../../shared/field-values.ts'
import { boxCommand } from '../command-name.ts'
import type { Column, List, Loaded } from '../lists/list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge, formatDuration } from '../output/format.ts'
import { formatCommand } from '../processes/process-messages.ts'

export type PromptRow = Run | (QueuedPrompt & { status: 'queued' })

export const RUN_FILTERS: List<PromptRow>['filters'] = {
  provider: { get: ({ provider }) => provider, values: PROVIDERS },
  status: { get: ({ status }) => status, values: ['queued', ...RUN_STATUSES] },
  model: { get: ({ model }) => model },
  prompt: { get: ({ prompt }) => prompt },
}

const isRun = (row: PromptRow): row is Run => row.status !== 'queued'

/** The text of a cell that only runs have. */
const ofRun =
  (get: (run: Run, now: number) => string) =>
  (row: PromptRow, now: number): string =>
    isRun(row) ? get(row, now) : '-'

export const formatElapsed = ({ startedAt, finishedAt }: Run): string =>
  finishedAt === null ? '-' : formatDuration(Date.parse(finishedAt) - Date.parse(startedAt))

export const RUN_COLUMNS: readonly Column<PromptRow>[] = [
  { header: 'ID', cell: ({ id }) => id },
  { header: 'PROVIDER', cell: ({ provider }) => provider },
  { header: 'MODEL', cell: ({ model }) => model ?? '-' },
  { header: 'STATUS', cell: ({ status }) => ({ text: status, color: getStateColor(status) }) },
  {
    header: 'STARTED',
    cell: ofRun(({ startedAt }, now) => `${formatAge(startedAt, now)} ago`),
    isRelativeTime: true,
  },
  { header: 'STARTED AT', cell: ofRun(({ startedAt }) => startedAt), isWide: true },
  { header: 'TOOK', cell: ofRun(formatElapsed) },
  { header: 'EVENTS', cell: ofRun(({ eventCount }) => String(eventCount)) },
  { header: 'CONVERSATION', cell: ({ conversationId }) => conversationId, isWide: true },
  { header: 'CWD', cell: ofRun(({ cwd }) => cwd), isWide: true },
  { header: 'ERROR', cell: ofRun(({ error }) => formatCommand(error ?? '-')), isWide: true },
  { header: 'PROMPT', cell: ({ prompt }) => formatCommand(prompt) },
]

export const createRunList = (boxName: string): List<PromptRow> => ({
  columns: RUN_COLUMNS,
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: RUN_FILTERS,
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? `No matching runs on ${boxName}.`
      : `No runs on ${boxName}. Start one with \`${boxCommand()} prompt ${boxName} "…"\`.`,
})

/** When the prompt was queued, or its run started. */
export const getTime = (row: PromptRow): string => (isRun(row) ? row.startedAt : row.queuedAt)

/** Newest first: the queue in reverse order, then the runs. */
export const toRows = (list: PromptList): PromptRow[] => [
  ...list.queued.map((prompt) => ({ ...prompt, status: 'queued' as const })).reverse(),
  ...list.runs,
]

export function toLoadedRuns(list: PromptList): Loaded<PromptRow> {
  return {
    rows: toRows(list),
    toJson(rows) {
      const ids = new Set(rows.map(({ id }) => id))
      const isShown = ({ id }: { id: string }) => ids.has(id)
      return { ...list, runs: list.runs.filter(isShown), queued: list.queued.filter(isShown) }
    },
  }
}
