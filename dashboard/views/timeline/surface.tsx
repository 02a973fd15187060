// The surface above the charts and lanes: zoom and pan by mouse, wheel, touch and keyboard, and the selection of a moment.
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { getCoordinatorTime } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { PLOT_LEFT, PLOT_RIGHT } from '../../data/timeline/plot.ts'
import {
  clearMoment,
  getSpan,
  MAX_SPAN_MS,
  pan,
  selectLast,
  selectMoment,
  selectRange,
  type TimelineView,
  toTime,
  toX,
  zoom,
} from '../../data/timeline/range.ts'

export const ZOOM_STEP = 2
/** Of the range, for one key. */
export const PAN_SHARE = 0.2
const MOMENT_SHARE = 0.01
const MINUTE_MS = 60_000
/** A pointer that has moved less has selected a moment. */
const CLICK_PIXELS = 4

export type SurfaceProps = {
  view: TimelineView
  plotWidth: number
  /** The time below the pointer; null: it is elsewhere. */
  hoverTime: number | null
  /** What is at the pointer. */
  readout: string | false
  change(next: TimelineView): void
  onHover(position: { clientX: number; clientY: number } | null): void
  onClick(position: { clientX: number; clientY: number }): void
}

/** Where the pointers were when the gesture began, or when their number changed. A mouse selects a range, a finger moves it. */
type Gesture = {
  isMouse: boolean
  view: TimelineView
  points: Map<number, number>
  center: number
  distance: number
  moved: boolean
}

export function Surface(props: SurfaceProps) {
  const { view, plotWidth, hoverTime, readout, change, onHover } = props
  const element = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  latest.current = props
  const gesture = useRef<Gesture | null>(null)
  /** The two ends of the range that the mouse selects. */
  const brush = useSignal<[number, number] | null>(null)

  useEffect(() => {
    const surface = element.current
    // The browser would not wait for a listener that is passive.
    const onWheel = (event: WheelEvent) => zoomByWheel(event, latest.current)
    surface?.addEventListener('wheel', onWheel, { passive: false })
    return () => surface?.removeEventListener('wheel', onWheel)
  }, [])

  /** @param points the pointers that are pressed, by id, with their positions */
  function begin(points: Map<number, number>, moved: boolean, isMouse: boolean): void {
    if (points.size === 0) gesture.current = null
    else gesture.current = { isMouse, view: latest.current.view, points, moved, ...measure(points) }
  }

  function down(event: PointerEvent): void {
    if (event.button !== 0) return
    element.current?.setPointerCapture(event.pointerId)
    const points = new Map(gesture.current?.points)
    begin(points.set(event.pointerId, event.clientX), points.size > 1, event.pointerType === 'mouse')
  }

  function move(event: PointerEvent): void {
    onHover(event)
    const current = gesture.current
    if (current === null || !current.points.has(event.pointerId)) return
    current.points.set(event.pointerId, event.clientX)
    const { center, distance } = measure(current.points)
    if (Math.abs(center - current.center) >= CLICK_PIXELS) current.moved = true
    if (!current.moved) return
    const { range } = current.view
    const left = element.current?.getBoundingClientRect().left ?? 0
    const time = getCoordinatorTime()
    const anchor = toTime(current.center - left, range, plotWidth)
    if (current.isMouse) {
      brush.value = [anchor, toTime(center - left, range, plotWidth)]
      return
    }
    const factor = current.distance > 0 && distance > 0 ? current.distance / distance : 1
    const zoomed = factor === 1 ? current.view : zoom(current.view, factor, anchor, time)
    change(pan(zoomed, ((current.center - center) / plotWidth) * getSpan(zoomed.range), time))
  }

  function up(event: PointerEvent): void {
    const current = gesture.current
    if (current === null || !current.points.has(event.pointerId)) return
    if (!current.moved && event.type === 'pointerup') latest.current.onClick(event)
    const selected = brush.value
    brush.value = null
    if (selected && event.type === 'pointerup')
      change(selectRange(current.view, ...selected, getCoordinatorTime()))
    const points = new Map(current.points)
    points.delete(event.pointerId)
    begin(points, true, current.isMouse)
  }

  const { from, to } = view.range
  const end = Math.max(to, getCoordinatorTime())
  const locate = (at: number) => toX(at, view.range, plotWidth)
  const [left, right] = (brush.value ?? []).map(locate).sort((a, b) => a - b)
  const cursor = hoverTime === null ? null : locate(hoverTime)
  return (
    <div
      ref={element}
      class="surface"
      role="slider"
      tabIndex={0}
      aria-label="Range of the timeline"
      aria-describedby="timeline-keys"
      aria-valuemin={Math.round(Math.min(from, end - MAX_SPAN_MS) / 1000)}
      aria-valuemax={Math.round(end / 1000)}
      aria-valuenow={Math.round((from + to) / 2000)}
      aria-valuetext={`${formatLocalTime(from)} to ${formatLocalTime(to)}`}
      style={{ left: `${PLOT_LEFT}px`, right: `${PLOT_RIGHT}px` }}
      onPointerDown={down}
      onPointerMove={move}
      onPointerUp={up}
      onPointerCancel={up}
      onPointerLeave={() => onHover(null)}
      onKeyDown={(event) => pressKey(event, view, change)}
    >
      {view.at !== null && view.at >= from && view.at <= to && (
        <div class="moment" style={{ left: `${locate(view.at)}px` }} />
      )}
      {left !== undefined && right !== undefined && (
        <div class="brush" style={{ left: `${left}px`, width: `${right - left}px` }} />
      )}
      {cursor !== null && (
        <>
          <div class="cursor" style={{ left: `${cursor}px` }} />
          <p
            class="readout"
            style={cursor < plotWidth / 2 ? { left: `${cursor}px` } : { right: `${plotWidth - cursor}px` }}
          >
            {readout}
          </p>
        </>
      )}
    </div>
  )
}

