// An HTTP server that writes the body of each request to one file, and answers when the file is synced. Sends its URL to
// the parent process.
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'

const [path = ''] = process.argv.slice(2)

const server = createServer(async (request, response) => {
  await pipeline(request, createWriteStream(path, { flush: true }))
  response.end()
})
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
