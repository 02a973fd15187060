// The state of a command as a task.
import type { Box } from '../../client/boxes/box.ts'
import type { Call, Context } from '../context.ts'
import { ToolError } from '../errors.ts'
import { toOutputAnswer } from '../output/answer.ts'
import { readProcess } from '../output/read-process.ts'
import { toResult } from '../result.ts'
import type { Task } from '../tool.ts'

/** How often a client should ask. */
const POLL_MS = 2_000
const SEPARATOR = '.'

export type TaskRef = { box: Box; processId: string }

const toTaskId = ({ box, processId }: TaskRef): string => `${box.id}${SEPARATOR}${processId}`

/** @throws ToolError for an id that this server has not created; BoxwoodError */
export async function findTask(context: Context, taskId: string, call: Call): Promise<TaskRef> {
  const [boxId = '', processId = '', ...rest] = taskId.split(SEPARATOR)
  if (boxId === '' || processId === '' || rest.length > 0)
    throw new ToolError('There is no such task.', 'Use the taskId of an answer.')
  return { box: await context.findBox(boxId, call), processId }
}

/** @throws BoxwoodError */
export async function readTask({ box, processId }: TaskRef, { signal }: Pick<Call, 'signal'>): Promise<Task> {
  const { running, startedAt, finishedAt } = await box.process(processId).status({ tail: 0 }, { signal })
  return {
    taskId: toTaskId({ box, processId }),
    status: running ? 'working' : 'completed',
    statusMessage: `The command ${processId} on box ${box.name} ${running ? 'is running' : 'has ended'}.`,
    createdAt: startedAt,
    lastUpdatedAt: finishedAt ?? new Date().toISOString(),
    ttlMs: null,
    pollIntervalMs: POLL_MS,
  }
}

/**
 * The answer of run_command. A command that was stopped is complete, too: a cancelled task has no result in the protocol, and the output
 * would be lost. @throws BoxwoodError
 */
export async function readTaskResult({ box, processId }: TaskRef, waitMs: number, { signal }: Call) {
  const output = await readProcess(box, processId, { signal, waitMs })
  return { resultType: 'complete', ...toResult(toOutputAnswer(box, processId, output)) }
}
