// The range and the moment as controls, the keys, and the commands that print the same.
import type { Box } from '../../../shared/api/boxes.ts'
import { getCoordinatorTime } from '../../data/live.ts'
import { formatLocalTime, formatZone } from '../../data/local-time.ts'
import {
  getSpan,
  MAX_SPAN_MS,
  PRESETS,
  pan,
  type Range,
  selectLast,
  selectMoment,
  type TimelineView,
  zoom,
} from '../../data/timeline/range.ts'
import { Command } from '../command.tsx'
import { PAN_SHARE, ZOOM_STEP } from './surface.tsx'

export type ControlsProps = { view: TimelineView; change(next: TimelineView): void }

export function Controls({ view, change }: ControlsProps) {
  const { range, isLive, at } = view
  const span = getSpan(range)
  const center = (range.from + range.to) / 2
  const run = (create: (time: number) => TimelineView) => () => change(create(getCoordinatorTime()))
  const button = (label: string, create: (time: number) => TimelineView) => (
    <button type="button" onClick={run(create)}>
      {label}
    </button>
  )
  return (
    <>
      <p class="tools">
        {PRESETS.map(({ label, ms }) => (
          <button
            key={ms}
            type="button"
            aria-pressed={isLive && Math.abs(span - ms) < 1000}
            onClick={run((time) => selectLast(ms, time, at))}
          >
            {label}
          </button>
        ))}
        {button('Earlier', (time) => pan(view, -span * PAN_SHARE, time))}
        {button('Later', (time) => pan(view, span * PAN_SHARE, time))}
        {button('Zoom in', (time) => zoom(view, 1 / ZOOM_STEP, center, time))}
        {button('Zoom out', (time) => zoom(view, ZOOM_STEP, center, time))}
        <label>
          Moment{' '}
          <input
            type="datetime-local"
            step="1"
            min={toInput(getCoordinatorTime() - MAX_SPAN_MS)}
            max={toInput(getCoordinatorTime())}
            value={at === null ? '' : toInput(at)}
            onChange={({ currentTarget }) => {
              const moment = Date.parse(currentTarget.value)
              // While a date is typed, its first digits are another date.
              if (currentTarget.validity.valid && !Number.isNaN(moment))
                change(selectMoment(view, moment, getCoordinatorTime()))
            }}
          />
        </label>
      </p>
      <p>
        {formatLocalTime(range.from)} to {formatLocalTime(range.to)} ({formatZone(range.to)})
        {isLive && ', live'}
      </p>
    </>
  )
}

export function Hints({ box, range }: { box: Box; range: Range }) {
  return (
    <>
      <p>
        <small id="timeline-keys">
          Drag or use the arrow keys to move, + and - to zoom, a click or Shift and the arrow keys to select a
          moment, Escape to clear it, End for the current time. The wheel zooms with Ctrl, or after a click.
        </small>
      </p>
      <p class="tools">
        <Command
          text={`box metrics ${box.hostname} --from ${formatUtc(range.from)} --to ${formatUtc(range.to)}`}
        />
        <Command text={`box events ${box.hostname}`} />
        <Command text={`box history ${box.hostname}`} />
      </p>
    </>
  )
}

const toInput = (ms: number): string => formatLocalTime(ms).replace(' ', 'T')

const formatUtc = (ms: number): string =>
  new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000', '')
