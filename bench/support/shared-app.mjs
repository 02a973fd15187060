// The app on the box: `GET /bytes/N` responds with N bytes. Prints its port. JavaScript, because any version of Node runs it.
import { createServer } from 'node:http'

const CHUNK = Buffer.alloc(64 * 1024, 'x')

const server = createServer(async (request, response) => {
  let missing = Number(request.url.slice('/bytes/'.length))
  response.setHeader('content-length', missing)
  while (missing > 0) {
    const size = Math.min(missing, CHUNK.length)
    missing -= size
    if (!response.write(CHUNK.subarray(0, size)))
      await new Promise((resolve) => response.once('drain', resolve).once('close', resolve))
    if (response.destroyed) return
  }
  response.end()
})
// The other candidate is measured meanwhile.
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
