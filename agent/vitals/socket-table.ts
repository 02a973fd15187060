// Reads the kernel's tables of TCP sockets.
import { readFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { endianness } from 'node:os'

export type ListeningSocket = {
  table: 'tcp' | 'tcp6'
  /** In the notation of the table: groups of 8 hexadecimal digits, each a 32-bit number in the byte order of the machine. */
  address: string
  port: number
  uid: number
  inode: string
}

/** Formats words of network byte order as the tables of the kernel do. */
export const formatAddress = (...words: readonly number[]): string =>
  words
    .map((word) => {
      const bytes = Buffer.alloc(4)
      if (endianness() === 'LE') bytes.writeUInt32LE(word)
      else bytes.writeUInt32BE(word)
      return bytes.toString('hex').toUpperCase()
    })
    .join('')

/** Docker has a resolver of its own in the network of each container, at this address. No process of the box can be its owner. */
const DOCKER_RESOLVER = formatAddress(0x7f_00_00_0b)

/** Inode → port of each listening TCP socket of programs, of IPv4 and IPv6. */
export async function readListeningSockets(procRoot: string): Promise<Map<string, number>> {
  const sockets = await listListeningSockets(procRoot)
  return new Map(
    sockets.filter(({ address }) => address !== DOCKER_RESOLVER).map(({ inode, port }) => [inode, port]),
  )
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

/** A connection between two sockets of this machine, from the side of `local`. Addresses of IPv4. */
export type LocalConnection = {
  local: { address: string; port: number }
  remote: { address: string; port: number }
}

/** The tables with all connections, for findConnectionUid(). */
export const readConnectionTables = (procRoot: string): Promise<string[]> =>
  Promise.all(
    ['tcp', 'tcp6'].map((table) => readFile(`${procRoot}/net/${table}`, 'latin1').catch(ignoreMissing)),
  )

/**
 * The uid of the socket at the local side. undefined: there is none, or no process has it any more.
 * @param tables of readConnectionTables()
 */
export function findConnectionUid(
  tables: readonly string[],
  { local, remote }: LocalConnection,
): number | undefined {
  const [ipv4, ipv6] = [formatEndpoint, formatMappedEndpoint].map(
    (format) => `: ${format(local)} ${format(remote)} `,
  )
  for (const [index, endpoints] of [ipv4, ipv6].entries()) {
    const table = tables[index] ?? ''
    const start = endpoints === undefined ? -1 : table.indexOf(endpoints)
    if (endpoints === undefined || start === -1) continue
    const [, uid, inode] = CONNECTION_REST.exec(table.slice(start + endpoints.length)) ?? []
    // Connections of closed sockets have inode 0, and uid 0 in place of their uid.
    if (uid !== undefined && inode !== '0') return Number(uid)
  }
  return undefined
}

/** Fields: state, queues, timer, retransmits, uid, timeout, inode. */
const CONNECTION_REST = /^[\dA-F]{2} \S+ \S+ \S+ +(\d+) +\d+ (\d+)/

const formatEndpoint = ({ address, port }: LocalConnection['local']): string =>
  `${formatAddress(toWord(address))}:${formatPort(port)}`
/** An IPv6 socket that is connected over IPv4. */
const formatMappedEndpoint = ({ address, port }: LocalConnection['local']): string =>
  `${formatAddress(0, 0, 0xffff, toWord(address))}:${formatPort(port)}`
const formatPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')
const toWord = (address: string): number => Buffer.from(address.split('.').map(Number)).readUInt32BE()

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
