// The layout of bars that overlap in time: each gets a lane in which no other bar is at the same position.
import { type Range, toX } from './range.ts'

/** `to`: null while it lasts. */
export type Span = { id: string; from: number; to: number | null }
/** `x` and `width` in pixels, limited to the plot. */
export type Bar<Item> = { item: Item; lane: number; x: number; width: number }
/** `hidden`: bars for which there is no lane. */
export type Lanes<Item> = { bars: Bar<Item>[]; count: number; hidden: number }

/** A bar that is shorter is drawn with this width. */
const MIN_WIDTH = 3
const GAP = 1

export type LaneOptions = {
  range: Range
  width: number
  /** The end of what still lasts. */
  now: number
  maxLanes: number
}

/** Spans that start earlier get the upper lanes. */
export function layOutLanes<Item extends Span>(items: readonly Item[], options: LaneOptions): Lanes<Item> {
  const { range, width, now, maxLanes } = options
  const ends: number[] = []
  const bars: Bar<Item>[] = []
  let hidden = 0
  for (const item of items.filter((span) => overlaps(span, range)).sort((a, b) => a.from - b.from)) {
    const x = Math.min(Math.max(0, toX(item.from, range, width)), Math.max(0, width - MIN_WIDTH))
    const end = Math.min(width, toX(item.to ?? now, range, width))
    const bar = { item, x, width: Math.max(MIN_WIDTH, end - x) }
    let lane = ends.findIndex((laneEnd) => laneEnd <= x)
    if (lane === -1 && ends.length < maxLanes) lane = ends.length
    if (lane === -1) {
      hidden += 1
      continue
    }
    ends[lane] = bar.x + bar.width + GAP
    bars.push({ ...bar, lane })
  }
  return { bars, count: ends.length, hidden }
}

export const overlaps = ({ from, to }: Pick<Span, 'from' | 'to'>, range: Range): boolean =>
  from <= range.to && (to === null || to >= range.from)

/** The bar at a position, or within `tolerance` pixels of it. */
export function findBar<Item>(
  { bars }: Lanes<Item>,
  lane: number,
  x: number,
  tolerance = 3,
): Bar<Item> | undefined {
  const getDistance = (bar: Bar<Item>) => Math.max(0, bar.x - x, x - (bar.x + bar.width))
  return bars
    .filter((bar) => bar.lane === lane && getDistance(bar) <= tolerance)
    .sort((a, b) => getDistance(a) - getDistance(b))[0]
}
