// Which user has opened a connection to the listener. Other users of the machine must not use it.
import type { Socket } from 'node:net'
import { shareReads } from '../share-reads.ts'
import { findConnectionUid, readConnectionTables } from '../vitals/socket-table.ts'

/** Whether the peer of the connection is permitted. */
export type PeerCheck = (socket: Socket) => Promise<boolean>

/** In the network namespace of a box, all processes are those of the box. */
export const permitAll: PeerCheck = () => Promise.resolve(true)

export type PeerCheckOptions = { uids: readonly number[]; procRoot?: string }

/** The check reads the kernel's table of connections, where an IPv4 socket and a mapped IPv6 socket are listed differently. */
export function createPeerCheck({ uids, procRoot = '/proc' }: PeerCheckOptions): PeerCheck {
  const readTables = shareReads(() => readConnectionTables(procRoot))
  return async ({ remoteAddress, remotePort, localAddress, localPort }) => {
    if (!remoteAddress || !remotePort || !localAddress || !localPort) return false
    const uid = findConnectionUid(await readTables(), {
      local: { address: remoteAddress, port: remotePort },
      remote: { address: localAddress, port: localPort },
    })
    return uid !== undefined && uids.includes(uid)
  }
}
