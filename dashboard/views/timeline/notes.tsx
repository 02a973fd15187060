// What the timeline does not show, and why.
import { useSignal } from '@preact/signals'
import type { Box } from '../../../shared/api/boxes.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { KIND_LABELS } from '../../data/timeline/items.ts'
import type { Range } from '../../data/timeline/range.ts'
import type { Rows } from '../../data/timeline/rows.ts'
import { LISTED_PROMPTS } from '../../data/timeline/sources.ts'
import { showHidden } from '../../data/visible-text.ts'
import type { TimelineData } from './use-data.ts'

/** The coordinator stores as many state changes of a box (LIMITS.boxEvents). */
const STORED_EVENTS = 50

export type NotesProps = { box: Box; range: Range; layout: Rows; data: TimelineData }

export function Notes({ box, range, layout, data }: NotesProps) {
  const { charts, commands, sources, earlierRuns, requests } = data
  const oldest = sources.events.at(-1)
  const startOfEvents =
    oldest && sources.events.length >= STORED_EVENTS && Date.parse(oldest.at) > range.from ? oldest.at : null
  return (
    <div class="notes">
      {charts === null && data.errors.length === 0 && <p>Loading the samples.</p>}
      {charts?.charts.length === 0 && (
        <p>There are no samples in this range. A box takes one every 30 seconds while it runs.</p>
      )}
      {charts !== null && charts.missing.length > 0 && (
        <p>Not measured for this box: {charts.missing.map(showHidden).join(', ')}.</p>
      )}
      {layout.rows
        .filter(({ lanes }) => lanes.hidden > 0)
        .map(({ kind, lanes }) => (
          <p key={kind}>
            {KIND_LABELS[kind]} without a bar, for lack of space: {lanes.hidden}. Zoom in, or use the list.
          </p>
        ))}
      {commands !== null && commands.next !== null && (
        <p>
          {commands.commands.length} commands of this range are loaded, and earlier ones are not shown.{' '}
          <LoadButton label="Load earlier commands" load={data.earlierCommands.load} />
        </p>
      )}
      {startOfEvents !== null && (
        <p>
          State changes before {formatLocalTime(Date.parse(startOfEvents))} are not stored
          {requests === null ? (
            '.'
          ) : (
            <>
              {requests.pages === null
                ? '. The audit log has the requests that have caused them. '
                : '. The requests before are from the audit log, which does not have the end of a state. '}
              {requests.pages?.next !== null && (
                <LoadButton label="Load earlier requests from the audit log" load={requests.load} />
              )}
            </>
          )}
        </p>
      )}
      {data.lacksRuns && earlierRuns.pages === null && (
        <p>
          The newest prompts are loaded, and earlier ones of this range are not shown.{' '}
          <LoadButton label="Load earlier prompts" load={earlierRuns.load} />
        </p>
      )}
      {data.lacksRuns && earlierRuns.pages?.isComplete === false && (
        <p>
          The box lists the newest {LISTED_PROMPTS} prompts of a conversation and its newest {LISTED_PROMPTS}{' '}
          conversations. Earlier prompts are not shown.
        </p>
      )}
      {box.observedState !== 'running' && <p>Prompts are stored on the box, and are shown while it runs.</p>}
    </div>
  )
}

function LoadButton({ label, load }: { label: string; load(): Promise<void> }) {
  const isBusy = useSignal(false)
  async function run() {
    if (isBusy.value) return
    isBusy.value = true
    await load()
    isBusy.value = false
  }
  return (
    <button type="button" aria-busy={isBusy.value} onClick={run}>
      {label}
    </button>
  )
}
