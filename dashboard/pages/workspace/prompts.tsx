// The conversations of all running boxes, with what works now first to find.
import { useSignal } from '@preact/signals'
import type { PromptList } from '../../../shared/api/prompts.ts'
import { createPrompts } from '../../api/prompts.ts'
import {
  type AllPrompts,
  type ListedConversation,
  loadAllPrompts,
  selectConversations,
} from '../../data/all-prompts.ts'
import { getBoxClient } from '../../data/box-clients.ts'
import { getAgentLabel } from '../../data/coding-agents.ts'
import { boxes } from '../../data/live.ts'
import { formatConversationPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { MessagesIcon } from '../../design/icons.ts'
import { SegmentedControl } from '../../design/segmented-control.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StopButton } from '../../views/conversations/stop-button.tsx'
import { ThreadLink } from '../../views/conversations/threads.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { SearchField } from '../../views/search-field.tsx'

/** A box that does not respond by then is named. */
const RESPONSE_MS = 10_000
const POLL_MS = 30_000

const TABS = {
  all: { label: 'All', matches: () => true },
  running: { label: 'Running', matches: ({ status }: ListedConversation) => status === 'running' },
  queued: { label: 'Queued', matches: ({ queued }: ListedConversation) => queued > 0 },
  failed: { label: 'Failed', matches: ({ status }: ListedConversation) => status === 'failed' },
} as const
type Tab = keyof typeof TABS

export function PromptsPage() {
  const filter = useSignal('')
  const tab = useSignal<Tab>('all')
  const all = boxes.value
  const loaded = useLoaded(
    async () =>
      all === null
        ? null
        : loadAllPrompts(all.values(), ({ id }) =>
            getBoxClient(id).send<PromptList>('GET', 'prompts', {}, { timeoutMs: RESPONSE_MS }),
          ),
    [all === null],
    POLL_MS,
  )
  const { value } = loaded
  const found = value === null ? [] : selectConversations(value.conversations, filter.value)
  const shown = found.filter(TABS[tab.value].matches)
  return (
    <>
      <PageHead page="prompts" command="box prompts --all">
        <SearchField label="Filter" value={filter} />
      </PageHead>
      {value === null && loaded.error === null && <Skeleton label="Loading the conversations." />}
      {value !== null && value.conversations.length > 0 && (
        <p class="tools">
          <SegmentedControl
            label="State"
            value={tab.value}
            options={(Object.keys(TABS) as Tab[]).map((name) => ({
              value: name,
              label: TABS[name].label,
              count: found.filter(TABS[name].matches).length,
            }))}
            onChange={(name) => {
              tab.value = name
            }}
          />
        </p>
      )}
      {value?.conversations.length === 0 && (
        <EmptyState icon={MessagesIcon} title="No conversation on the running boxes">
          <p>
            Here you see what coding agents do on all boxes. A box has the page Conversations to start one.
          </p>
        </EmptyState>
      )}
      {value !== null && value.conversations.length > 0 && shown.length === 0 && (
        <p>No conversation matches.</p>
      )}
      <ul class="thread-list wide">
        {shown.map((conversation) => (
          <ThreadLink
            key={`${conversation.boxName} ${conversation.id}`}
            {...conversation}
            href={formatConversationPath(conversation.boxName, conversation.id)}
            title={conversation.prompts.at(-1) ?? ''}
          >
            {conversation.runningId !== null && (
              <StopButton
                provider={conversation.provider}
                label={`Stop ${getAgentLabel(conversation.provider)} on ${conversation.boxName}`}
                stop={async () => {
                  await createPrompts(getBoxClient(conversation.boxId)).interrupt(
                    conversation.runningId ?? '',
                  )
                  await loaded.reload()
                }}
              />
            )}
          </ThreadLink>
        ))}
      </ul>
      {value !== null && <Missing value={value} />}
      <Freshness loaded={loaded} />
    </>
  )
}

/** The boxes whose conversations are not in the list. */
function Missing({ value: { unanswered, notRunning } }: { value: AllPrompts }) {
  return (
    <>
      {unanswered.map(({ boxName, message }) => (
        <p key={boxName} class="problem">
          {boxName} has not answered: {showHidden(message)}
        </p>
      ))}
      {notRunning.length > 0 && (
        <p>
          <small>Without the boxes that do not run: {notRunning.join(', ')}.</small>
        </p>
      )}
    </>
  )
}
