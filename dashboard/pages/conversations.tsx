// The page of the coding agents of a box: all conversations, or one with its runs.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box, CodingAgents } from '../../shared/api/boxes.ts'
import type { Conversation, QueuedPrompt, Run } from '../../shared/api/prompts.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { formatAge } from '../data/age.ts'
import { type BoxPrompts, getBoxPrompts } from '../data/box-prompts.ts'
import { CODING_AGENTS, describeReadiness } from '../data/coding-agents.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { getClient, losses, now } from '../data/live.ts'
import { navigate, query } from '../data/navigation.ts'
import { formatBoxPath, formatConversationPath } from '../data/routes.ts'
import { showHidden, showHiddenInOutput } from '../data/visible-text.ts'
import { Command } from '../views/command.tsx'
import { Compose } from '../views/conversations/compose.tsx'
import { RunView } from '../views/conversations/run.tsx'
import { focusHeading } from '../views/focus-heading.ts'
import { NotRunning } from '../views/not-running.tsx'
import { Problem } from '../views/problem.tsx'

export function ConversationsPage({ box }: { box: Box }) {
  if (box.observedState !== 'running') return <NotRunning box={box} subject="Conversations" />
  return <RunningBox key={box.id} box={box} />
}

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
  const agents = useCodingAgents(box)
  const { value } = lists
  return (
    <>
      <Problem error={error.value} />
      {value !== null && error.value !== null && (
        <p>What is shown is {formatAge(now.value - value.at)} old. The page tries again by itself.</p>
      )}
      {selected === null ? (
        <Overview box={box} boxPrompts={boxPrompts} agents={agents} />
      ) : (
        <ConversationView key={selected} box={box} boxPrompts={boxPrompts} agents={agents} id={selected} />
      )}
    </>
  )
}

/** The box reports the coding agents with its heartbeats. */
const AGENTS_POLL_MS = 30_000

function useCodingAgents(box: Box): CodingAgents | null {
  const agents = useSignal<CodingAgents | null>(null)
  useEffect(() => {
    let isCurrent = true
    const load = () =>
      getClient()
        .loadBox(box.id)
        .then(
          ({ vitals }) => {
            if (isCurrent) agents.value = vitals?.coding_agents ?? null
          },
          () => {
            // The lists of the page report that the coordinator does not respond.
            if (isCurrent) agents.value = null
          },
        )
    void load()
    const timer = setInterval(() => document.visibilityState === 'visible' && void load(), AGENTS_POLL_MS)
    return () => {
      isCurrent = false
      clearInterval(timer)
    }
  }, [box.id])
  return agents.value
}

type ViewProps = { box: Box; boxPrompts: BoxPrompts; agents: CodingAgents | null }

function Overview({ box, boxPrompts, agents }: ViewProps) {
  const { value } = boxPrompts.lists
  const conversations = value?.conversations.conversations ?? []
  return (
    <>
      <h2>Coding agents</h2>
      <ul>
        {CODING_AGENTS.map(({ name, label }) => (
          <li key={name}>
            {label}: {agents === null ? 'not reported yet' : describeReadiness(name, agents[name])}
          </li>
        ))}
      </ul>
      <p>
        <a href="docs/guides/prompts">How to install and sign in</a>
      </p>
      <h2>Conversations</h2>
      <Command text={`box conversations ${box.hostname}`} />
      {value === null ? (
        <p>Loading the conversations.</p>
      ) : (
        <>
          <p role="status">
            {value.conversations.running} of at most {value.conversations.limit} runs in progress
          </p>
          {conversations.length === 0 ? (
            <p>There is no conversation.</p>
          ) : (
            <ConversationTable boxName={box.hostname} conversations={conversations} />
          )}
          <Queue boxPrompts={boxPrompts} queued={value.conversation === null ? value.prompts.queued : []} />
        </>
      )}
      <Compose
        boxName={box.hostname}
        boxPrompts={boxPrompts}
        conversation={null}
        agents={agents}
        onSent={(id) => navigate(formatConversationPath(box.hostname, id))}
      />
    </>
  )
}

