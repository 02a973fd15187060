// The view of the timeline and the URL: a change is shown at once, and is loaded and written to the URL when it has settled.
import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Box } from '../../../shared/api/boxes.ts'
import { getCoordinatorTime, now } from '../../data/live.ts'
import { query, replaceQuery } from '../../data/navigation.ts'
import { advance, formatView, parseView, type Range, type TimelineView } from '../../data/timeline/range.ts'

/** Browsers limit how often a page changes its URL. */
const SETTLE_MS = 250
/** The length of a sample. */
const REFRESH_MS = 30_000

export type TimelineControl = {
  view: ReadonlySignal<TimelineView>
  /** The range that is loaded. */
  loaded: ReadonlySignal<Range>
  change(next: TimelineView): void
}

/** A live range is loaded again when the state of the box changes. */
export function useTimelineView({ observedState, createdAt }: Box): TimelineControl {
  const parse = () =>
    parseView(query.value, getCoordinatorTime(), getCoordinatorTime() - Date.parse(createdAt))
  const view = useSignal(parse())
  const loaded = useSignal(view.value.range)
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)

  function cancel(): void {
    if (timer.current !== null) clearTimeout(timer.current)
    timer.current = null
  }

  function load(range: Range): void {
    const { from, to } = loaded.peek()
    if (from !== range.from || to !== range.to) loaded.value = range
  }

  function change(next: TimelineView): void {
    view.value = next
    cancel()
    timer.current = setTimeout(() => {
      timer.current = null
      load(view.value.range)
      replaceQuery(formatView(view.value))
    }, SETTLE_MS)
  }

  // A timer of this page must not write to the URL of the next one.
  useEffect(() => cancel, [])

  useEffect(() => {
    const shown = `?${new URLSearchParams(formatView(view.peek()))}`
    if (timer.current !== null || query.value === shown) return
    view.value = parse()
    load(view.value.range)
  }, [query.value])

  useEffect(() => {
    if (view.peek().isLive) load(advance(view.peek(), getCoordinatorTime()).range)
  }, [observedState])

  useEffect(() => {
    if (!view.peek().isLive || timer.current !== null) return
    view.value = advance(view.peek(), now.value)
    const isDue = view.value.range.to - loaded.peek().to >= REFRESH_MS
    if (isDue && document.visibilityState === 'visible') load(view.value.range)
  }, [now.value])

  return { view, loaded, change }
}
