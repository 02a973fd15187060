// Queries on the tunnels of all coordinators. A row counts while its coordinator is alive (db/is-alive.ts).
import { sql } from 'kysely'
import { isOwnerAlive } from '../../../db/is-alive.ts'
import type { Db } from '../../../db/open.ts'
import type { Trx } from '../../../db/transaction.ts'

export type TunnelRow = {
  box_id: string
  /** The coordinator that has the tunnel; null: the agent is not connected. */
  lease_owner: string | null
  /** Increases with every claim of the tunnel of this box. */
  generation: number
  /** The process of the agent. */
  instance_id: string
  /** JSON of AgentDescription. */
  agent: string
}

declare module '../../../db/schema.ts' {
  interface Tables {
    tunnels: TunnelRow
  }
}

/**
 * Writes that the tunnel of the box is at `lease_owner`, unless it is at another coordinator that is alive, with another process
 * of an agent. Returns the generation; null: it is there.
 */
export async function claimTunnel(trx: Trx, row: Omit<TunnelRow, 'generation'>): Promise<number | null> {
  const claimed = await trx
    .insertInto('tunnels')
    .values({ ...row, generation: 1 })
    .onConflict((conflict) =>
      conflict
        .column('box_id')
        .doUpdateSet({ ...row, generation: sql<number>`tunnels.generation + 1` })
        .where((eb) =>
          eb.or([
            eb('tunnels.lease_owner', '=', row.lease_owner),
            eb('tunnels.instance_id', '=', row.instance_id),
            eb.not(isOwnerAlive(trx, 'tunnels')),
          ]),
        ),
    )
    .returning('generation')
    .executeTakeFirst()
  return claimed?.generation ?? null
}

/** Writes that the agent is not connected. Returns false when a newer tunnel has been claimed. */
export async function releaseTunnel(
  trx: Trx,
  { box_id, lease_owner, generation }: Pick<TunnelRow, 'box_id' | 'lease_owner' | 'generation'>,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('tunnels')
    .set({ lease_owner: null })
    .where('box_id', '=', box_id)
    .where('lease_owner', '=', lease_owner)
    .where('generation', '=', generation)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** The tunnel of the box, at a coordinator that is alive. */
export const findTunnel = (db: Db, boxId: string): Promise<TunnelRow | undefined> =>
  db
    .selectFrom('tunnels')
    .selectAll()
    .where('box_id', '=', boxId)
    .where(isOwnerAlive(db, 'tunnels'))
    .executeTakeFirst()

/** The tunnels of the coordinators that are alive, except those of one of them. */
export const listTunnels = (db: Db, except: string): Promise<TunnelRow[]> =>
  db
    .selectFrom('tunnels')
    .selectAll()
    .where('lease_owner', '!=', except)
    .where(isOwnerAlive(db, 'tunnels'))
    .execute()

/** The tunnels of this coordinator. */
export const listOwnTunnels = (db: Db, own: string): Promise<Pick<TunnelRow, 'box_id' | 'generation'>[]> =>
  db.selectFrom('tunnels').select(['box_id', 'generation']).where('lease_owner', '=', own).execute()

export const deleteTunnel = (trx: Trx, boxId: string) =>
  trx.deleteFrom('tunnels').where('box_id', '=', boxId).execute()
