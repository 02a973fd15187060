// What the routes answer about a detached process.
import type { ExecList, ExecStarted, ExecStatus, ProcessFields } from '../../../shared/api/processes.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { createOutputTail, LOOKBEHIND } from '../output-tail.ts'
import type { DetachedProcess, OutputLog } from './types.ts'

export function startedAnswer(process: DetachedProcess): ExecStarted {
  const { processId, pid, cwd, startedAt, logs, record } = process
  return {
    ok: true,
    type: 'exec.started',
    processId,
    pid,
    cwd,
    startedAt: toTimestamp(startedAt),
    logPath: logs.stdout.path,
    ...(record === null ? {} : { commandId: processId }),
  }
}

/** Of a command in the list: a thousand of them, each character an escape of six bytes, still fit into one answer. */
const LISTED_CHARS = 2048
const LISTED = 1000

export function listAnswer(processes: readonly DetachedProcess[]): ExecList {
  const newest = processes.slice(0, LISTED).map(processFields)
  const shortened = newest.map((fields) => ({ ...fields, command: fields.command.slice(0, LISTED_CHARS) }))
  return { ok: true, type: 'exec.list', processes: shortened }
}

function processFields({ processId, pid, end, startedAt, command }: DetachedProcess): ProcessFields {
  return {
    processId,
    pid,
    running: end === null,
    lost: end?.status === 'lost',
    exitCode: end?.exitCode ?? null,
    signal: end?.signal ?? null,
    startedAt: toTimestamp(startedAt),
    command,
  }
}

/** @param tail bytes of each stream */
export async function statusAnswer(process: DetachedProcess, tail: number): Promise<ExecStatus> {
  // Before the logs: of an ended process they are complete, of a running one they may be newer than this.
  const fields = processFields(process)
  const finishedAt = toTimestampOrNull(process.end?.finishedAt ?? null)
  const [stdout, stderr] = await Promise.all([
    tailOf(process.logs.stdout, tail),
    tailOf(process.logs.stderr, tail),
  ])
  return {
    ok: true,
    type: 'exec.status',
    ...fields,
    finishedAt,
    cwd: process.cwd,
    stdout: stdout.text,
    stderr: stderr.text,
    stdoutTruncated: stdout.truncated,
    stderrTruncated: stderr.truncated,
  }
}

async function tailOf(log: OutputLog, limit: number): Promise<{ text: string; truncated: boolean }> {
  const size = await log.size()
  // What stands before the cut tells a halved character from a bad one.
  const from = Math.max(0, size - limit - LOOKBEHIND)
  const { offset, bytes } = await log.read(from, size - from)
  const tail = createOutputTail(limit)
  tail.push(bytes)
  const truncated = offset > 0 || tail.truncated()
  return { text: limit === 0 ? '' : tail.text(), truncated }
}
