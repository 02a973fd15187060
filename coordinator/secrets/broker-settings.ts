// What the agent of a box needs to connect its programs to the broker.
import type { AgentVariables } from '../../shared/api/agent-variables.ts'
import type { Db } from '../db/open.ts'
import { prepareBrokeredQuery } from './mount-store.ts'
import { parseHosts } from './present.ts'
import type { WorkspaceAuthorities } from './types.ts'

export type FindBrokerSettings = (boxId: string) => Promise<NonNullable<AgentVariables['broker']> | null>

/** The function returns null for a box that has no secrets. */
export function createBrokerSettings({
  db,
  authorities,
}: {
  db: Db
  authorities: Pick<WorkspaceAuthorities, 'getCertificate'>
}): FindBrokerSettings {
  const listBrokered = prepareBrokeredQuery(db)
  return async (boxId) => {
    const rows = await listBrokered(boxId)
    const [first] = rows
    if (!first) return null
    return {
      certificate: await authorities.getCertificate(first.workspace_id),
      hosts: [...new Set(rows.flatMap(parseHosts))].sort(),
    }
  }
}