function ConversationTable(props: { boxName: string; conversations: readonly Conversation[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Last prompt</th>
          <th scope="col">Coding agent</th>
          <th scope="col">State</th>
          <th scope="col">Prompts</th>
          <th scope="col">Last change</th>
        </tr>
      </thead>
      <tbody>
        {props.conversations.map((conversation) => (
          <tr key={conversation.id}>
            <th scope="row">
              <a href={formatConversationPath(props.boxName, conversation.id)}>
                {showHidden(shorten(conversation.lastPrompt)) || conversation.id}
              </a>
            </th>
            <td data-label="Coding agent">{conversation.provider}</td>
            <td data-label="State">{formatConversationState(conversation)}</td>
            <td data-label="Prompts">{conversation.prompts}</td>
            <td data-label="Last change">
              <time dateTime={conversation.updatedAt}>
                {formatAge(now.value - Date.parse(conversation.updatedAt))} ago
              </time>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const MAX_TITLE = 120

function shorten(text: string): string {
  const [line = ''] = text.trim().split('\n')
  return line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE)}…` : line
}

function formatConversationState({ running, lastStatus, queued }: Conversation): string {
  const state = running ? 'running' : (lastStatus ?? 'not started')
  return queued === 0 ? state : `${state}, ${queued} queued`
}

function Queue({ boxPrompts, queued }: { boxPrompts: BoxPrompts; queued: readonly QueuedPrompt[] }) {
  const error = useSignal<BoxwoodError | null>(null)
  if (queued.length === 0) return <Problem error={error.value} />
  async function remove(id: string) {
    const button = document.activeElement
    error.value = null
    try {
      await boxPrompts.prompts.interrupt(id)
      await boxPrompts.feed.refresh()
      // The button is removed. The user may have moved on since, such as to the next prompt.
      if ([button, document.body].includes(document.activeElement)) focusHeading()
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    }
  }
  return (
    <section aria-label="Queue">
      <h2>Queue</h2>
      <ol>
        {queued.map(({ id, provider, prompt }) => (
          <li key={id}>
            {provider}: {showHidden(shorten(prompt))}{' '}
            <button type="button" aria-label={`Remove ${id} from the queue`} onClick={() => remove(id)}>
              Remove
            </button>
          </li>
        ))}
      </ol>
      <Problem error={error.value} />
    </section>
  )
}

const toConversation = (run: Run, queued: number) => ({
  id: run.conversationId,
  provider: run.provider,
  model: run.model,
  cwd: run.cwd,
  running: run.status === 'running',
  queued,
})

/** At this distance from the end of the page, new events keep the end in view. */
const NEAR_END_PX = 120

function ConversationView({ box, boxPrompts, agents, id }: ViewProps & { id: string }) {
  const { lists, changes } = boxPrompts
  const { value } = lists
  const isCurrent = value?.conversation === id
  const runs = isCurrent ? value.prompts.runs.toReversed() : []
  const listed = value?.conversations.conversations.find((other) => other.id === id)
  const last = runs.at(-1)
  // The list has the conversations that were active most recently.
  const conversation = listed ?? (last && toConversation(last, value?.prompts.queued.length ?? 0))
  const isAtEnd = useRef(false)
  useEffect(() => {
    const update = () => {
      const { scrollHeight } = document.documentElement
      isAtEnd.current = scrollY > 0 && scrollY + innerHeight > scrollHeight - NEAR_END_PX
    }
    addEventListener('scroll', update, { passive: true })
    return () => removeEventListener('scroll', update)
  }, [])
  const version = changes.value
  useLayoutEffect(() => {
    if (isAtEnd.current) scrollTo(scrollX, document.documentElement.scrollHeight)
  }, [version])
  return (
    <>
      <p class="tools">
        <a href={formatBoxPath(box.hostname, 'conversations')}>All conversations</a>
        {conversation !== undefined && (
          <span>
            {conversation.provider}
            {conversation.model !== null && `, ${showHidden(conversation.model)}`}, in{' '}
            {showHiddenInOutput(conversation.cwd)}
          </span>
        )}
        <Command text={formatCommandLine('box', 'prompts', box.hostname, '--conversation', id)} />
      </p>
      {!isCurrent && boxPrompts.error.value === null && <p>Loading the conversation.</p>}
      {runs.map((run, index) => (
        <RunView key={run.id} boxPrompts={boxPrompts} run={run} isNewest={index >= runs.length - 2} />
      ))}
      {isCurrent && <Queue boxPrompts={boxPrompts} queued={value.prompts.queued} />}
      {conversation !== undefined && (
        <Compose
          boxName={box.hostname}
          boxPrompts={boxPrompts}
          conversation={conversation}
          agents={agents}
          onSent={() => undefined}
        />
      )}
    </>
  )
}
