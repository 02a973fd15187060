// The processes and listening ports of the selected moment.

import { useSignal } from '@preact/signals'
import type { Box } from '../../../shared/api/boxes.ts'
import type { ProcsAt } from '../../../shared/api/process-snapshots.ts'
import { formatCount } from '../../data/format-count.ts'
import { getClient } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { formatBytes } from '../../data/sizes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Command } from '../command.tsx'
import { useLoaded } from '../loaded.tsx'
import { Problem } from '../problem.tsx'

const SHOWN = 25

export function Moment({ box, at, onClose }: { box: Box; at: number; onClose(): void }) {
  const { value, error } = useLoaded(async () => ({ at, ...(await load(box.id, at)) }), [box.id, at])
  // The value of another moment is not shown as that of this one.
  const isCurrent = value?.at === at
  return (
    <section aria-labelledby="moment">
      <h2 id="moment">Processes at {formatLocalTime(at)}</h2>
      <p class="tools">
        <Command text={`box ps-at ${box.hostname} ${new Date(at).toISOString()}`} />
        <button type="button" onClick={onClose}>
          Close
        </button>
      </p>
      <Problem error={error} />
      {isCurrent ? <Snapshot snapshot={value.snapshot} /> : error === null && <p>Loading the processes.</p>}
    </section>
  )
}

const load = async (id: string, at: number) => ({ snapshot: await getClient().loadProcessesAt(id, at) })

function Snapshot({ snapshot }: { snapshot: ProcsAt }) {
  const isComplete = useSignal(false)
  const { procs, ports, total } = snapshot
  const sorted = [...procs].sort((a, b) => b.cpuPct - a.cpuPct || b.memBytes - a.memBytes)
  const shown = isComplete.value ? sorted : sorted.slice(0, SHOWN)
  return (
    <>
      <p>
        The snapshot is of {formatLocalTime(Date.parse(snapshot.at))}.{' '}
        {formatCount(total, 'process', 'processes')}.
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Command</th>
            <th scope="col">PID</th>
            <th scope="col">User</th>
            <th scope="col">CPU</th>
            <th scope="col">Memory</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ pid, user, name, command, cpuPct, memBytes }) => (
            <tr key={pid}>
              <th scope="row">{showHidden(command || name)}</th>
              <td data-label="PID">{pid}</td>
              <td data-label="User">{showHidden(user)}</td>
              <td data-label="CPU">{cpuPct} %</td>
              <td data-label="Memory">{formatBytes(memBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < total && (
        <p>
          {total - shown.length} more are not shown.{' '}
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
      <h3>Listening ports</h3>
      {ports.length === 0 ? (
        <p>No process listened on a TCP port.</p>
      ) : (
        <ul>
          {ports.map(({ port, process, pid }) => (
            <li key={`${port} ${pid}`}>
              {port} {process !== null && showHidden(process)}
              {pid !== null && ` (${pid})`}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
