// Sends a prompt: to a new conversation with a coding agent, or to a conversation. What was typed stays until it is sent.

import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { CodingAgents } from '../../../shared/api/boxes.ts'
import type {
  Conversation,
  PromptRequest,
  ProviderName,
  QueuedPrompt,
  Run,
} from '../../../shared/api/prompts.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { CODING_AGENTS, chooseAgent, describeReadiness, getAgentLabel } from '../../data/coding-agents.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { Icon } from '../../design/icon.tsx'
import { ArrowUpIcon, SquareIcon } from '../../design/icons.ts'
import { Commands } from '../command.tsx'
import { Problem } from '../problem.tsx'
import { NO_OPTIONS, PromptOptionsButton } from './prompt-options.tsx'
import { Queue } from './queue.tsx'

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
  const isBusy = useSignal(false)
  const message = useSignal('')
  const error = useSignal<BoxwoodError | null>(null)
  const provider = conversation?.provider ?? chosen.value ?? chooseAgent(agents)
  const waits = conversation !== null && (conversation.running || conversation.queued > 0)
  const { model, effort, directory } = options.value

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
      ...(model.trim() && { model: model.trim() }),
      ...(effort && { reasoningEffort: effort }),
      // A conversation keeps its directory.
      ...(conversation === null && directory !== '' && { cwd: directory }),
      // pi always uses all tools.
      ...(provider !== 'pi' && { auto: isAuto.value }),
    }
    try {
      const response = await prompts.start(request)
      if (text.value === sent) text.value = ''
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
      {children}
      <Queue
        boxPrompts={boxPrompts}
        queued={queued}
        onEdit={(prompt) => {
          text.value = [text.value, prompt].filter((part) => part.trim() !== '').join('\n\n')
          field.current?.focus()
        }}
      />
      <Problem error={error.value} />
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
            void send()
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
            {running !== undefined && <StopButton boxPrompts={boxPrompts} run={running} error={error} />}
            <button type="submit" class="primary" disabled={isBusy.value || text.value.trim() === ''}>
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

type StopButtonProps = { boxPrompts: BoxPrompts; run: Run; error: Signal<BoxwoodError | null> }

function StopButton({ boxPrompts: { prompts, feed }, run, error }: StopButtonProps) {
  const isBusy = useSignal(false)
  async function stop() {
    isBusy.value = true
    error.value = null
    try {
      await prompts.interrupt(run.id)
      await feed.refresh()
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    } finally {
      isBusy.value = false
    }
  }
  return (
    <button
      type="button"
      disabled={isBusy.value}
      aria-label={`Stop ${getAgentLabel(run.provider)}`}
      onClick={() => void stop()}
    >
      <Icon of={SquareIcon} size={14} />
      {isBusy.value ? 'Stopping' : 'Stop'}
    </button>
  )
}
