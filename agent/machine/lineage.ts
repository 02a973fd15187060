// The lineage of an enrolled machine: the random ids of its last agent processes. The coordinator knows the newest id with
// which the agent has connected. A copy of the disk continues with other ids, and is refused.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import * as z from 'zod'
import { LINEAGE_ID, LINEAGE_LENGTH } from '../../shared/protocol.ts'
import { writeDurably } from '../durable-file.ts'

export type Lineage = {
  /** Newest first: the id of this process. */
  readonly ids: readonly string[]
  /** The coordinator has accepted the id of this process. Never rejects. */
  recordAccepted(): Promise<void>
}

const idSchema = z.string().regex(LINEAGE_ID)
const schema = z.object({
  ids: z.array(idSchema).max(LINEAGE_LENGTH),
  /** The last id that the coordinator has accepted. It stays in the list, however often the agent starts offline. */
  accepted: idSchema.nullable(),
})
type State = z.infer<typeof schema>

/** Adds the id of this process to `<stateDir>/lineage.json`. It is on disk before the agent connects with it. */
export async function openLineage(stateDir: string, log: Pick<Logger, 'error'>): Promise<Lineage> {
  const path = join(stateDir, 'lineage.json')
  const write = (state: State) => writeDurably(path, `${JSON.stringify(state)}\n`)
  const stored = await readState(path, log)
  let state = addId(stored, randomBytes(8).toString('hex'))
  try {
    await write(state)
  } catch (err) {
    // On a full disk the agent connects with the id of the previous process.
    if (stored.ids.length === 0) throw err
    log.error({ err, path }, 'failed to write the lineage of this machine')
    state = stored
  }
  const { ids } = state
  return {
    ids,
    async recordAccepted() {
      const [newest = null] = ids
      if (state.accepted === newest) return
      state = { ids, accepted: newest }
      await write(state).catch((err: unknown) => log.error({ err, path }, 'failed to write the lineage'))
    },
  }
}

function addId({ ids, accepted }: State, id: string): State {
  const newest = [id, ...ids].slice(0, LINEAGE_LENGTH)
  if (accepted === null || newest.includes(accepted)) return { ids: newest, accepted }
  return { ids: [...newest.slice(0, -1), accepted], accepted }
}

async function readState(path: string, log: Pick<Logger, 'error'>): Promise<State> {
  const empty: State = { ids: [], accepted: null }
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT')
      log.error({ err, path }, 'the lineage of this machine is damaged; starting a new one')
    return empty
  }
}
