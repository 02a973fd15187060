// What the coding agents of a box do, on its overview.
import type { Box } from '../../../shared/api/boxes.ts'
import type { PromptList } from '../../../shared/api/prompts.ts'
import { listConversations } from '../../data/all-prompts.ts'
import { getBoxClient } from '../../data/box-clients.ts'
import { formatBoxPath, formatConversationPath } from '../../data/routes.ts'
import { Card } from '../../design/card.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useLoaded } from '../loaded.tsx'
import { Problem } from '../problem.tsx'
import { ThreadLink } from './threads.tsx'

const COUNT = 4
const POLL_MS = 10_000

export function AtWork({ box }: { box: Box }) {
  const { value, error } = useLoaded(
    async () => listConversations(box, await getBoxClient(box.id).send<PromptList>('GET', 'prompts')),
    [box.id],
    POLL_MS,
  )
  return (
    <Card title="Conversations" href={formatBoxPath(box.hostname, 'conversations')} link="All conversations">
      <Problem error={error} />
      {value === null && error === null && <Skeleton label="Loading the conversations." rows={3} />}
      {value?.length === 0 && <p>No coding agent has had a prompt.</p>}
      <ul class="thread-list">
        {value?.slice(0, COUNT).map((conversation) => (
          <ThreadLink
            key={conversation.id}
            href={formatConversationPath(box.hostname, conversation.id)}
            title={conversation.prompts.at(-1) ?? ''}
            provider={conversation.provider}
            status={conversation.status}
            queued={conversation.queued}
            at={conversation.at}
          />
        ))}
      </ul>
    </Card>
  )
}
