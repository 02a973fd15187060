// A file to a box and one from it, over the dial-back connections of an agent.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Test } from 'tap'
import { createTransferDialer } from '../../agent/tunnel/transfer-dialer.ts'
import { readAll, type startTunnelServer } from './tunnel.ts'

type TunnelServer = Awaited<ReturnType<typeof startTunnelServer>>

/** @param url at which the agent reaches the coordinator */
export async function transferBothWays(
  t: Test,
  coordinator: Pick<TunnelServer, 'tunnels'>,
  { boxId, token }: ReturnType<TunnelServer['addBox']>,
  url: string,
  size: number,
): Promise<void> {
  const { transfers } = coordinator.tunnels
  const dialer = createTransferDialer({ boxId, readUrl: async () => url, readToken: async () => token })
  const bytes = randomBytes(size)
  const upload = transfers.expect(boxId)
  const fetched = (async () => {
    const copies: Buffer[] = []
    const { chunks } = await dialer.fetch(upload.id, bytes.length)
    // The dialer reuses the memory of a chunk.
    for await (const chunk of chunks) copies.push(Buffer.from(chunk))
    return Buffer.concat(copies)
  })()
  const uploadConnection = await upload.connection
  uploadConnection.response.writeHead(200, { 'content-length': bytes.length }).end(bytes)
  t.ok((await fetched).equals(bytes), 'a file for the box')

  const download = transfers.expect(boxId)
  const sent = dialer.send(download.id, {}, Readable.from([bytes]))
  const downloadConnection = await download.connection
  t.ok((await readAll(downloadConnection.request)).equals(bytes), 'a file of the box')
  downloadConnection.response.writeHead(204).end()
  await sent
}
