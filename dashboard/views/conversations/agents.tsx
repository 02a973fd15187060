// The coding agents of a box: which are ready, and buttons that install one and sign in to it.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Box, CodingAgents } from '../../../shared/api/boxes.ts'
import type { Command } from '../../../shared/api/commands.ts'
import type { ExecRequest } from '../../../shared/api/exec.ts'
import type { ExecStarted } from '../../../shared/api/processes.ts'
import type { ProviderName, ProviderReadiness } from '../../../shared/api/prompts.ts'
import { mayUseSecrets } from '../../data/access.ts'
import { getBoxClient } from '../../data/box-clients.ts'
import { CODING_AGENTS, describeReadiness } from '../../data/coding-agents.ts'
import { formatDuration, formatResult } from '../../data/command-list.ts'
import { getClient, now, session } from '../../data/live.ts'
import { loadOutputEnds } from '../../data/output-end.ts'
import { formatBoxPath, formatCommandPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Avatar } from '../../design/avatar.tsx'
import { useLoaded } from '../loaded.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'
import { useDialog } from '../use-dialog.tsx'
import { createSignInDialog } from './sign-in.tsx'

type Reload = () => Promise<void>

/** @param props.agents null: not known */
export function Agents({ box, agents, reload }: { box: Box; agents: CodingAgents | null; reload: Reload }) {
  return (
    <section aria-label="Coding agents">
      <h3>Coding agents</h3>
      <ul class="agents">
        {CODING_AGENTS.map(({ name }) => (
          <AgentCard key={name} box={box} name={name} readiness={agents?.[name]} reload={reload} />
        ))}
      </ul>
    </section>
  )
}

const STATE_CLASSES: Record<ProviderReadiness, string> = {
  ready: 'running',
  not_signed_in: 'suspending',
  not_installed: '',
}

type AgentCardProps = {
  box: Box
  name: ProviderName
  /** Undefined: not known. */
  readiness: ProviderReadiness | undefined
  reload: Reload
}

export function AgentCard({ box, name, readiness, reload }: AgentCardProps) {
  const dialog = useDialog()
  const message = useSignal('')
  const agent = CODING_AGENTS.find((other) => other.name === name)
  if (agent === undefined) return null
  const { label, installCommand } = agent
  const role = session.value?.user.role
  const isInstalled = readiness !== 'not_installed' || installCommand === null
  const signInLabel = readiness === 'ready' ? 'Use another key' : 'Sign in'
  const signIn = () =>
    dialog.load(async () => {
      const { secrets } = await getWorkspaceClient().listSecrets(box.id)
      return createSignInDialog(box, agent, secrets, async () => {
        message.value = 'The key is mounted. The box checks it.'
        await reload()
      })
    })
  return (
    <li class="card agent">
      <p class="agent-name">
        <Avatar name={label} />
        <strong>{label}</strong>
        <span class={`state ${readiness ? STATE_CLASSES[readiness] : ''}`}>
          {describeReadiness(agent, readiness)}
        </span>
      </p>
      {readiness === 'not_installed' && installCommand !== null && (
        <Install box={box} label={label} command={installCommand} reload={reload} />
      )}
      {readiness !== undefined && isInstalled && (
        <>
          <p class="buttons">
            {role !== undefined && mayUseSecrets(role) && (
              <button
                type="button"
                disabled={box.restricted}
                class={readiness === 'ready' ? 'quiet' : ''}
                aria-label={`${signInLabel}: ${label}`}
                onClick={() => void signIn()}
              >
                {signInLabel}
              </button>
            )}
            <small role="status">
              {box.restricted ? 'The box is restricted: it gets no secrets.' : message}
            </small>
          </p>
          {readiness === 'not_signed_in' && <SignInCommand box={box} lines={agent.signIn} />}
          {dialog.problem}
          {dialog.view}
        </>
      )}
    </li>
  )
}

const SignInCommand = ({ box, lines }: { box: Box; lines: readonly string[] }) => (
  <small>
    Or in a <a href={formatBoxPath(box.hostname, 'terminals')}>terminal</a>:{' '}
    {lines.map((line, index) => (
      <>
        {index > 0 && ', then '}
        <code>{line}</code>
      </>
    ))}
  </small>
)

const POLL_MS = 2_000
/** The last commands that may contain the installation. */
const COMMANDS = 50
/** The box reports an installed program after a while. */
const REPORT_MS = 60_000

type Installation = { command: Command; lastLine: string }

/** The newest installation of the history, so that another tab and a page that was loaded again show it too. */
async function loadInstallation(
  boxId: string,
  text: string,
  startedId: string,
): Promise<Installation | null> {
  const { commands } = await getClient().listCommands(boxId, { limit: COMMANDS })
  const command = commands.find(({ id, command }) => id === startedId || command === text)
  if (command === undefined) return null
  const ends = await loadOutputEnds(getClient(), boxId, command)
  const lines = ends.flatMap(({ text }) => text.split('\n')).filter(Boolean)
  return { command, lastLine: lines.at(-1) ?? '' }
}

type InstallProps = { box: Box; label: string; command: string; reload: Reload }

function Install({ box, label, command: text, reload }: InstallProps) {
  const startedId = useSignal('')
  const isRunning = useSignal(false)
  const { isBusy, error, run } = useAction()
  const { value } = useLoaded(
    async () => {
      const installation = await loadInstallation(box.id, text, startedId.value)
      isRunning.value = installation?.command.status === 'running'
      return installation
    },
    [box.id, startedId.value, isRunning.value],
    isRunning.value ? POLL_MS : undefined,
  )
  useEffect(() => {
    if (!isRunning.value) void reload()
  }, [isRunning.value])
  const start = () =>
    run(async () => {
      const body: ExecRequest = { command: text, detached: true }
      const started = await getBoxClient(box.id).send<ExecStarted>('POST', 'exec', { body })
      startedId.value = started.processId
    })
  const isDone =
    value?.command.exitCode === 0 && now.value - Date.parse(value.command.finishedAt ?? '') < REPORT_MS
  return (
    <>
      {!isRunning.value && !isDone && (
        <p class="buttons">
          <button
            type="button"
            aria-label={`Install ${label}`}
            disabled={isBusy.value}
            onClick={() => void start()}
          >
            Install
          </button>
          <code>{text}</code>
        </p>
      )}
      <div role="status">
        {value !== null && (isRunning.value || isDone || value.command.exitCode !== 0) && (
          <p>
            {isRunning.value
              ? `Installing, ${formatDuration(value.command, now.value)}.`
              : isDone
                ? 'Installed. The box checks it.'
                : `The installation has not succeeded: ${showHidden(formatResult(value.command))}.`}{' '}
            <a href={formatCommandPath(box.hostname, value.command.id)}>Show the output</a>
            {value.lastLine !== '' && (
              <>
                <br />
                <small>{showHidden(value.lastLine)}</small>
              </>
            )}
          </p>
        )}
      </div>
      <Problem error={error.value} />
    </>
  )
}
