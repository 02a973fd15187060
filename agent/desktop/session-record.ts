// The record of the running desktop in the state directory: an agent that restarts finds the processes again.

import { rm } from 'node:fs/promises'
import * as z from 'zod'
import { parseJson } from '../../shared/parse-json.ts'
import { replaceFile } from '../durable-file.ts'
import { readStateFile } from '../state-file.ts'

const idSchema = z.string().regex(/^desktop-[0-9a-f-]{36}$/)
const leaderSchema = z.object({
  pid: z.int().min(1),
  /** In ticks since boot. */
  startTime: z.int().min(0),
})

const recordSchema = z.object({
  bootId: z.string(),
  /** The value of BOXWOOD_PROCESS_ID of all processes except the browser. */
  id: idSchema,
  startedAt: z.int(),
  width: z.int(),
  height: z.int(),
  dpi: z.int(),
  /** Whether the mode desktop was started. */
  hasDesktop: z.boolean(),
  /** null: none was started. */
  windowManager: leaderSchema.nullable(),
  /** The X server; null: it is being started. */
  server: leaderSchema.extend({ display: z.string().regex(/^:\d{1,5}$/) }).nullable(),
  /** The process is null while it is being started. `id` is the value of BOXWOOD_PROCESS_ID of its processes. */
  browser: z.object({ id: idSchema, process: leaderSchema.nullable() }).nullable(),
})
export type SessionRecord = z.infer<typeof recordSchema>
export type Leader = z.infer<typeof leaderSchema>

const MAX_RECORD_BYTES = 16 * 1024

export type SessionFile = {
  /** null: there is no valid record of this boot. */
  read(bootId: string): SessionRecord | null
  /** Before a program is started: a killed agent must leave no processes without a record. */
  write(record: SessionRecord): Promise<void>
  remove(): Promise<void>
}

export const openSessionFile = (path: string): SessionFile => ({
  read(bootId) {
    // The user of the box can change the file.
    const parsed = recordSchema.safeParse(parseJson(readStateFile(path, MAX_RECORD_BYTES)))
    return parsed.success && parsed.data.bootId === bootId ? parsed.data : null
  },
  write: (record) => replaceFile(path, JSON.stringify(record)),
  remove: () => rm(path, { recursive: true, force: true }),
})
