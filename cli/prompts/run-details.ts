// The details of one run, for `box prompts NAME RUN`.
import type { PromptStatus, Run } from '../../shared/api/prompts.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge } from '../output/format.ts'
import { type Cell, formatTable } from '../output/table.ts'
import { formatElapsed } from './run-list.ts'
import { sanitizeText } from './terminal-text.ts'

/** Ends with the whole prompt and the end of stderr. */
export function formatRunDetails(
  { run, stderr, stderrTruncated, logPath }: PromptStatus,
  now: number,
): string {
  const heading = stderrTruncated ? 'Standard error output (the end)' : 'Standard error output'
  return [
    formatTable(getRows(run, logPath, now)),
    ...(run.error === null ? [] : ['', 'Error:', formatText(run.error)]),
    '',
    'Prompt:',
    formatText(run.prompt),
    ...(stderr.trim() === '' ? [] : ['', `${heading}:`, formatText(stderr)]),
  ].join('\n')
}

const formatText = (text: string): string => sanitizeText(text).replace(/\n+$/, '')

function getRows(run: Run, logPath: string, now: number): [string, Cell][] {
  const optional: [string, string | null][] = [
    ['model', run.model],
    ['effort', run.reasoningEffort],
    ['session', run.sessionId],
    ['continues', run.parent],
    ['exit code', run.exitCode === null ? null : String(run.exitCode)],
    ['pid', run.status === 'running' && run.pid !== null ? String(run.pid) : null],
  ]
  return [
    ['id', run.id],
    ['status', { text: run.status, color: getStateColor(run.status) }],
    ['provider', run.provider],
    ['conversation', run.conversationId],
    ...optional.flatMap(([name, value]): [string, Cell][] => (value === null ? [] : [[name, value]])),
    ['auto', run.auto ? 'yes' : 'no'],
    ['directory', run.cwd],
    ['started', `${run.startedAt} (${formatAge(run.startedAt, now)} ago)`],
    ['took', formatElapsed(run)],
    ['events', String(run.eventCount)],
    ['output', logPath],
  ]
}
