// Sends a prompt: to a new conversation with a coding agent, or to a conversation. What was typed stays until it is sent.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import type { CodingAgents } from '../../../shared/api/boxes.ts'
import type {
  Conversation,
  PromptRequest,
  ProviderName,
  QueuedPrompt,
  Run,
} from '../../../shared/api/prompts.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { CODING_AGENTS, chooseAgent, describeReadiness, getAgentLabel } from '../../data/coding-agents.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { Icon } from '../../design/icon.tsx'
import { ArrowUpIcon } from '../../design/icons.ts'
import { Commands } from '../command.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'
import { NO_OPTIONS, PromptOptionsButton } from './prompt-options.tsx'
import { Queue } from './queue.tsx'
import { StopButton } from './stop-button.tsx'

export type ComposeProps = {
  boxName: string
  boxPrompts: BoxPrompts
  /** Null: the prompt starts a conversation. */
  conversation: Pick<Conversation, 'id' | 'provider' | 'running' | 'queued'> | null
  /** Null: not known. */
  agents: CodingAgents | null
  /** The run that can be stopped. */
  running: Run | undefined
  queued: readonly QueuedPrompt[]
  onSent(conversationId: string): void
  /** Above the field. */
  children?: ComponentChildren
}

/** The field is as high as its text, up to this number of lines. */
const MAX_ROWS = 12

export function Compose(props: ComposeProps) {
  const { boxName, boxPrompts, conversation, agents, running, queued, onSent, children } = props
  const { prompts, feed } = boxPrompts
  const id = useId()
  const field = useRef<HTMLTextAreaElement>(null)
  const text = boxPrompts.getDraft(conversation?.id ?? null)
  const chosen = useSignal<ProviderName | null>(null)
  const options = useSignal(NO_OPTIONS)
  const isAuto = useSignal(false)
  const sending = useAction()
  const message = useSignal('')
  const provider = conversation?.provider ?? chosen.value ?? chooseAgent(agents)
  const waits = conversation !== null && (conversation.running || conversation.queued > 0)
  const { model, effort, directory } = options.value

  async function send() {
    message.value = 'Sending. When the coding agent must be installed first, this takes minutes.'
    const sent = text.value
    const request: PromptRequest = {
      provider,
      prompt: sent,
      ...(conversation === null ? { new: true } : { conversationId: conversation.id }),
      queue: true,
      ...(model.trim() && { model: model.trim() }),
      ...(effort && { reasoningEffort: effort }),
      // A conversation keeps its directory.
      ...(conversation === null && directory !== '' && { cwd: directory }),
      // pi always uses all tools.
      ...(provider !== 'pi' && { auto: isAuto.value }),
    }
    const response = await prompts.start(request)
    if (text.value === sent) text.value = ''
    const isQueued = response.type === 'prompt.queued'
    message.value = isQueued ? `Queued at position ${response.queued.position}.` : 'Sent.'
    await feed.refresh()
    onSent(isQueued ? response.conversationId : response.run.conversationId)
  }
  async function submit() {
    if (sending.isBusy.value || text.value.trim() === '') return
    if (!(await sending.run(send))) message.value = ''
  }

  return (
    <form
      class="compose"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      {children}
      <Queue
        boxPrompts={boxPrompts}
        queued={queued}
        onEdit={(prompt) => {
          text.value = [text.value, prompt].filter((part) => part.trim() !== '').join('\n\n')
          field.current?.focus()
        }}
      />
      <Problem error={sending.error.value} />
      <div class="compose-box">
        <label class="visually-hidden" for={id}>
          Prompt
        </label>
        <textarea
          ref={field}
          id={id}
          value={text}
          rows={Math.min(MAX_ROWS, text.value.split('\n').length + 1)}
          placeholder={conversation === null ? 'Describe a task' : `Reply to ${getAgentLabel(provider)}`}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
            event.preventDefault()
            void submit()
          }}
        />
        <div class="compose-bar">
          {conversation === null && (
            <AgentSelect
              value={provider}
              agents={agents}
              onChange={(name) => {
                chosen.value = name
              }}
            />
          )}
          <PromptOptionsButton options={options} hasDirectory={conversation === null} />
          {provider === 'pi' ? (
            <small>pi may use all tools</small>
          ) : (
            <label title="Without a question. Otherwise it may use only the tools that its own settings permit.">
              <input
                type="checkbox"
                checked={isAuto}
                onChange={({ currentTarget }) => {
                  isAuto.value = currentTarget.checked
                }}
              />{' '}
              Allow all tools
            </label>
          )}
          <span class="buttons">
            <Commands
              texts={[
                `${formatCommandLine(
                  ...['box', 'prompt'],
                  ...(conversation === null
                    ? ['--new', '-p', provider]
                    : ['--conversation', conversation.id]),
                  '--queue',
                  isAuto.value && provider !== 'pi' && '--auto',
                  ...(model.trim() ? ['-m', model.trim()] : []),
                  ...(effort ? ['--effort', effort] : []),
                  ...(conversation === null && directory !== '' ? ['-w', directory] : []),
                  boxName,
                )} "…"`,
              ]}
            />
            {running !== undefined && (
              <StopButton
                provider={running.provider}
                stop={async () => {
                  await prompts.interrupt(running.id)
                  await feed.refresh()
                }}
              />
            )}
            <button type="submit" class="primary" disabled={sending.isBusy.value || text.value.trim() === ''}>
              <Icon of={ArrowUpIcon} />
              {waits ? 'Queue' : 'Send'}
            </button>
          </span>
        </div>
      </div>
      <p class="compose-foot">
        <small class="compose-hint">Ctrl-Enter sends</small>
        <small role="status">{message}</small>
      </p>
    </form>
  )
}

type AgentSelectProps = {
  value: ProviderName
  agents: CodingAgents | null
  onChange(name: ProviderName): void
}

const AgentSelect = ({ value, agents, onChange }: AgentSelectProps) => (
  <label>
    <span class="visually-hidden">Coding agent</span>
    <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value as ProviderName)}>
      {CODING_AGENTS.map((agent) => (
        <option key={agent.name} value={agent.name}>
          {agent.label}
          {agents !== null && `: ${describeReadiness(agent, agents[agent.name])}`}
        </option>
      ))}
    </select>
  </label>
)
