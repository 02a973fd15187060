// Reads the kernel's tables of TCP sockets.
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'

export type ListeningSocket = {
  table: 'tcp' | 'tcp6'
  /** In the notation of the table: groups of 8 hexadecimal digits, each a 32-bit number in the byte order of the machine. */
  address: string
  port: number
  uid: number
  inode: string
}

/** Inode → port of each listening TCP socket, of IPv4 and IPv6. */
export async function readListeningSockets(procRoot: string): Promise<Map<string, number>> {
  const sockets = await listListeningSockets(procRoot)
  return new Map(sockets.map(({ inode, port }) => [inode, port]))
}

/** The listening TCP sockets of IPv4 and IPv6. */
export async function listListeningSockets(procRoot: string): Promise<ListeningSocket[]> {
  const tables = await Promise.all(
    (['tcp', 'tcp6'] as const).map(async (table) => {
      const rows = await readListeningRows(`${procRoot}/net/${table}`)
      return Array.from(rows.matchAll(LISTENING_ROW), (match) => parseRow(table, match))
    }),
  )
  return tables.flat()
}

/** Fields: number, local address and port, remote address, state, queues, timer, retransmits, uid, timeout, inode. */
const LISTENING_ROW = /^ *\d+: ([\dA-F]+):([\dA-F]{4}) [\dA-F]+:0000 0A \S+ \S+ \S+ +(\d+) +\d+ (\d+)/gm
const OTHER_ROW = /^ *\d+: \S+ \S+ (?!0A )[\dA-F]{2} /m
const CHUNK_BYTES = 64 * 1024

function parseRow(table: 'tcp' | 'tcp6', match: RegExpExecArray): ListeningSocket {
  const [, address = '', port = '', uid = '', inode = ''] = match
  return { table, address, port: Number.parseInt(port, 16), uid: Number(uid), inode }
}

/** The kernel lists the listening sockets first: on a machine with many connections, the rest of the table is long. */
async function readListeningRows(path: string): Promise<string> {
  // Asynchronous: the kernel walks a hash table, which takes about 4 ms even with few sockets.
  const file = await open(path).catch(ignoreMissing)
  if (file === '') return ''
  let text = ''
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES)
    let unchecked = 0
    while (!OTHER_ROW.test(text.slice(unchecked))) {
      // The last row may be incomplete.
      unchecked = text.lastIndexOf('\n') + 1
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES)
      if (bytesRead === 0) break
      text += buffer.toString('latin1', 0, bytesRead)
    }
  } finally {
    await file.close()
  }
  return text
}

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
