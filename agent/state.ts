// The few values the agent remembers across restarts, in one small file that is replaced whole.
import { join } from 'node:path'
import { Low } from 'lowdb'
import { JSONFile } from 'lowdb/node'
import type { Logger } from 'pino'
import { z } from 'zod'
import { newUuid } from '../shared/ids.ts'

const schema = z.object({
  /** Names the spool of reports: a new one when this file was lost. */
  epoch: z.string().min(1).max(64),
  /** Reports up to here are the coordinator's, and perhaps some more; numbering never goes back below. */
  ackedSeq: z.int().min(0),
  /** Of the machine's boot in which the spool was written last. */
  bootId: z.string().max(64).optional(),
})
export type AgentState = z.infer<typeof schema>

export type StateFile = {
  readonly data: Readonly<AgentState>
  update(change: Partial<AgentState>): Promise<void>
}

/** Opens `<folder>/state.json`; one that is missing or cannot be read as ours starts afresh under a new epoch. */
export async function openState(folder: string, log: Logger): Promise<StateFile> {
  const path = join(folder, 'state.json')
  const db = new Low<unknown>(new JSONFile(path), null)
  try {
    await db.read()
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    log.error({ err: error, path }, 'the state file is damaged')
  }
  const found = schema.safeParse(db.data)
  let data = found.success ? found.data : { epoch: newUuid(), ackedSeq: 0 }
  const write = async () => {
    db.data = data
    await db.write()
  }
  if (!found.success) await write()
  return {
    get data() {
      return data
    },
    update(change) {
      data = { ...data, ...change }
      return write()
    },
  }
}
