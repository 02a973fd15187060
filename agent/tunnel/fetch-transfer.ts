// GET of a large body whose length is known: HTTP/1.1 on a connection of its own, whose body is read in blocks.
// Node's HTTP client makes a new buffer for every 64 KiB that arrive, which at full speed is most of what it does.
import { connectBlockReader } from './block-reader.ts'

export type Fetch = {
  url: URL
  headers: Record<string, string>
  /** What the body must have, in bytes. */
  length: number
  blockBytes: number
  idleMs: number
}

const END_OF_HEAD = Buffer.from('\r\n\r\n')

/**
 * The body in pieces, each out of use once the next one is asked for. Throws when the answer is not 200 with a body of
 * exactly this length, and when the body ends early. `release` destroys the connection in any state.
 */
export function fetchTransfer({ url, headers, length, blockBytes, idleMs }: Fetch): {
  chunks: AsyncGenerator<Buffer, void, undefined>
  release(): void
} {
  const { socket, blocks } = connectBlockReader(url, blockBytes)
  socket.setTimeout(idleMs, () => socket.destroy(new Error('nothing moved on the transfer')))
  const lines = Object.entries({ host: url.host, ...headers })
  socket.write(
    `GET ${url.pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  )

  async function* chunks() {
    let missing = length
    let inHead = true
    for await (const piece of blocks()) {
      let bytes = piece
      if (inHead) {
        bytes = piece.subarray(checkedHead(piece, length))
        inHead = false
      }
      missing -= bytes.length
      if (missing < 0) throw new Error(`more than ${length} bytes came`)
      if (bytes.length > 0) yield bytes
    }
    if (inHead || missing > 0) throw new Error('the connection ended early')
  }
  return { chunks: chunks(), release: () => socket.destroy() }
}

/** Where the body begins in the first block. */
function checkedHead(bytes: Buffer, length: number): number {
  const end = bytes.indexOf(END_OF_HEAD)
  const [status = '', ...headers] = bytes.toString('latin1', 0, Math.max(0, end)).split('\r\n')
  const code = /^HTTP\/1\.[01] (\d{3})( |$)/.exec(status)?.[1]
  if (code === undefined) throw new Error('the answer is not HTTP')
  if (code !== '200') throw new Error(`the transfer was refused with status ${code}`)
  const declared = headers.flatMap((header) => /^content-length:[ \t]*(\d+)[ \t]*$/i.exec(header)?.[1] ?? [])
  if (
    declared.length !== 1 ||
    Number(declared[0]) !== length ||
    headers.some((h) => /^transfer-encoding:/i.test(h))
  )
    throw new Error(`the answer does not declare ${length} bytes`)
  return end + END_OF_HEAD.length
}
