// Response bodies for detached processes.
import type { ExecList, ExecStarted, ExecStatus, ProcessFields } from '../../../shared/api/processes.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { createOutputTail, LOOKBEHIND } from '../output-tail.ts'
import type { DetachedProcess, OutputLog } from './types.ts'

export function startedResponse(detachedProcess: DetachedProcess): ExecStarted {
  const { processId, pid, cwd, startedAt, logs, record } = detachedProcess
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

/** The coordinator bounds the size of the list by this number. */
const LISTED_COMMAND_CHARS = 2048

/** @param processes newest first */
export function listResponse(processes: readonly DetachedProcess[]): ExecList {
  const listed = processes.slice(0, LIMITS.listedProcesses).map(processFields)
  const shortened = listed.map((fields) => ({
    ...fields,
    command: fields.command.slice(0, LISTED_COMMAND_CHARS),
  }))
  return { ok: true, type: 'exec.list', processes: shortened }
}

function processFields({
  processId,
  pid,
  exit,
  attached,
  startedAt,
  command,
}: DetachedProcess): ProcessFields {
  return {
    processId,
    pid,
    running: exit === null,
    lost: exit?.status === 'lost',
    exitCode: exit?.exitCode ?? null,
    signal: exit?.signal ?? null,
    timedOut: exit?.status === 'timed_out',
    attached: attached !== null,
    startedAt: toTimestamp(startedAt),
    command,
  }
}

/** @param tail bytes of each stream */
export async function statusResponse(detachedProcess: DetachedProcess, tail: number): Promise<ExecStatus> {
  // Read the state before the logs: if it is exited, the logs are complete.
  const fields = processFields(detachedProcess)
  const finishedAt = toTimestampOrNull(detachedProcess.exit?.finishedAt ?? null)
  const [stdout, stderr] = await Promise.all([
    readTail(detachedProcess.logs.stdout, tail),
    readTail(detachedProcess.logs.stderr, tail),
  ])
  return {
    ok: true,
    type: 'exec.status',
    ...fields,
    finishedAt,
    cwd: detachedProcess.cwd,
    stdout: stdout.text,
    stderr: stderr.text,
    stdoutTruncated: stdout.truncated,
    stderrTruncated: stderr.truncated,
  }
}

/** The last `limit` bytes of a log, cut at a character. */
export async function readTail(log: OutputLog, limit: number): Promise<{ text: string; truncated: boolean }> {
  const size = await log.size()
  // The bytes before the tail distinguish a split character from an invalid one.
  const from = Math.max(0, size - limit - LOOKBEHIND)
  const { offset, bytes } = await log.read(from, size - from)
  const tail = createOutputTail(limit)
  tail.push(bytes)
  const truncated = offset > 0 || tail.truncated()
  return { text: limit === 0 ? '' : tail.text(), truncated }
}
