// Sends a prompt: to a new conversation with a coding agent, or to a conversation. What was typed stays until it is sent.

import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { CodingAgents } from '../../../shared/api/boxes.ts'
import type {
  Conversation,
  PromptRequest,
  ProviderName,
  ReasoningEffort,
} from '../../../shared/api/prompts.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { CODING_AGENTS, chooseAgent, describeReadiness, REASONING_EFFORTS } from '../../data/coding-agents.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { Command } from '../command.tsx'
import { Problem } from '../problem.tsx'

export type ComposeProps = {
  boxName: string
  boxPrompts: BoxPrompts
  /** Null: the prompt starts a conversation. */
  conversation: Pick<Conversation, 'id' | 'provider' | 'running' | 'queued'> | null
  /** Null: not known. */
  agents: CodingAgents | null
  onSent(conversationId: string): void
}

const NEW = 'new'

export function Compose({ boxName, boxPrompts, conversation, agents, onSent }: ComposeProps) {
  const { prompts, drafts, feed } = boxPrompts
  const id = useId()
  const key = conversation?.id ?? NEW
  const text = useSignal(drafts.get(key) ?? '')
  const chosen = useSignal<ProviderName | null>(null)
  const model = useSignal('')
  const effort = useSignal<ReasoningEffort | ''>('')
  const directory = useSignal('')
  const isAuto = useSignal(false)
  const isBusy = useSignal(false)
  const message = useSignal('')
  const error = useSignal<BoxwoodError | null>(null)
  const provider = conversation?.provider ?? chosen.value ?? chooseAgent(agents)
  const waits = conversation !== null && (conversation.running || conversation.queued > 0)

  async function send() {
    if (isBusy.value || text.value.trim() === '') return
    isBusy.value = true
    error.value = null
    message.value = 'Sending. When the coding agent must be installed first, this takes minutes.'
    const sent = text.value
    const request: PromptRequest = {
      provider,
      prompt: sent,
      ...(conversation === null ? { new: true } : { conversationId: conversation.id }),
      queue: true,
      ...(model.value.trim() && { model: model.value.trim() }),
      ...(effort.value && { reasoningEffort: effort.value }),
      // A conversation keeps its directory.
      ...(conversation === null && directory.value !== '' && { cwd: directory.value }),
      // pi always uses all tools.
      ...(provider !== 'pi' && { auto: isAuto.value }),
    }
    try {
      const response = await prompts.start(request)
      if (text.value === sent) {
        text.value = ''
        drafts.delete(key)
      }
      const isQueued = response.type === 'prompt.queued'
      message.value = isQueued ? `Queued at position ${response.queued.position}.` : 'Sent.'
      await feed.refresh()
      onSent(isQueued ? response.conversationId : response.run.conversationId)
    } catch (reason) {
      message.value = ''
      error.value = toBoxwoodError(reason)
    } finally {
      isBusy.value = false
    }
  }

  return (
    <form
      class="compose"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <h2>{conversation === null ? 'New conversation' : 'Continue'}</h2>
      <p>
        <label for={id}>Prompt</label>
        <textarea
          id={id}
          value={text}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value
            drafts.set(key, text.value)
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
            event.preventDefault()
            void send()
          }}
        />
      </p>
      <p class="tools">
        {conversation === null && (
          <label>
            Coding agent{' '}
            <select
              value={provider}
              onChange={({ currentTarget }) => {
                chosen.value = currentTarget.value as ProviderName
              }}
            >
              {CODING_AGENTS.map(({ name, label }) => (
                <option key={name} value={name}>
                  {label}
                  {agents !== null && `: ${describeReadiness(name, agents[name])}`}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          Model{' '}
          <input
            value={model}
            placeholder="default"
            autocapitalize="off"
            spellcheck={false}
            onInput={({ currentTarget }) => {
              model.value = currentTarget.value
            }}
          />
        </label>
        <label>
          Effort{' '}
          <select
            value={effort}
            onChange={({ currentTarget }) => {
              effort.value = currentTarget.value as typeof effort.value
            }}
          >
            <option value="">default</option>
            {REASONING_EFFORTS.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {conversation === null && (
          <label>
            Directory{' '}
            <input
              class="code"
              value={directory}
              placeholder="~"
              autocapitalize="off"
              autocomplete="off"
              spellcheck={false}
              onInput={({ currentTarget }) => {
                directory.value = currentTarget.value
              }}
            />
          </label>
        )}
        {provider === 'pi' ? (
          <small>pi always uses all tools.</small>
        ) : (
          <label>
            <input
              type="checkbox"
              checked={isAuto}
              onChange={({ currentTarget }) => {
                isAuto.value = currentTarget.checked
              }}
            />{' '}
            Use all tools without asking
          </label>
        )}
      </p>
      <p class="buttons">
        <button type="submit" class="primary" disabled={isBusy.value || text.value.trim() === ''}>
          {waits ? 'Queue' : 'Send'}
        </button>
        <small>Ctrl-Enter sends</small>
        <span role="status">{message}</span>
      </p>
      <Problem error={error.value} />
      <Command
        text={`${formatCommandLine(
          ...['box', 'prompt'],
          ...(conversation === null ? ['--new', '-p', provider] : ['--conversation', conversation.id]),
          '--queue',
          isAuto.value && provider !== 'pi' && '--auto',
          ...(model.value.trim() ? ['-m', model.value.trim()] : []),
          ...(effort.value ? ['--effort', effort.value] : []),
          ...(conversation === null && directory.value !== '' ? ['-w', directory.value] : []),
          boxName,
        )} "…"`}
      />
    </form>
  )
}
