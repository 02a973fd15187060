// The prompts of all running boxes, with links to their conversations.
import { useSignal } from '@preact/signals'
import type { PromptList } from '../../../shared/api/prompts.ts'
import { type AllPrompts, type ListedPrompt, loadAllPrompts, selectPrompts } from '../../data/all-prompts.ts'
import { getBoxClient } from '../../data/box-clients.ts'
import { boxes } from '../../data/live.ts'
import { formatBoxPath, formatConversationPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Age } from '../../views/age.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { SearchField } from '../../views/search-field.tsx'

/** A box that does not respond by then is named. */
const RESPONSE_MS = 10_000
/** The page of the conversation has the whole prompt. */
const MAX_PROMPT_CHARS = 200

export function PromptsPage() {
  const filter = useSignal('')
  const all = boxes.value
  const loaded = useLoaded(
    async () =>
      all === null
        ? null
        : loadAllPrompts(all.values(), ({ id }) =>
            getBoxClient(id).send<PromptList>('GET', 'prompts', {}, { timeoutMs: RESPONSE_MS }),
          ),
    [all === null],
  )
  const { value } = loaded
  const shown = value === null ? [] : selectPrompts(value.prompts, filter.value)
  return (
    <>
      <PageHead page="prompts" command="box prompts --all">
        <SearchField label="Filter" value={filter} />
      </PageHead>
      {value !== null && <Missing value={value} />}
      {value !== null && shown.length === 0 && (
        <p>
          {value.prompts.length === 0
            ? 'The running boxes have no prompts. The page Conversations of a box sends one.'
            : 'No prompt matches the filter.'}
        </p>
      )}
      {shown.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Prompt</th>
              <th scope="col">Box</th>
              <th scope="col">Coding agent</th>
              <th scope="col">Status</th>
              <th scope="col">Sent</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((prompt) => (
              <PromptRow key={`${prompt.boxName} ${prompt.id}`} {...prompt} />
            ))}
          </tbody>
        </table>
      )}
      <Freshness loaded={loaded} />
    </>
  )
}

function PromptRow({ boxName, conversationId, provider, model, status, at, prompt }: ListedPrompt) {
  const text = prompt.length > MAX_PROMPT_CHARS ? `${prompt.slice(0, MAX_PROMPT_CHARS)}…` : prompt
  return (
    <tr>
      <th scope="row">
        <a href={formatConversationPath(boxName, conversationId)}>{showHidden(text)}</a>
      </th>
      <td data-label="Box">
        <a href={formatBoxPath(boxName)}>{boxName}</a>
      </td>
      <td data-label="Coding agent">
        {provider}
        {model !== null && <small> {showHidden(model)}</small>}
      </td>
      <td data-label="Status">{status}</td>
      <td data-label="Sent">
        <Age at={at} />
      </td>
    </tr>
  )
}

/** The boxes whose prompts are not in the list. */
function Missing({ value: { unanswered, notRunning } }: { value: AllPrompts }) {
  return (
    <>
      {unanswered.map(({ boxName, message }) => (
        <p key={boxName} class="problem">
          {boxName} has not answered: {showHidden(message)}
        </p>
      ))}
      {notRunning.length > 0 && <p>Not running, and so not asked: {notRunning.join(', ')}.</p>}
    </>
  )
}
