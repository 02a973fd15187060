// Schemas of the messages of GET /feed, a WebSocket on which only the server sends messages.
import * as z from 'zod'
import { boxSchema } from './boxes.ts'
import { queryFlag, timestampSchema } from './common.ts'
import { operationSchema } from './operations.ts'
import { snapshotSchema } from './snapshots.ts'

/** The kinds of items, with their schemas, in the order in which a feed begins. */
const ITEMS = { boxes: boxSchema, snapshots: snapshotSchema, operations: operationSchema } as const
export type FeedKind = keyof typeof ITEMS
export const FEED_KINDS = Object.keys(ITEMS) as FeedKind[]

export const feedQuerySchema = z.object({
  live: queryFlag().optional().meta({ description: '1: leave out deleted boxes' }),
})

const at = timestampSchema.meta({ description: 'the time of the coordinator' })

const itemsSchema = <Kind extends FeedKind>(kind: Kind) =>
  z.object({ type: z.literal('items'), kind: z.literal(kind), items: z.array(ITEMS[kind]) })

const changedSchema = <Kind extends FeedKind>(kind: Kind) =>
  z.object({
    type: z.literal('changed'),
    kind: z.literal(kind),
    items: z.array(ITEMS[kind]).meta({ description: 'new items, and new versions of items' }),
    removed: z.array(z.string()).meta({ description: 'ids of items that are not in the list any more' }),
    at,
  })

export const feedMessageSchema = z
  .union([
    itemsSchema('boxes'),
    itemsSchema('snapshots'),
    itemsSchema('operations'),
    z.object({ type: z.literal('ready'), at }),
    changedSchema('boxes'),
    changedSchema('snapshots'),
    changedSchema('operations'),
    z.object({ type: z.literal('alive'), at }),
  ])
  .meta({ id: 'FeedMessage', description: 'A message of GET /feed' })
export type FeedMessage = z.infer<typeof feedMessageSchema>
