// The rows below the charts: one for each kind of items, with as many lanes as the items need.
import type { ItemKind, TimelineItem } from './items.ts'
import { findBar, type Lanes, layOutLanes } from './lanes.ts'
import type { Range } from './range.ts'

export type Row = {
  kind: ItemKind
  lanes: Lanes<TimelineItem>
  top: number
  laneHeight: number
  height: number
}
export type Rows = { rows: Row[]; height: number }

/** Pixels. */
export const AXIS_HEIGHT = 22
const LANE_GAP = 2
const ROW_GAP = 8
const LANES: Record<ItemKind, { height: number; max: number }> = {
  state: { height: 18, max: 1 },
  command: { height: 12, max: 12 },
  prompt: { height: 12, max: 4 },
  snapshot: { height: 12, max: 3 },
}

export type RowOptions = { range: Range; width: number; now: number }

export function layOutRows(items: Record<ItemKind, readonly TimelineItem[]>, options: RowOptions): Rows {
  let top = AXIS_HEIGHT
  const rows = (Object.keys(LANES) as ItemKind[]).map((kind): Row => {
    const { height: laneHeight, max } = LANES[kind]
    // States follow each other: none is hidden behind another one.
    const lanes =
      kind === 'state'
        ? layOutInOneLane(items[kind], options)
        : layOutLanes(items[kind], { ...options, maxLanes: max })
    const height = Math.max(1, lanes.count) * (laneHeight + LANE_GAP)
    const row = { kind, lanes, top, laneHeight, height }
    top += height + ROW_GAP
    return row
  })
  return { rows, height: top }
}

function layOutInOneLane(items: readonly TimelineItem[], options: RowOptions): Lanes<TimelineItem> {
  const layOut = (item: TimelineItem) => layOutLanes([item], { ...options, maxLanes: 1 }).bars
  return { bars: items.flatMap(layOut), count: 1, hidden: 0 }
}

export const getLaneTop = ({ top, laneHeight }: Row, lane: number): number =>
  top + lane * (laneHeight + LANE_GAP)

/** The item at a position of the rows, in pixels. */
export function findItem({ rows }: Rows, x: number, y: number): TimelineItem | null {
  const row = rows.find(({ top, height }) => y >= top && y < top + height)
  if (row === undefined) return null
  const lane = Math.floor((y - row.top) / (row.laneHeight + LANE_GAP))
  return findBar(row.lanes, lane, x)?.item ?? null
}
