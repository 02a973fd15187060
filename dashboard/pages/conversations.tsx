// The page of the coding agents of a box: the conversations, one of them with its runs, and the field for a prompt.

import { useEffect, useLayoutEffect } from 'preact/hooks'
import type { Box } from '../../shared/api/boxes.ts'
import { formatAge } from '../data/age.ts'
import { getBoxPrompts } from '../data/box-prompts.ts'
import { getClient, losses, now } from '../data/live.ts'
import { query } from '../data/navigation.ts'
import { NewThread } from '../views/conversations/new-thread.tsx'
import { Thread } from '../views/conversations/thread.tsx'
import { Threads } from '../views/conversations/threads.tsx'
import { useLoaded } from '../views/loaded.tsx'
import { NotRunning } from '../views/not-running.tsx'
import { Problem } from '../views/problem.tsx'

export function ConversationsPage({ box }: { box: Box }) {
  if (box.observedState !== 'running') return <NotRunning box={box} subject="Conversations" />
  return <RunningBox key={box.id} box={box} />
}

/** The box reports the coding agents with its heartbeats. */
const AGENTS_POLL_MS = 10_000

function RunningBox({ box }: { box: Box }) {
  const boxPrompts = getBoxPrompts(box.id)
  const { feed, lists, error, select } = boxPrompts
  const selected = new URLSearchParams(query.value).get('conversation')
  useLayoutEffect(() => select(selected), [selected])
  useEffect(() => {
    const update = () => (document.visibilityState === 'visible' ? feed.start() : feed.stop())
    update()
    document.addEventListener('visibilitychange', update)
    return () => {
      document.removeEventListener('visibilitychange', update)
      feed.stop()
    }
  }, [feed, losses.value])
  const loadAgents = async () => (await getClient().loadBox(box.id)).vitals?.coding_agents ?? null
  const { value: agents, reload } = useLoaded(loadAgents, [box.id], AGENTS_POLL_MS)
  const { value } = lists
  const parts = { box, boxPrompts, agents, reloadAgents: reload }
  return (
    <div class={selected === null ? 'chat' : 'chat chat-open'}>
      <Threads box={box} boxPrompts={boxPrompts} selected={selected} />
      <div class="thread">
        <Problem error={error.value} />
        {value !== null && error.value !== null && (
          <p>What is shown is {formatAge(now.value - value.at)} old. The page tries again by itself.</p>
        )}
        {selected === null ? <NewThread {...parts} /> : <Thread key={selected} {...parts} id={selected} />}
      </div>
    </div>
  )
}
