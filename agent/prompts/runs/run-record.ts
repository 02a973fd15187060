// The files of a run, in a directory of its own. The output is in the directory of its detached process.
//
//   run.json              the request, the interrupt request and the result
//   prompt                the prompt as requested
//   stdin                 the prompt as the CLI gets it, where that differs
//   checkpoints, position see checkpoints.ts
//   tmp                   temporary files of the CLI, deleted at the end
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import * as z from 'zod'
import { RUN_STATUSES } from '../../../shared/field-values.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { replaceFile, sync, writeDurably } from '../../durable-file.ts'
import { readStateFile } from '../../state-file.ts'
import { type Checkpoint, outcomeSchema } from '../events/checkpoints.ts'
import { LOG_START } from '../events/event-decoder.ts'
import { promptFieldsSchema } from '../prompt-fields.ts'
import { boundedText } from '../providers/json-fields.ts'
import type { StartRunOptions, UnstartedResult } from '../types.ts'
import { MAX_ERROR_CHARS } from './run-status.ts'

const recordSchema = promptFieldsSchema.extend({
  startedAt: z.int(),
  sequence: z.int().min(0).default(0),
  resumedFrom: z.string().nullable(),
  parent: z.string().nullable(),
  /** The time limit of the run. */
  minutes: z.number(),
  interrupt: z.object({ requestedAt: z.int(), cause: z.string() }).nullable(),
  /** What the coding agent had reported when the agent terminated it, because it did not exit. null: not so. */
  conclusion: outcomeSchema.nullable().default(null),
  /** null: the run is in progress. */
  result: z
    .object({
      status: z.enum(RUN_STATUSES).exclude(['running']),
      error: z.string().nullable(),
      exitCode: z.int().nullable(),
      /** null: the process has not started. */
      pid: z.int().nullable(),
      finishedAt: z.int(),
      sessionId: z.string().nullable(),
      eventCount: z.int(),
      /** The length of the output. Under the shell runner, background processes may append to the log later. */
      logEnd: z.int(),
      /** The disk usage of the output. */
      logBytes: z.int(),
    })
    .nullable(),
})
export type RunRecord = z.infer<typeof recordSchema>
export type RecordedResult = NonNullable<RunRecord['result']>

/** A record has a preview of the prompt, the working directory, an error message and short fields. */
const MAX_RECORD_BYTES = 256 * 1024

/** @param options.minutes the time limit */
export function createRunRecord(
  request: Omit<StartRunOptions, 'boxEnv'>,
  { minutes, startedAt, sequence }: Pick<RunRecord, 'minutes' | 'startedAt' | 'sequence'>,
): RunRecord {
  const { id, conversationId, provider, model, reasoningEffort, auto, cwd, resumedFrom, parent } = request
  return {
    id,
    conversationId,
    provider,
    model,
    reasoningEffort,
    auto,
    cwd,
    resumedFrom,
    parent,
    minutes,
    startedAt,
    sequence,
    promptPreview: boundedText(request.prompt, LIMITS.promptPreviewChars),
    interrupt: null,
    conclusion: null,
    result: null,
  }
}

/** The start of the log of a run. */
export const createOrigin = ({ startedAt }: RunRecord): Checkpoint => ({ ...LOG_START, at: startedAt })

/** The record of a run whose process has not been started. */
export const withUnstartedResult = (record: RunRecord, { status, error }: UnstartedResult): RunRecord => ({
  ...record,
  result: {
    status,
    error: boundedText(error, MAX_ERROR_CHARS),
    exitCode: null,
    pid: null,
    finishedAt: record.startedAt,
    sessionId: null,
    eventCount: 0,
    logEnd: 0,
    logBytes: 0,
  },
})

export const getTmpDir = (runDir: string): string => join(runDir, 'tmp')
const getRecordPath = (runDir: string): string => join(runDir, 'run.json')
const getPromptPath = (runDir: string): string => join(runDir, 'prompt')

/** The process of a run has the same hexadecimal digits in its id. */
export const toProcessId = (runId: string): string => runId.replace(/^run_/, 'p_')

export type NewRun = {
  record: RunRecord
  prompt: string
  /** The prompt as the CLI gets it. */
  stdin: string
}

/**
 * Creates the directory. The files survive the agent, and after syncRunFiles() a power loss.
 * @returns the path of the file for the standard input
 */
export async function createRunFiles(runDir: string, { record, prompt, stdin }: NewRun): Promise<string> {
  await mkdir(runDir, { mode: 0o700 })
  await mkdir(getTmpDir(runDir), { mode: 0o700 })
  const options = { mode: 0o600 }
  const stdinPath = stdin === prompt ? getPromptPath(runDir) : join(runDir, 'stdin')
  if (stdin !== prompt) await writeFile(stdinPath, stdin, options)
  await writeFile(getPromptPath(runDir), prompt, options)
  await replaceFile(getRecordPath(runDir), JSON.stringify(record))
  return stdinPath
}

export async function syncRunFiles(runDir: string): Promise<void> {
  await Promise.all([getPromptPath(runDir), getRecordPath(runDir)].map(sync))
  await Promise.all([runDir, dirname(runDir)].map(sync))
}

/** Resolves when the record is durable. */
export const writeRecord = (runDir: string, record: RunRecord): Promise<void> =>
  writeDurably(getRecordPath(runDir), JSON.stringify(record))

/** Returns undefined when the record is missing or damaged. @throws other system errors */
export function readRecord(runDir: string): RunRecord | undefined {
  try {
    const text = readStateFile(getRecordPath(runDir), MAX_RECORD_BYTES) ?? ''
    const record = recordSchema.safeParse(JSON.parse(text)).data
    return record?.id === basename(runDir) ? record : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Returns '' when the file was deleted or replaced. */
export const readPrompt = (runDir: string): string =>
  readStateFile(getPromptPath(runDir), LIMITS.promptBytes) ?? ''
