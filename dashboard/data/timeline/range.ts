// The range and the moment that the timeline shows: zoom, pan, and the query of the URL. All times are milliseconds since the epoch,
// by the clock of the coordinator.

export type Range = { from: number; to: number }

export type TimelineView = {
  range: Range
  /** The range ends at the current time, and advances with it. */
  isLive: boolean
  /** The moment whose processes are shown; null: none. */
  at: number | null
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
export const MIN_SPAN_MS = MINUTE_MS
/** The coordinator keeps samples and records for 30 days. */
export const MAX_SPAN_MS = 30 * DAY_MS

const PRESETS = [
  { label: 'Last hour', ms: 60 * MINUTE_MS },
  { label: '24 hours', ms: DAY_MS },
  { label: '7 days', ms: 7 * DAY_MS },
  { label: '30 days', ms: MAX_SPAN_MS },
] as const

/** The first view of a younger box begins where the box begins, and has at least this span. */
const MIN_FIRST_SPAN_MS = 5 * MINUTE_MS

/** The ranges that end now, for a box of this age: a longer one than its life shows nothing more. */
export function listPresets(ageMs: number): { label: string; ms: number }[] {
  const shorter = PRESETS.filter(({ ms }, index) => index === 0 || ms < ageMs)
  return ageMs < MAX_SPAN_MS
    ? [...shorter, { label: 'Whole life', ms: getFirstSpan(ageMs, MAX_SPAN_MS) }]
    : shorter
}

/** A little more than the life of the box, so that its first event is beside the border. */
const getFirstSpan = (ageMs: number, max: number): number =>
  Math.min(max, Math.max(MIN_FIRST_SPAN_MS, Math.ceil((ageMs * 1.03) / 1000) * 1000))

const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max)
const clampSpan = (ms: number): number => clamp(ms, MIN_SPAN_MS, MAX_SPAN_MS)
export const getSpan = ({ from, to }: Range): number => to - from

export function selectLast(ms: number, now: number, at: number | null = null): TimelineView {
  return { range: { from: now - clampSpan(ms), to: now }, isLive: true, at }
}

/** The same view at a later time: a live range advances. */
export const advance = (view: TimelineView, now: number): TimelineView =>
  view.isLive ? selectLast(getSpan(view.range), now, view.at) : view

/**
 * @param query such as `?from=…&to=…&at=…` in RFC 3339, or `?last=3600` in seconds. What is not valid is ignored
 * @param ageMs of the box: without a range, the last hour is shown, or the life of a younger box
 */
export function parseView(query: string, now: number, ageMs: number = MAX_SPAN_MS): TimelineView {
  const params = new URLSearchParams(query)
  const at = parseTime(params.get('at'))
  const from = parseTime(params.get('from'))
  const to = parseTime(params.get('to'))
  if (from !== null && to !== null && from < to) {
    const end = Math.max(to, from + MIN_SPAN_MS)
    return { range: { from: Math.max(from, end - MAX_SPAN_MS), to: end }, isLive: false, at }
  }
  const seconds = Number(params.get('last') ?? '')
  return selectLast(seconds > 0 ? seconds * 1000 : getFirstSpan(ageMs, PRESETS[0].ms), now, at)
}

function parseTime(text: string | null): number | null {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? null : ms
}

export const formatView = ({ range, isLive, at }: TimelineView): Record<string, string> => ({
  ...(isLive
    ? { last: String(Math.round(getSpan(range) / 1000)) }
    : { from: formatTime(range.from), to: formatTime(range.to) }),
  ...(at !== null && { at: formatTime(at) }),
})

const formatTime = (ms: number): string => new Date(ms).toISOString()

/** A range that begins at most 30 days ago and ends now at the latest. A range that would end later ends now, and is live. */
function shiftTo(from: number, span: number, { at }: TimelineView, now: number): TimelineView {
  if (from + span >= now) return selectLast(span, now, at)
  const start = Math.max(from, now - MAX_SPAN_MS)
  return { range: { from: start, to: start + span }, isLive: false, at }
}

/**
 * @param factor of the span: less than 1 zooms in
 * @param anchor the time that keeps its position. The end of a live range keeps its position always
 */
export function zoom(view: TimelineView, factor: number, anchor: number, now: number): TimelineView {
  const { range, isLive, at } = view
  const span = clampSpan(getSpan(range) * factor)
  if (isLive) return selectLast(span, now, at)
  const share = (anchor - range.from) / getSpan(range)
  return shiftTo(anchor - share * span, span, view, now)
}

/** @param ms positive: to later times */
export const pan = (view: TimelineView, ms: number, now: number): TimelineView =>
  shiftTo(view.range.from + ms, getSpan(view.range), view, now)

/** The range between two times, in any order. */
export function selectRange({ at }: TimelineView, first: number, second: number, now: number): TimelineView {
  const to = Math.min(now, Math.max(first, second))
  const span = clampSpan(to - Math.min(first, second))
  return { range: { from: to - span, to }, isLive: false, at }
}

/** The range does not advance any more: the URL then shows the same to others. */
export function selectMoment({ range }: TimelineView, at: number, now: number): TimelineView {
  const moment = Math.min(at, now)
  if (moment >= range.from && moment <= range.to) return { range, isLive: false, at: moment }
  // The moment comes to the middle.
  const from = moment - getSpan(range) / 2
  return { range: { from, to: from + getSpan(range) }, isLive: false, at: moment }
}

export const clearMoment = (view: TimelineView): TimelineView => ({ ...view, at: null })

/** The position of a time in a plot of this width, in pixels. */
export const toX = (at: number, { from, to }: Range, width: number): number =>
  ((at - from) / (to - from)) * width

export const toTime = (x: number, { from, to }: Range, width: number): number =>
  width <= 0 ? from : from + (x / width) * (to - from)
