// Locks the row of a workspace. A request that counts the rows of a workspace, or checks its state, before it writes locks it first.
import type { WorkspaceRow } from './schema.ts'
import { forUpdate, type Trx } from './transaction.ts'

/** Reads the workspace and locks its row until the transaction ends. */
export const lockWorkspace = (trx: Trx, id: string): Promise<WorkspaceRow | undefined> =>
  forUpdate(trx, trx.selectFrom('workspaces').selectAll().where('id', '=', id)).executeTakeFirst()
