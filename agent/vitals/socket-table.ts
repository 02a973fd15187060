// Reads the kernel's tables of TCP sockets.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** Inode → port of each listening TCP socket, of IPv4 and IPv6. */
export async function readListeningSockets(procRoot: string): Promise<Map<string, number>> {
  // Asynchronous: the kernel walks a hash table, which takes about 4 ms even with few sockets.
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`${procRoot}/net/${name}`, 'latin1').catch(ignoreMissing)),
  )
  return new Map(tables.flatMap((table) => Array.from(table.matchAll(LISTENING_ROW), parseRow)))
}

/** Fields: number, local address and port, remote address, state, queues, timer, retransmits, uid, timeout, inode. */
const LISTENING_ROW = /^ *\d+: [\dA-F]+:([\dA-F]{4}) [\dA-F]+:0000 0A \S+ \S+ \S+ +\d+ +\d+ (\d+)/gm
const parseRow = ([, port = '', inode = '']: RegExpExecArray): [string, number] => [
  inode,
  Number.parseInt(port, 16),
]

/** Changes when a socket is opened or closed. Reading it takes microseconds. */
export const readSocketCounts = (procRoot: string): string =>
  ['sockstat', 'sockstat6'].map((name) => readTcpLine(`${procRoot}/net/${name}`)).join('\n')

function readTcpLine(path: string): string {
  try {
    return /^TCP6?: inuse \d+/m.exec(readFileSync(path, 'utf8'))?.[0] ?? ''
  } catch (error) {
    return ignoreMissing(error)
  }
}

/** A kernel without IPv6 has no tcp6. */
function ignoreMissing(error: unknown): '' {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
  throw error
}
