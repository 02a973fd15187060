// Finds the listening sockets that may get a connection to a port, when all of them belong to the box.
import { readProcess } from '../process-table.ts'
import { shareReads } from '../share-reads.ts'
import type { BoxProcesses } from '../vitals/box-processes.ts'
import { findSocketOwners } from '../vitals/socket-owners.ts'
import { type ListeningSocket, listListeningSockets } from '../vitals/socket-table.ts'
import { type LoopbackAddress, selectListeners } from './select-listeners.ts'

export type BoxListeners = {
  /**
   * Returns the inodes of the sockets that may get the connection, sorted. undefined: nothing listens, or one of the sockets
   * does not belong to a process of the box.
   */
  find(address: LoopbackAddress, port: number): Promise<readonly string[] | undefined>
}

export type BoxListenersOptions = {
  procRoot?: string
  processes: BoxProcesses
  /** Milliseconds of a clock that is never set. */
  monotonicNow?: () => number
}

type Owner = { pid: number; startTime: number }

/** The first list of processes may be older than the socket. */
const SEARCHES = 2
/** A search reads the descriptors of all processes: a socket without an owner is not searched for again for this long. */
const UNOWNED_MS = 1000

export function createBoxListeners(options: BoxListenersOptions): BoxListeners {
  const { procRoot = '/proc', processes, monotonicNow = () => performance.now() } = options
  const readSockets = shareReads(() => listListeningSockets(procRoot))
  /** By inode. */
  let owners = new Map<string, Owner>()
  let unownedUntil = new Map<string, number>()

  function isOwned({ inode }: ListeningSocket): boolean {
    const owner = owners.get(inode)
    return owner !== undefined && readProcess(owner.pid, procRoot)?.startTime === owner.startTime
  }

  async function areOwned(sockets: readonly ListeningSocket[]): Promise<boolean> {
    for (let search = 1; search <= SEARCHES; search++) {
      const unknown = sockets.filter((socket) => !isOwned(socket)).map(({ inode }) => inode)
      if (unknown.length === 0) return true
      if (unknown.some((inode) => (unownedUntil.get(inode) ?? 0) > monotonicNow())) return false
      for (const [inode, owner] of await findSocketOwners(unknown, await processes.list(), procRoot))
        owners.set(inode, owner)
    }
    const unowned = sockets.filter((socket) => !isOwned(socket))
    for (const { inode } of unowned) unownedUntil.set(inode, monotonicNow() + UNOWNED_MS)
    return unowned.length === 0
  }

  function forgetClosed(sockets: readonly ListeningSocket[]): void {
    const inodes = new Set(sockets.map(({ inode }) => inode))
    owners = new Map([...owners].filter(([inode]) => inodes.has(inode)))
    unownedUntil = new Map([...unownedUntil].filter(([inode]) => inodes.has(inode)))
  }

  return {
    async find(address, port) {
      const sockets = await readSockets()
      forgetClosed(sockets)
      const selected = selectListeners(sockets, address, port)
      if (selected.length === 0 || !(await areOwned(selected))) return undefined
      return selected.map(({ inode }) => inode).sort()
    },
  }
}
