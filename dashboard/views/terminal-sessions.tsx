// The list of the terminal sessions of a box, with the form that starts one.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { TerminalSession } from '../../shared/api/terminal.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { formatAge } from '../data/age.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { getCoordinatorTime, losses, now } from '../data/live.ts'
import { formatSessionPath, listSessions, openNewSession } from '../data/terminal-sessions.ts'
import { isVisible } from '../data/visibility.ts'
import { showHidden } from '../data/visible-text.ts'
import { EmptyState } from '../design/empty-state.tsx'
import { TerminalIcon } from '../design/icons.ts'
import { Skeleton } from '../design/skeleton.tsx'
import { Age } from './age.tsx'
import { Commands } from './command.tsx'
import { EndSession } from './end-session.tsx'
import { focusHeading } from './focus-heading.ts'
import { Problem } from './problem.tsx'
import { useAction } from './use-action.ts'

const POLL_MS = 5_000

export function TerminalSessions({ box }: { box: Box }) {
  const { id } = box
  const sessions = useSignal<TerminalSession[] | null>(null)
  const loadedAt = useSignal(0)
  const error = useSignal<BoxwoodError | null>(null)
  const isRunning = box.observedState === 'running'
  const load = () =>
    listSessions(id).then(
      (list) => {
        sessions.value = list
        loadedAt.value = getCoordinatorTime()
        error.value = null
      },
      (reason) => {
        error.value = toBoxwoodError(reason)
      },
    )
  const visible = isVisible.value
  useEffect(() => {
    if (!isRunning) {
      sessions.value = null
      return
    }
    if (!visible) return
    void load()
    const timer = setInterval(() => void load(), POLL_MS)
    return () => clearInterval(timer)
  }, [isRunning, visible, losses.value])
  return (
    <>
      <StartForm box={box} />
      <Problem error={error.value} />
      {error.value !== null && sessions.value !== null && (
        <p>What is shown is {formatAge(now.value - loadedAt.value)} old.</p>
      )}
      {!isRunning ? (
        <p>The box does not run, and has no sessions.</p>
      ) : sessions.value === null ? (
        error.value === null && <Skeleton label="Loading the sessions." rows={3} />
      ) : sessions.value.length === 0 ? (
        <EmptyState icon={TerminalIcon} title="There is no session.">
          A session continues when its page is closed. Everyone who may use this box can attach to it.
        </EmptyState>
      ) : (
        <>
          <SessionTable
            box={box}
            sessions={sessions.value}
            onEnd={() => {
              focusHeading()
              void load()
            }}
          />
          <p>
            <small>
              A session continues when its page is closed. Everyone who may use this box can attach to it.
            </small>
          </p>
        </>
      )}
    </>
  )
}

function StartForm({ box }: { box: Box }) {
  const name = useSignal('')
  const command = useSignal('')
  const { isBusy, error, run } = useAction()
  if (box.desiredState === 'terminated') return null
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void run(() =>
          openNewSession(box, {
            ...(name.value !== '' && { session: name.value }),
            ...(command.value.trim() !== '' && { command: command.value }),
          }),
        )
      }}
    >
      <p class="tools">
        <label>
          Name{' '}
          <input
            value={name}
            placeholder="a number"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={({ currentTarget }) => {
              name.value = currentTarget.value
            }}
          />
        </label>
        <label>
          Program{' '}
          <input
            class="code"
            value={command}
            placeholder="the login shell"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={({ currentTarget }) => {
              command.value = currentTarget.value
            }}
          />
        </label>
        <button type="submit" class="primary">
          Start a session
        </button>
        <Commands
          texts={[
            ...(command.value.trim() === ''
              ? [formatCommandLine('box', 'ssh', box.hostname, name.value && '--session', name.value)]
              : []),
            `box sessions ${box.hostname}`,
          ]}
        />
      </p>
      <p role="status" class="visually-hidden">
        {isBusy.value && 'The session is being started.'}
      </p>
      {box.observedState === 'suspended' && <p>The box is suspended. A session wakes it.</p>}
      <Problem error={error.value} />
    </form>
  )
}

type SessionTableProps = { box: Box; sessions: readonly TerminalSession[]; onEnd(): void }

function SessionTable({ box, sessions, onEnd }: SessionTableProps) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Program</th>
          <th scope="col">Viewers</th>
          <th scope="col">Started</th>
          <th scope="col">Last input or output</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {sessions.map(({ session, command, clients, startedAt, lastActiveAt }) => (
          <tr key={session}>
            <th scope="row">
              <a href={formatSessionPath(box.hostname, session)}>{showHidden(session)}</a>
            </th>
            <td data-label="Program">
              {command === null ? 'the login shell' : <span class="code">{showHidden(command)}</span>}
            </td>
            <td data-label="Viewers">{clients}</td>
            <td data-label="Started">
              <Age at={startedAt} />
            </td>
            <td data-label="Last input or output">
              <Age at={lastActiveAt} />
            </td>
            <td>
              <EndSession box={box} session={session} onEnd={onEnd} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
