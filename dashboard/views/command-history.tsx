// The list of the commands of a box, newest first, with the form that starts one.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import type { CommandQuery } from '../api/client.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { formatAge } from '../data/age.ts'
import {
  appendOlder,
  filterCommands,
  formatDuration,
  formatStarter,
  listTexts,
  mergeNewest,
} from '../data/command-list.ts'
import { getClient, getCoordinatorTime, losses, now } from '../data/live.ts'
import { quoteShell } from '../data/quote-shell.ts'
import { formatCommandPath, getBoxKey } from '../data/routes.ts'
import { startCommand } from '../data/start-command.ts'
import { isVisible } from '../data/visibility.ts'
import { showHidden } from '../data/visible-text.ts'
import { EmptyState } from '../design/empty-state.tsx'
import { Icon } from '../design/icon.tsx'
import { PromptIcon, TerminalIcon } from '../design/icons.ts'
import { Skeleton } from '../design/skeleton.tsx'
import { Age } from './age.tsx'
import { Commands } from './command.tsx'
import { Problem } from './problem.tsx'
import { Result } from './result.tsx'
import { SearchField } from './search-field.tsx'
import { useAction } from './use-action.ts'
import { useViewer } from './use-member-names.ts'

const POLL_MS = 5_000
const PAGE_SIZE = 50
const MAX_PAGE_SIZE = 200
/** The table shows the start of a command; its page shows the whole text. */
const SHOWN_CHARACTERS = 200

const STATUSES = ['running', 'exited', 'killed', 'timed_out', 'failed', 'lost'] as const

export function CommandHistory({ box }: { box: Box }) {
  const { id } = box
  const boxKey = getBoxKey(box)
  const commands = useSignal<readonly CommandRecord[] | null>(null)
  const before = useSignal<string | null>(null)
  const loadedAt = useSignal(0)
  const error = useSignal<BoxwoodError | null>(null)
  const status = useSignal<'' | (typeof STATUSES)[number]>('')
  const filter = useSignal('')
  const loadedStatus = useRef<string | null>(null)
  const generation = useRef(0)

  function createQuery(fields: CommandQuery): CommandQuery {
    return { ...fields, ...(status.value !== '' && { status: status.value }) }
  }
  async function loadNewest(isFirst: boolean): Promise<void> {
    if (isFirst) generation.current += 1
    const current = generation.current
    const loaded = isFirst ? [] : (commands.value ?? [])
    const limit = Math.min(MAX_PAGE_SIZE, Math.max(PAGE_SIZE, loaded.length))
    try {
      const page = await getClient().listCommands(id, createQuery({ limit }))
      if (current !== generation.current) return
      const merged = mergeNewest(loaded, page)
      if (merged.length <= page.commands.length) before.value = page.nextBefore
      commands.value = merged
      loadedAt.value = getCoordinatorTime()
      error.value = null
    } catch (reason) {
      if (current === generation.current) error.value = toBoxwoodError(reason)
    }
  }
  async function loadOlder(): Promise<void> {
    if (before.value === null) return
    const current = generation.current
    try {
      const page = await getClient().listCommands(id, createQuery({ limit: PAGE_SIZE, before: before.value }))
      if (current !== generation.current) return
      commands.value = appendOlder(commands.value ?? [], page.commands)
      before.value = page.nextBefore
    } catch (reason) {
      if (current === generation.current) error.value = toBoxwoodError(reason)
    }
  }

  const shownStatus = status.value
  const visible = isVisible.value
  const isRunning = box.observedState === 'running'
  // A box that does not run starts no command: its history changes only with its state.
  useEffect(() => {
    if (!visible) return
    void loadNewest(loadedStatus.current !== shownStatus)
    loadedStatus.current = shownStatus
    const timer = isRunning ? setInterval(() => void loadNewest(false), POLL_MS) : undefined
    return () => clearInterval(timer)
  }, [shownStatus, visible, isRunning, losses.value])

  const shown = commands.value === null ? [] : filterCommands(commands.value, filter.value)
  return (
    <>
      <RunForm box={box} texts={listTexts(commands.value ?? [])} />
      <div class="tools">
        <SearchField label="Filter" value={filter} />
        <label>
          <span class="visually-hidden">Status</span>
          <select
            value={status}
            onChange={({ currentTarget }) => {
              status.value = currentTarget.value as typeof status.value
            }}
          >
            <option value="">All results</option>
            {STATUSES.map((value) => (
              <option key={value} value={value}>
                {value.replaceAll('_', ' ')}
              </option>
            ))}
          </select>
        </label>
        <Commands
          texts={[`box history ${boxKey}${status.value === '' ? '' : ` --status ${status.value}`}`]}
        />
      </div>
      <Problem error={error.value} />
      {error.value !== null && commands.value !== null && (
        <p>What is shown is {formatAge(now.value - loadedAt.value)} old.</p>
      )}
      {commands.value === null ? (
        error.value === null && <Skeleton label="Loading the commands." rows={8} />
      ) : commands.value.length === 0 && shownStatus === '' ? (
        <EmptyState icon={TerminalIcon} title="No command has run">
          What you, a coding agent or a program runs in this box is listed here, with its output and its
          result, also while the box is suspended.
        </EmptyState>
      ) : shown.length === 0 ? (
        <p>No loaded command matches.</p>
      ) : (
        <CommandTable commands={shown} boxKey={boxKey} />
      )}
      {before.value !== null && commands.value !== null && (
        <p>
          The newest {commands.value.length} commands are loaded. Older ones are not shown, and the filter
          does not search them.{' '}
          <button type="button" onClick={loadOlder}>
            Load older commands
          </button>
        </p>
      )}
    </>
  )
}

