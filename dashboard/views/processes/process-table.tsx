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
  arrangeTree,
  formatKill,
  formatProcessState,
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
import { Meter } from '../../design/meter.tsx'
import { SegmentedControl } from '../../design/segmented-control.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { SortHeader } from '../../design/sort-header.tsx'
import { focusHeading } from '../focus-heading.ts'
import { FormDialog } from '../form-dialog.tsx'
import { useLoaded } from '../loaded.tsx'
import { Problem } from '../problem.tsx'
import { ShowMore } from '../show-more.tsx'

const POLL_MS = 3_000
/** A measurement that is older is shown with its age. */
const OLD_MS = 10_000
const SHOWN = 100
const TITLE_CHARS = 200
const DIRECTIONS: Record<ProcessSort, 'ascending' | 'descending'> = {
  command: 'ascending',
  cpu: 'descending',
  memory: 'descending',
  pid: 'ascending',
}
/** Pixels for each level of the tree, and the deepest level that is shown so. */
const INDENT = 16
const MAX_DEPTH = 8
/** These run the box: a signal to them interrupts it. */
const ROLES = { init: 'starts the box', agent: 'the agent of the box' } as const

export function ProcessTable({ box }: { box: Box }) {
  const client = getBoxClient(box.id)
  const load = () => client.send<LiveProcesses>('GET', 'processes')
  const { value, error, at, reload } = useLoaded(load, [box.id], POLL_MS)
  /** Null: a tree. */
  const sort = useSignal<ProcessSort | null>(null)
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
        {error === null && <Skeleton label="Loading the processes." rows={8} />}
      </>
    )
  const sorted =
    sort.value === null
      ? arrangeTree(value.processes)
      : sortProcesses(value.processes, sort.value).map((process) => ({ process, depth: 0 }))
  const shown = isComplete.value ? sorted : sorted.slice(0, SHOWN)
  const age = now.value - at
  const memory = [value.memUsedBytes, value.memTotalBytes]
    .map((bytes) => (bytes === null ? 'unknown' : formatBytes(bytes)))
    .join(' of ')

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
      <div class="tools">
        <Meter
          label="CPU"
          value={value.cpuPct}
          text={`CPU ${value.cpuPct?.toFixed(1)} % of ${value.cpuCount ?? 'unknown'} CPUs`}
        />
        <Meter label="Memory" value={getShare(value.memUsedBytes, value.memTotalBytes)} text={memory} />
        <span>
          {formatCount(value.total, 'process', 'processes')}
          {age > OLD_MS && `, measured ${formatAge(age)} ago`}
        </span>
        <SegmentedControl
          label="Order"
          options={[
            { value: 'tree', label: 'Tree' },
            { value: 'list', label: 'List' },
          ]}
          value={sort.value === null ? 'tree' : 'list'}
          onChange={(order) => {
            sort.value = order === 'tree' ? null : 'cpu'
          }}
        />
        <span role="status">{message}</span>
      </div>
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
            {(Object.keys(PROCESS_SORTS) as ProcessSort[]).map((name) => (
              <SortHeader
                key={name}
                label={PROCESS_SORTS[name]}
                direction={sort.value === name ? DIRECTIONS[name] : undefined}
                onSort={() => {
                  sort.value = name
                }}
              />
            ))}
            <th scope="col">User</th>
            <th scope="col">State</th>
            <th scope="col">
              <span class="visually-hidden">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ process, depth }) => (
            <tr key={`${process.pid} ${process.startedAt}`} class={process.role ? 'own' : undefined}>
              <th scope="row" style={{ paddingLeft: `${Math.min(depth, MAX_DEPTH) * INDENT}px` }}>
                <span class="clamped" title={formatTitle(process)}>
                  {formatTitle(process)}
                </span>
                {process.role && <small> {ROLES[process.role]}</small>}
              </th>
              <td data-label="CPU">
                <Meter
                  label={`CPU of ${process.pid}`}
                  value={process.cpuPct}
                  text={`${process.cpuPct.toFixed(1)} %`}
                />
              </td>
              <td data-label="Memory">
                <Meter
                  label={`Memory of ${process.pid}`}
                  value={getShare(process.memBytes, value.memTotalBytes) ?? 0}
                  text={formatBytes(process.memBytes)}
                />
              </td>
              <td data-label="PID">{process.pid}</td>
              <td data-label="User">{showHidden(process.user)}</td>
              <td data-label="State">{formatProcessState(process.state)}</td>
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
      <ShowMore
        shown={shown.length}
        loaded={sorted.length}
        total={value.total}
        onShow={() => {
          isComplete.value = true
        }}
      />
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

const getShare = (bytes: number | null, total: number | null): number | null =>
  bytes === null || !total ? null : (bytes / total) * 100

/** The start of the command line. The dialog shows all of it. */
function formatTitle(process: LiveProcess): string {
  const text = getText(process)
  return text.length > TITLE_CHARS ? `${showHidden(text.slice(0, TITLE_CHARS))}…` : showHidden(text)
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