function measure(points: ReadonlyMap<number, number>): { center: number; distance: number } {
  const all = [...points.values()]
  const [min, max] = [Math.min(...all), Math.max(...all)]
  return { center: (min + max) / 2, distance: max - min }
}

/** Without Ctrl, the wheel scrolls the page until the surface has the focus. Shift and a horizontal wheel pan. */
function zoomByWheel(event: WheelEvent, { view, plotWidth, change }: SurfaceProps): void {
  const surface = event.currentTarget as HTMLElement
  const time = getCoordinatorTime()
  const isHorizontal = Math.abs(event.deltaX) > Math.abs(event.deltaY)
  if (isHorizontal || event.shiftKey) {
    event.preventDefault()
    const pixels = isHorizontal ? event.deltaX : event.deltaY
    change(pan(view, (pixels / plotWidth) * getSpan(view.range), time))
  } else if (event.ctrlKey || event.metaKey || document.activeElement === surface) {
    event.preventDefault()
    const x = event.clientX - surface.getBoundingClientRect().left
    change(zoom(view, 1.002 ** event.deltaY, toTime(x, view.range, plotWidth), time))
  }
}

function pressKey(event: KeyboardEvent, view: TimelineView, change: SurfaceProps['change']): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const next = applyKey(event.key, event.shiftKey, view)
  if (next === null) return
  event.preventDefault()
  change(next)
}

function applyKey(key: string, isShift: boolean, view: TimelineView): TimelineView | null {
  const { range, at } = view
  const time = getCoordinatorTime()
  const span = getSpan(range)
  const center = (range.from + range.to) / 2
  const anchor = at !== null && at >= range.from && at <= range.to ? at : center
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const sign = key === 'ArrowLeft' ? -1 : 1
    if (!isShift) return pan(view, sign * span * PAN_SHARE, time)
    const step = Math.max(MINUTE_MS, span * MOMENT_SHARE)
    return selectMoment(view, at === null ? center : at + sign * step, time)
  }
  if (key === '+' || key === '=') return zoom(view, 1 / ZOOM_STEP, anchor, time)
  if (key === '-') return zoom(view, ZOOM_STEP, anchor, time)
  if (key === 'End') return selectLast(span, time, at)
  return key === 'Escape' && at !== null ? clearMoment(view) : null
}
