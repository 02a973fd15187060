// The files of a run, in a directory of its own. The output is in the directory of its detached process.
//
//   run.json              the request, the interrupt request and the result
//   prompt                the prompt as requested
//   stdin                 the prompt as the CLI gets it, where that differs
//   checkpoints, position see checkpoints.ts
//   tmp                   temporary files of the CLI, deleted at the end
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { PROVIDERS, REASONING_EFFORTS, RUN_ID_PATTERN, RUN_STATUSES } from '../../shared/api/prompts.ts'
import { syncDirectory, writeDurably } from './durable-file.ts'

const recordSchema = z.object({
  id: z.string().regex(RUN_ID_PATTERN),
  conversationId: z.string(),
  provider: z.enum(PROVIDERS),
  model: z.string().nullable(),
  reasoningEffort: z.enum(REASONING_EFFORTS).nullable(),
  auto: z.boolean(),
  cwd: z.string(),
  startedAt: z.int(),
  resumedFrom: z.string().nullable(),
  parent: z.string().nullable(),
  promptPreview: z.string(),
  /** The time limit of the run. */
  minutes: z.number(),
  interrupt: z.object({ requestedAt: z.int(), cause: z.string() }).nullable(),
  /** null: in progress. */
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
      /** Length of the output. Under the shell runner, background processes may append to the log later. */
      logEnd: z.int(),
      /** Disk usage of the output. */
      logBytes: z.int(),
    })
    .nullable(),
})
export type RunRecord = z.infer<typeof recordSchema>
export type RecordedResult = NonNullable<RunRecord['result']>

export const getTmpDir = (runDir: string): string => join(runDir, 'tmp')
const getPromptPath = (runDir: string): string => join(runDir, 'prompt')

/** The process of a run has the same hexadecimal digits in its id. */
export const toProcessId = (runId: string): string => runId.replace(/^run_/, 'p_')

/**
 * Creates the directory. Resolves when the files are durable.
 * @param stdin the prompt as the CLI gets it
 * @returns the path of the file for the standard input
 */
export async function createRunFiles(
  runDir: string,
  { record, prompt, stdin }: { record: RunRecord; prompt: string; stdin: string },
): Promise<string> {
  await mkdir(runDir, { mode: 0o700 })
  await mkdir(getTmpDir(runDir), { mode: 0o700 })
  const stdinPath = stdin === prompt ? getPromptPath(runDir) : join(runDir, 'stdin')
  await Promise.all(
    [...new Map([[getPromptPath(runDir), prompt]]).set(stdinPath, stdin)].map(([path, text]) =>
      writeFile(path, text, { mode: 0o600, flush: true }),
    ),
  )
  await writeRecord(runDir, record)
  await syncDirectory(dirname(runDir))
  return stdinPath
}

/** Resolves when the record is durable. */
export const writeRecord = (runDir: string, record: RunRecord): Promise<void> =>
  writeDurably(join(runDir, 'run.json'), JSON.stringify(record))

/** undefined when missing or damaged. */
export function readRecord(runDir: string): RunRecord | undefined {
  try {
    return recordSchema.safeParse(JSON.parse(readFileSync(join(runDir, 'run.json'), 'utf8'))).data
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (isMissing || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** '' when the file was deleted. */
export function readPrompt(runDir: string): string {
  try {
    return readFileSync(getPromptPath(runDir), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
