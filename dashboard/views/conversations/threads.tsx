// The conversations of a box, most recently active first.
import type { ComponentChildren } from 'preact'
import type { Box } from '../../../shared/api/boxes.ts'
import type { Conversation } from '../../../shared/api/prompts.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { getAgentLabel } from '../../data/coding-agents.ts'
import { toTitle } from '../../data/prompt-blocks.ts'
import { formatBoxPath, formatConversationPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Avatar } from '../../design/avatar.tsx'
import { Icon } from '../../design/icon.tsx'
import { PlusIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age } from '../age.tsx'
import { Commands } from '../command.tsx'

type ThreadsProps = { box: Box; boxPrompts: BoxPrompts; selected: string | null }

export function Threads({ box: { hostname }, boxPrompts, selected }: ThreadsProps) {
  const { lists, titles } = boxPrompts
  const { value } = lists
  const conversations = value?.conversations.conversations ?? []
  return (
    <nav class="threads" aria-label="Conversations">
      <div class="threads-head">
        <h2>Conversations</h2>
        <Commands texts={[`box conversations ${hostname}`]} />
      </div>
      <a
        class="button"
        href={formatBoxPath(hostname, 'conversations')}
        aria-current={selected === null ? 'page' : undefined}
      >
        <Icon of={PlusIcon} />
        New conversation
      </a>
      {value === null && <Skeleton label="Loading the conversations." />}
      <ul class="thread-list">
        {conversations.map((conversation) => (
          <ThreadLink
            key={conversation.id}
            href={formatConversationPath(hostname, conversation.id)}
            title={titles.value.get(conversation.id) ?? conversation.lastPrompt}
            isCurrent={conversation.id === selected}
            {...toLinkFields(conversation)}
          />
        ))}
      </ul>
      {value !== null && (
        <p role="status">
          <small>
            {value.conversations.running} of at most {value.conversations.limit} runs in progress
          </small>
        </p>
      )}
    </nav>
  )
}

const toLinkFields = ({ provider, running, lastStatus, queued, updatedAt }: Conversation) => ({
  provider,
  status: running ? 'running' : (lastStatus ?? 'not started'),
  queued,
  at: updatedAt,
})

export type ThreadLinkProps = {
  href: string
  /** A prompt. */
  title: string
  provider: string
  status: string
  queued: number
  at: string
  isCurrent?: boolean
  /** The name of its box, in a list of several. */
  boxName?: string
  /** Beside the link. */
  children?: ComponentChildren
}

export function ThreadLink(props: ThreadLinkProps) {
  const { href, title, provider, status, queued, at, isCurrent = false, boxName, children } = props
  const label = getAgentLabel(provider)
  const text = showHidden(toTitle(title)) || label
  return (
    <li>
      <a href={href} title={text} aria-current={isCurrent ? 'page' : undefined}>
        <Avatar name={label} />
        <span class="thread-title">{text}</span>
        <small>
          {boxName !== undefined && <b>{showHidden(boxName)}</b>}{' '}
          <span class={`dot ${status}`}>{status}</span>
          {queued > 0 && ` · ${queued} queued`} · <Age at={at} />
        </small>
        <span class="visually-hidden">{label}</span>
      </a>
      {children}
    </li>
  )
}
