// The processes of a running box, measured every few seconds.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { createError } from '../../../client/http/errors.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import type { ExecResult } from '../../../shared/api/exec.ts'
import type { LiveProcess, LiveProcesses } from '../../../shared/api/live-processes.ts'
import { formatAge } from '../../data/age.ts'
import { getBoxClient } from '../../data/box-clients.ts'
import { formatCount } from '../../data/format-count.ts'
import { now } from '../../data/live.ts'
import {
  formatKill,
  getText,
  isSameProcess,
  KILL_SIGNALS,
  type KillSignal,
  PROCESS_SORTS,
  type ProcessSort,
  sortProcesses,
} from '../../data/processes.ts'
import { formatBytes } from '../../data/sizes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { focusHeading } from '../focus-heading.ts'
import { FormDialog } from '../form-dialog.tsx'
import { useLoaded } from '../loaded.tsx'
import { Problem } from '../problem.tsx'

const POLL_MS = 3_000
/** A measurement that is older is shown with its age. */
const OLD_MS = 10_000
const SHOWN = 100
const TITLE_CHARS = 200
/** These run the box: a signal to them interrupts it. */
const ROLES = { init: 'starts the box', agent: 'the agent of the box' } as const

export function ProcessTable({ box }: { box: Box }) {
  const client = getBoxClient(box.id)
  const load = () => client.send<LiveProcesses>('GET', 'processes')
  const { value, error, at, reload } = useLoaded(load, [box.id], POLL_MS)
  const sort = useSignal<ProcessSort>('cpu')
  const isComplete = useSignal(false)
  const killed = useSignal<LiveProcess | null>(null)
  const message = useSignal('')
  const table = useRef<HTMLTableElement>(null)
  const focused = useRef<Element | null>(null)
  useLayoutEffect(() => {
    // The process of the button that had the focus has exited.
    if (focused.current?.isConnected === false && document.activeElement === document.body) focusHeading()
  })
  if (value === null)
    return (
      <>
        <Problem error={error} />
        {error === null && <p>Loading the processes.</p>}
      </>
    )
  const sorted = sortProcesses(value.processes, sort.value)
  const shown = isComplete.value ? sorted : sorted.slice(0, SHOWN)
  const age = now.value - at

  async function kill(process: LiveProcess, signal: KillSignal): Promise<void> {
    const current = (await load()).processes.find(({ pid }) => pid === process.pid)
    if (!isSameProcess(process, current))
      throw createError({ code: 'not_found', message: `The process ${process.pid} has exited.`, status: 0 })
    const command = formatKill(process.pid, signal)
    const result = await client.send<ExecResult>('POST', 'exec', { body: { command } })
    if (result.exitCode !== 0)
      throw createError({
        code: 'kill_failed',
        message: result.stderr.trim() || `${command} has failed.`,
        status: 0,
      })
    message.value = `SIG${signal} was sent to the process ${process.pid}.`
    // The row with the button is removed. The user may have closed the dialog.
    if (killed.value === process) requestAnimationFrame(focusHeading)
    void reload()
  }

  return (
    <>
      <p>
        CPU {value.cpuPct === null ? '–' : `${value.cpuPct.toFixed(1)} %`} of {value.cpuCount ?? 'unknown'}{' '}
        CPUs, memory {value.memUsedBytes === null ? '–' : formatBytes(value.memUsedBytes)}
        {value.memTotalBytes !== null && ` of ${formatBytes(value.memTotalBytes)}`}.{' '}
        {formatCount(value.total, 'process', 'processes')}
        {age > OLD_MS && `, measured ${formatAge(age)} ago`}.
      </p>
      <p role="status">{message}</p>
      <Problem error={error} />
      <table
        ref={table}
        class="processes"
        onFocusCapture={({ target }) => {
          focused.current = target as Element
        }}
      >
        <thead>
          <tr>
            <SortHeader sort={sort} name="command" />
            <SortHeader sort={sort} name="pid" />
            <th scope="col">User</th>
            <th scope="col">State</th>
            <SortHeader sort={sort} name="cpu" />
            <SortHeader sort={sort} name="memory" />
            <th scope="col">Action</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((process) => (
            <tr key={`${process.pid} ${process.startedAt}`}>
              <th scope="row">
                {formatTitle(process)}
                {process.role && <small> {ROLES[process.role]}</small>}
              </th>
              <td data-label="PID">{process.pid}</td>
              <td data-label="User">{showHidden(process.user)}</td>
              <td data-label="State">{process.state}</td>
              <td data-label="CPU">{process.cpuPct.toFixed(1)} %</td>
              <td data-label="Memory">{formatBytes(process.memBytes)}</td>
              <td>
                {!process.role && (
                  <button
                    type="button"
                    aria-label={`Kill ${process.pid}`}
                    onClick={() => {
                      killed.value = process
                    }}
                  >
                    Kill
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < value.total && (
        <p>
          {value.total - shown.length} more are not shown.{' '}
          {shown.length < sorted.length && (
            <button
              type="button"
              onClick={() => {
                isComplete.value = true
              }}
            >
              Show {sorted.length - shown.length} more
            </button>
          )}
        </p>
      )}
      {killed.value !== null && (
        <KillDialog
          box={box}
          process={killed.value}
          kill={kill}
          onClose={() => {
            killed.value = null
          }}
        />
      )}
    </>
  )
}

/** The start of the command line. The dialog shows all of it. */
function formatTitle(process: LiveProcess): string {
  const text = getText(process)
  return text.length > TITLE_CHARS ? `${showHidden(text.slice(0, TITLE_CHARS))}…` : showHidden(text)
}

type SortHeaderProps = { sort: { value: ProcessSort }; name: ProcessSort }

function SortHeader({ sort, name }: SortHeaderProps) {
  const isCurrent = sort.value === name
  const isDescending = name === 'cpu' || name === 'memory'
  return (
    <th scope="col" aria-sort={isCurrent ? (isDescending ? 'descending' : 'ascending') : undefined}>
      <button
        type="button"
        onClick={() => {
          sort.value = name
        }}
      >
        {PROCESS_SORTS[name]}
        {isCurrent && (isDescending ? ' ↓' : ' ↑')}
      </button>
    </th>
  )
}

type KillDialogProps = {
  box: Box
  process: LiveProcess
  kill(process: LiveProcess, signal: KillSignal): Promise<void>
  onClose(): void
}

function KillDialog({ box, process, kill, onClose }: KillDialogProps) {
  const signals = Object.entries(KILL_SIGNALS).map(([value, label]) => ({ value, label }))
  return (
    <FormDialog
      title={`Kill the process ${process.pid}`}
      fields={[{ name: 'signal', label: 'Signal', options: signals, value: 'TERM' }]}
      submitLabel="Send the signal"
      formatCommand={({ signal }) =>
        `box exec ${box.hostname} -- ${formatKill(process.pid, signal as KillSignal)}`
      }
      onClose={onClose}
      submit={({ signal }) => kill(process, signal as KillSignal)}
    >
      <p>
        <code>{showHidden(getText(process))}</code>
      </p>
    </FormDialog>
  )
}
