// One conversation: its runs, oldest first, and the field for the next prompt. It follows the end until the user scrolls up.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import type { Box, CodingAgents } from '../../../shared/api/boxes.ts'
import type { Run } from '../../../shared/api/prompts.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { getAgentLabel } from '../../data/coding-agents.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { toTitle } from '../../data/prompt-blocks.ts'
import { formatBoxPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Icon } from '../../design/icon.tsx'
import { ArrowDownIcon, ArrowLeftIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Commands } from '../command.tsx'
import { AgentCard } from './agents.tsx'
import { Compose } from './compose.tsx'
import { RunView } from './run.tsx'

export type ThreadProps = {
  box: Box
  boxPrompts: BoxPrompts
  /** Null: not known. */
  agents: CodingAgents | null
  reloadAgents(): Promise<void>
}

/** The answers of the newest runs are loaded at once. */
const OPEN_RUNS = 2

export function Thread({ box, boxPrompts, agents, reloadAgents, id }: ThreadProps & { id: string }) {
  const { lists, changes, titles, error } = boxPrompts
  const { value } = lists
  const isCurrent = value?.conversation === id
  const runs = isCurrent ? value.prompts.runs.toReversed() : []
  const listed = value?.conversations.conversations.find((other) => other.id === id)
  const last = runs.at(-1)
  // The list has the conversations that were active most recently.
  const conversation = listed ?? (last && toConversation(last, value?.prompts.queued.length ?? 0))
  const { isAtEnd, follow } = useEnd([changes.value, value, agents])
  const readiness = conversation && agents?.[conversation.provider]
  const title = titles.value.get(id) ?? conversation?.lastPrompt ?? ''
  return (
    <>
      <div class="thread-head">
        <a class="back" href={formatBoxPath(box.hostname, 'conversations')}>
          <Icon of={ArrowLeftIcon} />
          All conversations
        </a>
        <h2 title={showHidden(toTitle(title))}>{showHidden(toTitle(title)) || 'Conversation'}</h2>
        <Commands texts={[formatCommandLine('box', 'prompts', box.hostname, '--conversation', id)]} />
        {conversation !== undefined && (
          <small>
            {getAgentLabel(conversation.provider)} in {showHidden(conversation.cwd)}
          </small>
        )}
      </div>
      <div class="thread-body">
        {!isCurrent && error.value === null && <Skeleton label="Loading the conversation." />}
        {runs.map((run, index) => (
          <RunView
            key={run.id}
            boxPrompts={boxPrompts}
            run={run}
            number={index + 1}
            isNewest={index >= runs.length - OPEN_RUNS}
          />
        ))}
        {conversation !== undefined && readiness !== undefined && readiness !== 'ready' && (
          <ul class="agents">
            <AgentCard box={box} name={conversation.provider} readiness={readiness} reload={reloadAgents} />
          </ul>
        )}
      </div>
      {conversation !== undefined && (
        <Compose
          boxName={box.hostname}
          boxPrompts={boxPrompts}
          conversation={conversation}
          agents={agents}
          running={runs.find(({ status }) => status === 'running')}
          queued={isCurrent ? value.prompts.queued : []}
          onSent={follow}
        >
          {!isAtEnd && (
            <button type="button" class="latest" onClick={follow}>
              <Icon of={ArrowDownIcon} />
              Latest
            </button>
          )}
        </Compose>
      )}
    </>
  )
}

const toConversation = (run: Run, queued: number) => ({
  id: run.conversationId,
  provider: run.provider,
  cwd: run.cwd,
  running: run.status === 'running',
  lastPrompt: run.prompt,
  queued,
})

/** At this distance from the end of the page, new events keep the end in view. */
const NEAR_END_PX = 60

/** Keeps the end of the page in view when the inputs change, until the user scrolls up. */
function useEnd(inputs: readonly unknown[]) {
  const isAtEnd = useSignal(true)
  const scroll = () => scrollTo(scrollX, document.documentElement.scrollHeight)
  useEffect(() => {
    const update = () => {
      isAtEnd.value = scrollY + innerHeight > document.documentElement.scrollHeight - NEAR_END_PX
    }
    addEventListener('scroll', update, { passive: true })
    return () => removeEventListener('scroll', update)
  }, [])
  useLayoutEffect(() => {
    if (isAtEnd.value) scroll()
  }, inputs)
  return {
    isAtEnd: isAtEnd.value,
    follow() {
      isAtEnd.value = true
      scroll()
    },
  }
}
