// The prompts of the boxes that are open in this tab: their lists, events and unsent texts.

import { type Signal, signal } from '@preact/signals'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { PromptList, Run } from '../../shared/api/prompts.ts'
import { createPrompts, type Prompts } from '../api/prompts.ts'
import { getBoxClient } from './box-clients.ts'
import { getCoordinatorTime } from './live.ts'
import { createPromptFeed, type PromptFeed, type PromptLists } from './prompt-feed.ts'
import { createPromptRuns, type PromptRuns } from './prompt-runs.ts'
import { acquireStream } from './stream-slots.ts'

export type BoxPrompts = {
  prompts: Prompts
  feed: PromptFeed
  runs: PromptRuns
  lists: Signal<(PromptLists & { conversation: string | null; at: number }) | null>
  error: Signal<BoxwoodError | null>
  /** Counts changes of the events. */
  changes: Signal<number>
  /** Loads the events of a run that has ended, unless they are there. Rejects with BoxwoodError. */
  loadEvents(runId: string): Promise<void>
  /** Shows the runs of a conversation; null: of all. */
  select(conversation: string | null): void
  /** The first prompts of conversations by their ids, as far as they are known. */
  titles: Signal<ReadonlyMap<string, string>>
  /** What was typed and is not sent. @param key the conversation; null: a new one */
  getDraft(key: string | null): Signal<string>
}

/** Events that arrive together are shown together. */
const SHOW_MS = 100

const opened = new Map<string, BoxPrompts>()
const allDrafts: Signal<string>[] = []

export function getBoxPrompts(boxId: string): BoxPrompts {
  const existing = opened.get(boxId)
  if (existing !== undefined) return existing
  const prompts = createPrompts(getBoxClient(boxId))
  const lists: BoxPrompts['lists'] = signal(null)
  const error = signal<BoxwoodError | null>(null)
  const changes = signal(0)
  const titles: BoxPrompts['titles'] = signal(new Map())
  const drafts = new Map<string | null, Signal<string>>()
  let isScheduled = false
  const runs = createPromptRuns(() => {
    if (isScheduled) return
    isScheduled = true
    setTimeout(() => {
      isScheduled = false
      changes.value += 1
    }, SHOW_MS)
  })
  let conversation: string | null = null
  /** A title that is shown does not change. */
  function addTitles(list: PromptList): void {
    const added = list.runs
      .filter((run) => run.parent === null && !titles.value.has(run.conversationId))
      .map((run) => [run.conversationId, run.prompt] as const)
    if (added.length > 0) titles.value = new Map([...titles.value, ...added])
  }
  async function loadEvents(runId: string): Promise<void> {
    const { events, isComplete } = runs.get(runId)
    if (isComplete) return
    for (let after = events.at(-1)?.seq ?? 0; ; ) {
      const page = await prompts.loadEvents(runId, after)
      runs.add(runId, page.events)
      if (page.finished) runs.complete(runId)
      if (page.finished || page.next === after) return
      after = page.next
    }
  }
  const feed = createPromptFeed({
    prompts,
    acquireStream,
    loadEvents,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms)
        signal.addEventListener(
          'abort',
          () => {
            clearTimeout(timer)
            resolve()
          },
          { once: true },
        )
      }),
    onLists(value) {
      addTitles(value.prompts)
      lists.value = { ...value, conversation, at: getCoordinatorTime() }
    },
    onRun(run: Run, isFinished) {
      if (isFinished) runs.complete(run.id)
    },
    onEvent: (runId, event) => runs.add(runId, [event]),
    onError(reason) {
      error.value = reason
    },
  })
  const created: BoxPrompts = {
    prompts,
    feed,
    runs,
    lists,
    error,
    changes,
    titles,
    getDraft(key) {
      const draft = drafts.get(key) ?? signal('')
      if (!drafts.has(key)) allDrafts.push(draft)
      drafts.set(key, draft)
      return draft
    },
    select(id) {
      // The list of one conversation has no titles of the others.
      if (id !== null && lists.value === null) prompts.list(null).then(addTitles, () => undefined)
      conversation = id
      feed.select(id)
    },
    loadEvents,
  }
  if (opened.size === 0) addEventListener('beforeunload', warn)
  opened.set(boxId, created)
  return created
}

/** The browser asks before it closes a document with a prompt that is not sent. */
function warn(event: Event): void {
  if (allDrafts.some(({ value }) => value.trim() !== '')) event.preventDefault()
}
