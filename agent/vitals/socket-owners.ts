// Finds the processes that own sockets, by the targets of their descriptors.
import { readdirSync, readlinkSync } from 'node:fs'
import { ignoreUnreadable } from '../process-table.ts'
import type { BoxProcess } from './box-processes.ts'
import { yieldEvery } from './yield-every.ts'

/**
 * Returns the owner of each inode. A socket that several processes have, such as a server and the workers that it forked,
 * belongs to the oldest. A socket is missing when the agent is not permitted to read the descriptors of its owner.
 */
export async function findSocketOwners(
  inodes: Iterable<string>,
  processes: readonly BoxProcess[],
  procRoot: string,
): Promise<Map<string, BoxProcess>> {
  const missing = new Set(inodes)
  const owners = new Map<string, BoxProcess>()
  const oldestFirst = processes.toSorted((a, b) => a.startTime - b.startTime || a.pid - b.pid)
  for await (const process of yieldEvery(8, oldestFirst)) {
    if (missing.size === 0) break
    const dir = `${procRoot}/${process.pid}/fd`
    for await (const name of yieldEvery(128, ignoreUnreadable(() => readdirSync(dir)) ?? [])) {
      const target = ignoreUnreadable(() => readlinkSync(`${dir}/${name}`)) ?? ''
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
      if (inode !== undefined && missing.delete(inode)) owners.set(inode, process)
    }
  }
  return owners
}
