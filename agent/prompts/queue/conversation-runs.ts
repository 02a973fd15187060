// Starts a run in its conversation, from a request or from the queue. A failed start from the queue becomes a failed run.
import type { Logger } from 'pino'
import { ApiError } from '../../../shared/errors.ts'
import type { Conversations } from '../conversations/conversations.ts'
import type { RunState, Runs, StartRunOptions } from '../types.ts'
import type { PromptQueue, QueueEntry, StoredPrompt } from './queue.ts'

export type StartDeps = {
  runs: Pick<Runs, 'start' | 'recordUnstarted'>
  queue: PromptQueue
  conversations: Conversations
  log: Logger
}

export type NewRun = Omit<StartRunOptions, 'resumedFrom' | 'parent'>

/**
 * Starts a run in a conversation that exists. When `signal` aborts before the process has started, the run is recorded as
 * interrupted.
 * @throws as Runs.start()
 */
export async function startRun(
  { runs, conversations }: StartDeps,
  run: NewRun,
  signal: AbortSignal,
): Promise<RunState> {
  const request = continueConversation(conversations, run)
  const state = await runs.start(request, signal).catch((error: unknown) => {
    if (!signal.aborted || error !== signal.reason) throw error
    return runs.recordUnstarted(request, { status: 'interrupted', error: String(signal.reason) })
  })
  conversations.attach(state)
  return state
}

export type QueuedStart = {
  signal: AbortSignal
  /** Whether the agent stops. The entry of a start that fails then stays in the queue for the next agent. */
  isStopped(): boolean
}

/** Starts the run of an entry and removes the entry. @throws errors of recording a failed start */
export async function startQueuedRun(deps: StartDeps, entry: QueueEntry, start: QueuedStart): Promise<void> {
  const { queue, conversations, log } = deps
  try {
    await queue.waitUntilStored(entry.id)
  } catch {
    // submit() reports the error. The entry has been removed.
    return
  }
  if (!(await startOrRecordFailure(deps, entry, start))) return
  await conversations.save()
  // A restarted agent removes the files of a prompt that has a run.
  await queue
    .remove(entry.id)
    .catch((err: unknown) => log.error({ err, runId: entry.id }, 'failed to remove a prompt from the queue'))
}

/** false: the agent stops, and the next agent starts the prompt. */
async function startOrRecordFailure(
  deps: StartDeps,
  entry: QueueEntry,
  { signal, isStopped }: QueuedStart,
): Promise<boolean> {
  const { runs, queue, conversations, log } = deps
  const { promptPreview, queuedAt: _, sequence: __, ...fields } = entry
  let content: StoredPrompt = { prompt: promptPreview, boxEnv: {} }
  try {
    content = await queue.read(entry.id)
    await startRun(deps, { ...fields, ...content }, signal)
  } catch (err) {
    if (isStopped()) return false
    const error = err instanceof ApiError ? err.message : 'The run could not be started.'
    if (!(err instanceof ApiError)) log.error({ err, runId: entry.id }, 'failed to start a queued prompt')
    const request = continueConversation(conversations, { ...fields, ...content })
    conversations.attach(await runs.recordUnstarted(request, { status: 'failed', error }))
  }
  return true
}

function continueConversation(conversations: Conversations, run: NewRun): StartRunOptions {
  const conversation = conversations.get(run.conversationId)
  return {
    ...run,
    resumedFrom: conversation?.sessionId ?? null,
    parent: conversation?.lastRunId ?? null,
  }
}