function RunForm({ box, texts }: { box: Box; texts: readonly string[] }) {
  const text = useSignal('')
  /** The position in the history; -1: what was typed. */
  const position = useRef(-1)
  const typed = useRef('')
  const { isBusy, error, run } = useAction()
  function recall(event: KeyboardEvent) {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key]
    if (by === undefined) return
    const next = position.current + by
    if (next < -1 || next >= texts.length) return
    event.preventDefault()
    if (position.current === -1) typed.current = text.value
    position.current = next
    text.value = next === -1 ? typed.current : (texts[next] ?? '')
  }
  if (box.desiredState === 'terminated') return null
  const isEmpty = text.value.trim() === ''
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!isEmpty) void run(() => startCommand(box, { command: text.value }))
      }}
    >
      <div class="run-bar">
        <Icon of={PromptIcon} />
        <input
          aria-label="Command"
          placeholder="Run a command, such as ls -la. The arrow keys recall earlier ones"
          value={text}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onKeyDown={recall}
          onInput={({ currentTarget }) => {
            position.current = -1
            text.value = currentTarget.value
          }}
        />
        {!isEmpty && <Commands texts={[`box exec -d ${box.hostname} -- ${quoteShell(text.value)}`]} />}
        <button type="submit" class="primary" disabled={isEmpty} aria-busy={isBusy.value}>
          Run
        </button>
      </div>
      <p role="status" class="visually-hidden">
        {isBusy.value && 'The command is being started.'}
      </p>
      {box.observedState === 'suspended' && (
        <p>
          <small>The box is suspended. A command wakes it.</small>
        </p>
      )}
      <Problem error={error.value} />
    </form>
  )
}

function CommandTable({ commands, boxKey }: { commands: readonly CommandRecord[]; boxKey: string }) {
  const viewer = useViewer()
  return (
    <table class="command-table">
      <thead>
        <tr>
          <th scope="col">Command</th>
          <th scope="col">Result</th>
          <th scope="col">Duration</th>
          <th scope="col">Started</th>
          <th scope="col">By</th>
        </tr>
      </thead>
      <tbody>
        {commands.map((command) => (
          <tr key={command.id}>
            <th scope="row">
              <a class="code" href={formatCommandPath(boxKey, command.id)}>
                {formatText(command)}
              </a>
            </th>
            <td data-label="Result">
              <Result command={command} />
            </td>
            <td data-label="Duration">{formatDuration(command, now.value)}</td>
            <td data-label="Started">
              <Age at={command.startedAt} />
            </td>
            <td data-label="By">{showHidden(formatStarter(command, viewer))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function formatText({ command }: CommandRecord): string {
  if (command === null) return 'not recorded'
  const start = showHidden(command.slice(0, SHOWN_CHARACTERS))
  return command.length > SHOWN_CHARACTERS ? `${start}…` : start
}
