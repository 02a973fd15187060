// Writes what agents report continuously: the vitals and the listening ports of many boxes in one statement.
import { sql } from 'kysely'
import type { Vitals } from '../../../shared/api/boxes.ts'
import type { ListeningPort } from '../../../shared/api/process-snapshots.ts'
import type { Trx } from '../../db/transaction.ts'

/** `at`: milliseconds since the epoch. */
export async function updateVitals(
  trx: Trx,
  rows: readonly { id: string; vitals: Vitals; at: number }[],
): Promise<void> {
  const values = rows.map(
    ({ id, vitals, at }) => sql`(${id}, ${JSON.stringify(vitals)}, cast(${at} as bigint))`,
  )
  // SQLite and PostgreSQL both name the columns of a bare VALUES list column1, column2, column3.
  await sql`update boxes set vitals = v.column2, last_heartbeat_at = v.column3
    from (values ${sql.join(values)}) as v where boxes.id = v.column1`.execute(trx)
}

/** Leaves out boxes that have stopped since the report. */
export async function updatePorts(
  trx: Trx,
  lists: readonly { id: string; ports: readonly ListeningPort[] }[],
): Promise<void> {
  const values = lists.map(({ id, ports }) => sql`(${id}, ${JSON.stringify(ports)})`)
  await sql`update boxes set listening_ports = v.column2 from (values ${sql.join(values)}) as v
    where boxes.id = v.column1 and boxes.observed_state not in ('suspended', 'deep_sleep', 'terminated')`.execute(
    trx,
  )
}
