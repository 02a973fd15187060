// What is selected in the timeline, beside it: an item with its details, and the processes and listening ports of a moment.
import { useSignal } from '@preact/signals'
import type { Box } from '../../../shared/api/boxes.ts'
import type { ProcsAt } from '../../../shared/api/process-snapshots.ts'
import { formatCount } from '../../data/format-count.ts'
import { getClient } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { loadOutputEnds } from '../../data/output-end.ts'
import { OutputLines } from '../../data/output-lines.ts'
import { formatBytes } from '../../data/sizes.ts'
import type { TimelineItem } from '../../data/timeline/items.ts'
import { showHidden } from '../../data/visible-text.ts'
import { IconButton } from '../../design/icon-button.tsx'
import { CloseIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Commands } from '../command.tsx'
import { useLoaded } from '../loaded.tsx'
import { LineRow } from '../output-view.tsx'
import { Problem } from '../problem.tsx'
import { ShowMore } from '../show-more.tsx'
import { ItemDetails } from './item-list.tsx'

const SHOWN = 12
/** Of the end of each stream of a command. */
const OUTPUT_LINES = 12

export type SelectionProps = {
  box: Box
  at: number
  /** Null: a moment without an item. */
  item: TimelineItem | null
  onClose(): void
}

export function Selection({ box, at, item, onClose }: SelectionProps) {
  const { value, error } = useLoaded(async () => ({ at, ...(await load(box.id, at)) }), [box.id, at])
  // The value of another moment is not shown as that of this one.
  const isCurrent = value?.at === at
  return (
    <aside class="card selection" aria-label="Selection">
      <div class="card-head">
        <strong>{formatLocalTime(item?.from ?? at)}</strong>
        <IconButton icon={CloseIcon} label="Close" onClick={onClose} />
      </div>
      {item !== null && (
        <>
          <h2 class="selected-title">{showHidden(item.title)}</h2>
          <ItemDetails item={item} />
          {item.kind === 'command' && <OutputEnd key={item.id} box={box} id={item.id} />}
        </>
      )}
      <div class="card-head">
        <h2 id="moment">Processes at {formatLocalTime(at)}</h2>
        <Commands texts={[`box ps-at ${box.hostname} ${new Date(at).toISOString()}`]} />
      </div>
      <section aria-labelledby="moment">
        {error?.code === 'not_found' ? (
          <p>No processes were recorded within five minutes of this moment.</p>
        ) : (
          <Problem error={error} />
        )}
        {isCurrent ? (
          <Snapshot snapshot={value.snapshot} />
        ) : (
          error === null && <Skeleton label="Loading the processes." rows={6} />
        )}
      </section>
    </aside>
  )
}

const load = async (id: string, at: number) => ({ snapshot: await getClient().loadProcessesAt(id, at) })

/** The last bytes of what the command has printed. */
function OutputEnd({ box, id }: { box: Box; id: string }) {
  const { value } = useLoaded(() => loadOutput(box.id, id), [box.id, id])
  return (
    <>
      {value?.map(({ stream, lines, isWhole }) => (
        <div key={stream} class={`output output-end ${stream}`}>
          {!isWhole && '…'}
          {lines.map((line) => (
            <LineRow key={line.number} line={line} length={line.length} isMatch={false} />
          ))}
        </div>
      ))}
    </>
  )
}

async function loadOutput(boxId: string, id: string) {
  const { command } = await getClient().loadCommand(boxId, id)
  return (await loadOutputEnds(getClient(), boxId, command)).map(({ stream, text, isWhole }) => {
    const output = new OutputLines()
    output.push(text)
    output.end()
    const lines = output.lines.slice(-OUTPUT_LINES)
    return { stream, isWhole: isWhole && lines.length === output.lines.length, lines }
  })
}

function Snapshot({ snapshot }: { snapshot: ProcsAt }) {
  const isComplete = useSignal(false)
  const { procs, ports, total } = snapshot
  const sorted = [...procs].sort((a, b) => b.cpuPct - a.cpuPct || b.memBytes - a.memBytes)
  const shown = isComplete.value ? sorted : sorted.slice(0, SHOWN)
  return (
    <>
      <p>
        <small>
          {formatCount(total, 'process', 'processes')}, as measured at{' '}
          {formatLocalTime(Date.parse(snapshot.at))}
        </small>
      </p>
      <table class="compact">
        <thead>
          <tr>
            <th scope="col">Command</th>
            <th scope="col">CPU</th>
            <th scope="col">Memory</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ pid, user, name, command, cpuPct, memBytes }) => (
            <tr key={pid}>
              <th scope="row">
                {showHidden(command || name)}{' '}
                <small>
                  {pid} · {showHidden(user)}
                </small>
              </th>
              <td data-label="CPU">{cpuPct} %</td>
              <td data-label="Memory">{formatBytes(memBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <ShowMore
        shown={shown.length}
        loaded={sorted.length}
        total={total}
        onShow={() => {
          isComplete.value = true
        }}
      />
      <h3>Listening ports</h3>
      {ports.length === 0 ? (
        <p>No process listened on a TCP port.</p>
      ) : (
        <ul class="lines">
          {ports.map(({ port, process, pid }) => (
            <li key={`${port} ${pid}`}>
              <span>
                {port} {process !== null && showHidden(process)}
                {pid !== null && ` (${pid})`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
