// Counts the listening TCP sockets of the box's own processes.
import { readdirSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { hasEnvironmentVariable, listPids } from '../exec/process-table.ts'

const LISTEN = '0A'
/** Scanning is synchronous: yield to the event loop after this many processes. */
const YIELD_INTERVAL = 16

export type ListenerOptions = {
  procRoot: string
  /** Identifies the box's processes by their HOME variable when the process table also lists other boxes. */
  home: string
  /** True when the box has its own PID namespace: every process in the table belongs to it. */
  privatePids: boolean
}

/**
 * Returns a function that counts sockets in the LISTEN state. Owners are cached per inode: only a new socket causes a scan
 * of all processes' descriptors. A socket whose owner cannot be determined is not looked up again.
 */
export function createListenerCounter({
  procRoot,
  home,
  privatePids,
}: ListenerOptions): () => Promise<number> {
  /** Socket inode → whether the box owns it. */
  let ownedByInode = new Map<string, boolean>()

  return async () => {
    const listening = await listListeningInodes(procRoot)
    const added = new Set(listening.filter((inode) => !ownedByInode.has(inode)))
    const owned = added.size === 0 ? added : await findOwned(added)
    ownedByInode = new Map(listening.map((inode) => [inode, ownedByInode.get(inode) ?? owned.has(inode)]))
    return [...ownedByInode.values()].filter(Boolean).length
  }

  async function findOwned(inodes: Set<string>): Promise<Set<string>> {
    const owned = new Set<string>()
    for (const [index, pid] of listPids(procRoot).entries()) {
      if (index % YIELD_INTERVAL === YIELD_INTERVAL - 1) await yieldToEventLoop()
      const sockets = listSocketInodes(pid, procRoot).filter((inode) => inodes.has(inode))
      if (sockets.length === 0) continue
      if (!privatePids && !hasEnvironmentVariable(pid, `HOME=${home}`, procRoot)) continue
      for (const inode of sockets) owned.add(inode)
    }
    return owned
  }
}

async function listListeningInodes(procRoot: string): Promise<string[]> {
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

/** Asynchronous: the kernel needs 4 ms per table to walk its hash table, even with few sockets. */
async function readTable(path: string): Promise<string> {
  try {
    return await readFile(path, 'latin1')
  } catch (error) {
    // A kernel without IPv6 has no tcp6.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}

function listSocketInodes(pid: number, procRoot: string): string[] {
  const dir = `${procRoot}/${pid}/fd`
  const names = ignoreUnreadable(() => readdirSync(dir)) ?? []
  return names.flatMap((name) => {
    const target = ignoreUnreadable(() => readlinkSync(`${dir}/${name}`))
    return (target && /^socket:\[(\d+)\]$/.exec(target)?.[1]) || []
  })
}

/** The process may have exited, or may belong to another user. */
function ignoreUnreadable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(code)) return undefined
    throw error
  }
}
