// The conversations of all boxes. The coordinator stores no prompts: each running box is asked for its own.
import type { Box } from '../../shared/api/boxes.ts'
import type { PromptList, RunStatus } from '../../shared/api/prompts.ts'
import { runForEach } from './batch.ts'

export type ListedConversation = {
  id: string
  boxId: string
  boxName: string
  provider: string
  model: string | null
  status: RunStatus | 'queued'
  /** How many prompts wait. */
  queued: number
  /** The run in progress. */
  runningId: string | null
  /** When its last prompt was queued, or its last run started. */
  at: string
  /** The listed prompts, newest first. The last one is the title. */
  prompts: string[]
}

export type AllPrompts = {
  /** Newest first. */
  conversations: ListedConversation[]
  /** The boxes that have not responded, with the reason. */
  unanswered: { boxName: string; message: string }[]
  /** The names of the boxes that are not running, and so were not asked. */
  notRunning: string[]
}

/** @param load rejects with BoxwoodError */
export async function loadAllPrompts(
  boxes: Iterable<Box>,
  load: (box: Box) => Promise<PromptList>,
): Promise<AllPrompts> {
  const live = [...boxes].filter(({ desiredState }) => desiredState !== 'terminated')
  const isRunning = ({ observedState }: Box) => observedState === 'running'
  const conversations: ListedConversation[] = []
  const failures = await runForEach(live.filter(isRunning), async (box) => {
    conversations.push(...listConversations(box, await load(box)))
  })
  return {
    conversations: conversations.sort((a, b) => Date.parse(b.at) - Date.parse(a.at)),
    unanswered: failures.map(({ item, error }) => ({ boxName: item.hostname, message: error.message })),
    notRunning: live.filter((box) => !isRunning(box)).map(({ hostname }) => hostname),
  }
}

/** The conversations of a box, most recently active first. */
export function listConversations(
  { id: boxId, hostname: boxName }: Box,
  { queued, runs }: PromptList,
): ListedConversation[] {
  const conversations = new Map<string, ListedConversation>()
  const newestFirst = [
    ...queued
      .toReversed()
      .map((prompt) => ({ ...prompt, status: 'queued' as const, at: prompt.queuedAt, runningId: null })),
    ...runs.map((run) => ({
      ...run,
      at: run.startedAt,
      runningId: run.status === 'running' ? run.id : null,
    })),
  ]
  for (const { conversationId: id, provider, model, status, at, prompt, runningId } of newestFirst) {
    const known = conversations.get(id)
    const entry = known ?? {
      id,
      boxId,
      boxName,
      provider,
      model,
      status,
      queued: 0,
      at,
      runningId,
      prompts: [],
    }
    conversations.set(id, entry)
    entry.prompts.push(prompt)
    if (status === 'queued') entry.queued += 1
    else if (entry.status === 'queued') entry.status = status
    entry.runningId ??= runningId
  }
  return [...conversations.values()]
}

/** @param filter words that the box, the coding agent, the model, the status or the prompts must contain */
export function selectConversations(
  conversations: readonly ListedConversation[],
  filter: string,
): ListedConversation[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  return conversations.filter(({ boxName, provider, model, status, queued, prompts }) => {
    const states = [status, queued > 0 && 'queued']
    const text = [boxName, provider, model, ...states, ...prompts].join(' ').toLowerCase()
    return words.every((word) => text.includes(word))
  })
}
