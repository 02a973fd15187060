// Values that the agent keeps across restarts, in one small JSON file that is replaced atomically.
import { join } from 'node:path'
import { Low } from 'lowdb'
import { JSONFile } from 'lowdb/node'
import type { Logger } from 'pino'
import * as z from 'zod'
import { newUuid } from '../shared/ids.ts'

const schema = z.object({
  /** Identifies the report spool. A new epoch starts when reports or this file were lost or damaged. */
  epoch: z.string().min(1).max(64),
  /** At least the reports up to this number are acknowledged. Sequence numbers never fall below it. */
  ackedSeq: z.int().min(0),
})
export type AgentState = z.infer<typeof schema>

export type StateFile = {
  /** Whether there was no valid file. */
  readonly isNew: boolean
  readonly data: Readonly<AgentState>
  update(change: Partial<AgentState>): Promise<void>
}

/** Opens `<stateDir>/state.json`. A missing or invalid file is replaced by a new state with a new epoch. */
export async function openState(stateDir: string, log: Logger): Promise<StateFile> {
  const path = join(stateDir, 'state.json')
  const db = new Low<unknown>(new JSONFile(path), null)
  try {
    await db.read()
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    log.error({ err: error, path }, 'state file is not valid JSON; starting a new epoch')
  }
  const parsed = schema.safeParse(db.data)
  let data = parsed.success ? parsed.data : { epoch: newUuid(), ackedSeq: 0 }
  const write = async () => {
    db.data = data
    await db.write()
  }
  if (!parsed.success) await write()
  return {
    isNew: !parsed.success,
    get data() {
      return data
    },
    update(change) {
      data = { ...data, ...change }
      return write()
    },
  }
}
