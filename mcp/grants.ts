// What the key allows, narrowed by the flags.
import type { Account } from '../client/generated/types.ts'
import type { McpOptions } from './context.ts'
import type { Grants } from './tool.ts'

/** Without the list of all boxes: no box has this name. */
export const ACCOUNT_QUERY = { box: '-' }

/** @param account null: not known, as the coordinator does not respond. Then calls that the key does not allow are errors */
export function findGrants(account: Account | null, options: McpOptions): Grants {
  const keyLevel = account?.access === undefined ? 'write' : (account.access.boxes ?? 'none')
  const level = options.isReadOnly && keyLevel !== 'none' ? 'read' : keyLevel
  const isWrite = level === 'write'
  const isLimited = options.boxes !== undefined || (account?.key?.boxIds ?? null) !== null
  return {
    level,
    canCreate: isWrite && !isLimited && options.canCreate !== false,
    canDelete: isWrite && options.canDelete === true,
    canSharePublicly: isWrite && options.canSharePublicly === true,
  }
}
