// The range and the moment as controls, the keys, and the commands that print the same.
import type { IconNode } from 'lucide'
import type { Box } from '../../../shared/api/boxes.ts'
import { getCoordinatorTime } from '../../data/live.ts'
import { formatLocalRange, formatLocalTime, formatZone } from '../../data/local-time.ts'
import {
  getSpan,
  listPresets,
  MAX_SPAN_MS,
  pan,
  selectLast,
  selectMoment,
  type TimelineView,
  zoom,
} from '../../data/timeline/range.ts'
import { IconButton } from '../../design/icon-button.tsx'
import { ChevronLeftIcon, ChevronRightIcon, ZoomInIcon, ZoomOutIcon } from '../../design/icons.ts'
import { SegmentedControl } from '../../design/segmented-control.tsx'
import { Commands } from '../command.tsx'
import { PAN_SHARE, ZOOM_STEP } from './surface.tsx'

export type ControlsProps = { box: Box; view: TimelineView; change(next: TimelineView): void }

export function Controls({ box, view, change }: ControlsProps) {
  const { range, isLive, at } = view
  const { hostname } = box
  const span = getSpan(range)
  const center = (range.from + range.to) / 2
  const presets = listPresets(getCoordinatorTime() - Date.parse(box.createdAt))
  const shown = presets.find(({ ms }) => isLive && Math.abs(span - ms) < 1000)
  const button = (icon: IconNode, label: string, create: (time: number) => TimelineView) => (
    <IconButton icon={icon} label={label} onClick={() => change(create(getCoordinatorTime()))} />
  )
  return (
    <div class="tools">
      <SegmentedControl
        label="Range"
        options={presets.map(({ label }) => ({ value: label, label }))}
        value={shown?.label ?? ''}
        onChange={(label) => {
          const { ms } = presets.find((preset) => preset.label === label) ?? { ms: span }
          change(selectLast(ms, getCoordinatorTime(), at))
        }}
      />
      <div class="tool-group">
        {button(ChevronLeftIcon, 'Earlier', (time) => pan(view, -span * PAN_SHARE, time))}
        {button(ChevronRightIcon, 'Later', (time) => pan(view, span * PAN_SHARE, time))}
        {button(ZoomInIcon, 'Zoom in', (time) => zoom(view, 1 / ZOOM_STEP, center, time))}
        {button(ZoomOutIcon, 'Zoom out', (time) => zoom(view, ZOOM_STEP, center, time))}
      </div>
      <label>
        <span class="visually-hidden">Moment</span>
        <input
          type="datetime-local"
          step="1"
          title="A moment, with its processes"
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
      <span class="range">
        {formatLocalRange(range.from, range.to)} <small>{formatZone(range.to)}</small>
        {isLive && <small class="live">live</small>}
      </span>
      <Commands
        texts={[
          `box metrics ${hostname} --from ${formatUtc(range.from)} --to ${formatUtc(range.to)}`,
          `box events ${hostname}`,
          `box history ${hostname}`,
        ]}
      />
    </div>
  )
}

export const Hints = () => (
  <p>
    <small id="timeline-keys">
      Drag to zoom in, click to see the processes of a moment. Keys: the arrows move, + and - zoom, Shift and
      an arrow select a moment, Escape clears it, End returns to now. The wheel zooms with Ctrl, or after a
      click.
    </small>
  </p>
)

const toInput = (ms: number): string => formatLocalTime(ms).replace(' ', 'T')

const formatUtc = (ms: number): string =>
  new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000', '')
