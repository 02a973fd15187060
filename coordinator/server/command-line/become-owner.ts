// Root restores for another user with the rights of that user.
import { statSync } from 'node:fs'
import { findForeignControl } from '../../../shared/foreign-directory.ts'
import { StartError } from '../../base/start-error.ts'

/**
 * When root runs the command for a data directory of another user, the process becomes this user permanently. A process of the
 * user can exchange the files of the directory for links at any time, and root would follow them.
 * @throws StartError when a third user can replace the directory
 */
export function becomeOwner(dataDir: string): void {
  const { getuid, setgroups, setgid, setuid } = process
  if (getuid?.() !== 0 || !setgroups || !setgid || !setuid) return
  const owner = statSync(dataDir, { throwIfNoEntry: false })
  if (owner === undefined || owner.uid === 0) return
  const foreignControl = findForeignControl(dataDir, owner.uid)
  if (foreignControl !== null) throw new StartError(foreignControl)
  setgroups([])
  // The group of root has rights that the user may not have.
  setgid(owner.gid === 0 ? owner.uid : owner.gid)
  setuid(owner.uid)
}
