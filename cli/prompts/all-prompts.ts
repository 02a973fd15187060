// The prompts of all boxes. The coordinator stores none: each running box is asked for its own.
import pLimit from 'p-limit'
import type { Box } from '../../shared/api/boxes.ts'
import type { PromptList } from '../../shared/api/prompts.ts'
import type { Client } from '../connection/client.ts'
import type { List, Loaded } from '../lists/list.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { getTime, type PromptRow, RUN_COLUMNS, RUN_FILTERS, toRows } from './run-list.ts'

type BoxPromptRow = PromptRow & { box: string }
/** A box that was asked. */
type Answer = { box: Box } & ({ list: PromptList } | { problem: string })

/** Requests at the same time. */
const CONCURRENCY = 8
const TIMEOUT_MS = 10_000

export const ALL_PROMPTS: List<BoxPromptRow> = {
  columns: [{ header: 'BOX', cell: ({ box }) => box }, ...RUN_COLUMNS],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: { box: { get: ({ box }) => box }, ...RUN_FILTERS },
  getEmptyMessage: (isFiltered) => (isFiltered ? 'No matching runs.' : 'No runs on the running boxes.'),
}

/** Newest first. The note names the boxes that are missing. @throws CliError, and the reason of the signal */
export async function loadAllPrompts(
  client: Client,
  signal: AbortSignal,
  timeoutMs = TIMEOUT_MS,
): Promise<Loaded<BoxPromptRow>> {
  const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')
  const live = boxes.filter(({ desiredState }) => desiredState !== 'terminated')
  const [running, stopped] = [live.filter(isRunning), live.filter((box) => !isRunning(box))]
  const atOnce = pLimit(CONCURRENCY)
  const answers = await Promise.all(
    running.map((box) => atOnce(() => ask(client, box, { signal, timeoutMs }))),
  )
  const rows = answers
    .flatMap((answer) =>
      'list' in answer ? toRows(answer.list).map((row) => ({ ...row, box: answer.box.hostname })) : [],
    )
    .sort((a, b) => Date.parse(getTime(b)) - Date.parse(getTime(a)))
  const failed = answers.flatMap(({ box, ...answer }) => ('problem' in answer ? [{ box, ...answer }] : []))
  return {
    rows,
    toJson: (shown) => ({
      prompts: shown,
      unanswered: failed.map(({ box, problem }) => ({ box: box.hostname, message: problem })),
      notRunning: stopped.map(({ hostname }) => hostname),
    }),
    note: describeMissing(failed, stopped),
  }
}

const isRunning = ({ observedState }: Box): boolean => observedState === 'running'

async function ask(
  client: Client,
  box: Box,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<Answer> {
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    const edge = await client.withSignal(AbortSignal.any([signal, timeout])).createEdgeClient(box.hostname)
    return { box, list: await edge.requestJson<PromptList>('GET', '/prompts') }
  } catch (error) {
    signal.throwIfAborted()
    if (timeout.aborted) return { box, problem: `no response within ${timeoutMs / 1000} seconds` }
    if (!(error instanceof CliError) || concernsAllBoxes(error)) throw error
    return { box, problem: error.message }
  }
}

/** Without a code, the coordinator cannot be reached. */
const concernsAllBoxes = ({ exitCode, code }: CliError): boolean =>
  exitCode === EXIT.notAuthenticated || (exitCode === EXIT.unreachable && code !== 'box_unreachable')

function describeMissing(
  failed: readonly { box: Box; problem: string }[],
  stopped: readonly Box[],
): string | null {
  const parts = failed.map(({ box, problem }) => `${box.hostname} is missing: ${problem.replace(/\.$/, '')}.`)
  if (stopped.length > 0)
    parts.push(`Not running, and so not asked: ${stopped.map(({ hostname }) => hostname).join(', ')}.`)
  return parts.length === 0 ? null : sanitize(parts.join(' '))
}
