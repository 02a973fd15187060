// The prompts of all boxes. The coordinator stores none: each running box is asked for its own.
import type { Box } from '../../shared/api/boxes.ts'
import type { PromptList } from '../../shared/api/prompts.ts'
import { runForEach } from './batch.ts'

export type ListedPrompt = {
  id: string
  boxName: string
  conversationId: string
  provider: string
  model: string | null
  status: string
  /** When the prompt was queued, or its run started. */
  at: string
  prompt: string
}

export type AllPrompts = {
  /** Newest first. */
  prompts: ListedPrompt[]
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
  const prompts: ListedPrompt[] = []
  const failures = await runForEach(live.filter(isRunning), async (box) => {
    prompts.push(...listPrompts(box, await load(box)))
  })
  return {
    prompts: prompts.sort((a, b) => Date.parse(b.at) - Date.parse(a.at)),
    unanswered: failures.map(({ item, error }) => ({ boxName: item.hostname, message: error.message })),
    notRunning: live.filter((box) => !isRunning(box)).map(({ hostname }) => hostname),
  }
}

const listPrompts = ({ hostname: boxName }: Box, { queued, runs }: PromptList): ListedPrompt[] => [
  ...queued.map(({ id, conversationId, provider, model, queuedAt, prompt }) => ({
    ...{ id, boxName, conversationId, provider, model, status: 'queued', at: queuedAt, prompt },
  })),
  ...runs.map(({ id, conversationId, provider, model, status, startedAt, prompt }) => ({
    ...{ id, boxName, conversationId, provider, model, status, at: startedAt, prompt },
  })),
]

/** @param filter words that the box, the coding agent, the model, the status or the prompt must contain */
export function selectPrompts(prompts: readonly ListedPrompt[], filter: string): ListedPrompt[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  return prompts.filter(({ boxName, provider, model, status, prompt }) => {
    const text = [boxName, provider, model, status, prompt].join(' ').toLowerCase()
    return words.every((word) => text.includes(word))
  })
}
