// Counts the TCP sockets on which the box's own processes listen.
import { readdirSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setImmediate as breathe } from 'node:timers/promises'
import { hasEnvironment, listPids } from '../exec/process-table.ts'

const LISTEN = '0A'
/** A pass over many processes lets what is waiting run in between. */
const PROCESSES_AT_A_TIME = 16

export type ListenerOptions = {
  procRoot: string
  /** Tells the box's processes from its neighbours' by their HOME, where they can see each other. */
  home: string
  /** Everything in this process table belongs to the box. */
  privatePids: boolean
}

/**
 * The answer counts sockets in the LISTEN state. Whose a socket is, is asked once: only new ones cost a look through
 * the descriptors of all processes, and a socket whose owner is not to be found or read is not asked about again.
 */
export function createListenerCounter({
  procRoot,
  home,
  privatePids,
}: ListenerOptions): () => Promise<number> {
  let known = new Map<string, boolean>()

  return async () => {
    const listening = await listeningInodes(procRoot)
    const fresh = new Set(listening.filter((inode) => !known.has(inode)))
    const own = fresh.size === 0 ? fresh : await ownedOf(fresh)
    known = new Map(listening.map((inode) => [inode, known.get(inode) ?? own.has(inode)]))
    return [...known.values()].filter(Boolean).length
  }

  async function ownedOf(inodes: Set<string>): Promise<Set<string>> {
    const found = new Set<string>()
    for (const [index, pid] of listPids(procRoot).entries()) {
      if (index % PROCESSES_AT_A_TIME === PROCESSES_AT_A_TIME - 1) await breathe()
      const sockets = socketsOf(pid, procRoot).filter((inode) => inodes.has(inode))
      if (sockets.length === 0) continue
      if (!privatePids && !hasEnvironment(pid, `HOME=${home}`, procRoot)) continue
      for (const inode of sockets) found.add(inode)
    }
    return found
  }
}

async function listeningInodes(procRoot: string): Promise<string[]> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readTable(`${procRoot}/net/${name}`)))
  return tables.flatMap((table) =>
    table
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === LISTEN)
      .flatMap((fields) => fields[9] ?? []),
  )
}

/** Read aside: the kernel takes 4 ms to walk its hash table for each, however few sockets there are. */
async function readTable(path: string): Promise<string> {
  try {
    return await readFile(path, 'latin1')
  } catch (error) {
    // A kernel without IPv6 has no tcp6.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}

function socketsOf(pid: number, procRoot: string): string[] {
  const folder = `${procRoot}/${pid}/fd`
  const names = ignoringGone(() => readdirSync(folder)) ?? []
  return names.flatMap((name) => {
    const target = ignoringGone(() => readlinkSync(`${folder}/${name}`))
    return (target && /^socket:\[(\d+)\]$/.exec(target)?.[1]) || []
  })
}

/** A process may end while it is looked at, and another user's may not be looked at. */
function ignoringGone<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(code)) return undefined
    throw error
  }
}
