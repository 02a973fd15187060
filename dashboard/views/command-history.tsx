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
  formatActor,
  formatDuration,
  formatResult,
  mergeNewest,
} from '../data/command-list.ts'
import { getClient, getCoordinatorTime, losses, now, session } from '../data/live.ts'
import { quoteShell } from '../data/quote-shell.ts'
import { formatCommandPath, getBoxKey } from '../data/routes.ts'
import { startCommand } from '../data/start-command.ts'
import { isVisible } from '../data/visibility.ts'
import { showHidden } from '../data/visible-text.ts'
import { Command } from './command.tsx'
import { Problem } from './problem.tsx'
import { SearchField } from './search-field.tsx'

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
      <RunForm box={box} />
      <h2>History</h2>
      <p class="tools">
        <SearchField label="Filter" value={filter} />
        <label>
          Status{' '}
          <select
            value={status}
            onChange={({ currentTarget }) => {
              status.value = currentTarget.value as typeof status.value
            }}
          >
            <option value="">All</option>
            {STATUSES.map((value) => (
              <option key={value} value={value}>
                {value.replaceAll('_', ' ')}
              </option>
            ))}
          </select>
        </label>
        <Command text={`box history ${boxKey}${status.value === '' ? '' : ` --status ${status.value}`}`} />
      </p>
      <Problem error={error.value} />
      {error.value !== null && commands.value !== null && (
        <p>What is shown is {formatAge(now.value - loadedAt.value)} old.</p>
      )}
      {commands.value === null ? (
        error.value === null && <p>Loading the commands.</p>
      ) : shown.length === 0 ? (
        <p>
          {commands.value.length === 0 ? 'There is no command.' : 'No loaded command matches the filter.'}
        </p>
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

function RunForm({ box }: { box: Box }) {
  const text = useSignal('')
  const isBusy = useSignal(false)
  const error = useSignal<BoxwoodError | null>(null)
  async function run(event: Event) {
    event.preventDefault()
    if (isBusy.value || text.value.trim() === '') return
    isBusy.value = true
    error.value = null
    try {
      await startCommand(box, { command: text.value })
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    } finally {
      isBusy.value = false
    }
  }
  if (box.desiredState === 'terminated') return null
  return (
    <form onSubmit={run} class="run">
      <p class="tools">
        <label for="command">Command</label>
        <input
          id="command"
          class="code"
          value={text}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value
          }}
        />
        <button type="submit" class="primary" disabled={text.value.trim() === ''}>
          Run
        </button>
        {text.value.trim() !== '' && (
          <Command text={`box exec -d ${box.hostname} -- ${quoteShell(text.value)}`} />
        )}
      </p>
      <p role="status">{isBusy.value && 'The command is being started.'}</p>
      {box.observedState === 'suspended' && <p>The box is suspended. A command wakes it.</p>}
      <Problem error={error.value} />
    </form>
  )
}

function CommandTable({ commands, boxKey }: { commands: readonly CommandRecord[]; boxKey: string }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Command</th>
          <th scope="col">Result</th>
          <th scope="col">Started by</th>
          <th scope="col">Started</th>
          <th scope="col">Duration</th>
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
              <span
                class={`result ${command.exitCode === 0 || command.status === 'running' ? 'exited' : ''}`}
              >
                {showHidden(formatResult(command))}
              </span>
            </td>
            <td data-label="Started by">{formatActor(command, session.value)}</td>
            <td data-label="Started">
              <time dateTime={command.startedAt}>
                {formatAge(now.value - Date.parse(command.startedAt))} ago
              </time>
            </td>
            <td data-label="Duration">{formatDuration(command, now.value)}</td>
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
