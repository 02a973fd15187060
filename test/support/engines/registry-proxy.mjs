// A registry with faults: forwards to the registry at argv[3], and serves its images library/NAME under other names, whose first
// component is the fault. Listens on the port argv[2] of the loopback interface.
import { createServer, request } from 'node:http'

const [, , port, target] = process.argv

/** How many bytes of a layer arrive before the fault. */
const BYTES_BEFORE_FAULT = 100_000

createServer((incoming, response) => {
  const fault = incoming.url.split('/')[2]
  // The image is missing at the registry too.
  const path = incoming.url.replace(/^\/v2\/(refused|broken|cut|stalled|private)\//, '/v2/library/')
  const isPing = path === '/v2/'
  if (fault === 'broken') return respond(response, 500)
  if (fault === 'refused') return respond(response, 401)
  if (fault === 'private' && incoming.headers.authorization !== `Basic ${btoa('user:secret')}`)
    return respond(response, 401)
  // Engines send credentials after a challenge at /v2/.
  if (isPing) return respond(response, incoming.headers.authorization === undefined ? 401 : 200)
  const forwarded = request(
    {
      host: '127.0.0.1',
      port: target,
      path,
      method: incoming.method,
      headers: { ...incoming.headers, host: `127.0.0.1:${target}`, authorization: '' },
    },
    (source) => {
      response.writeHead(source.statusCode, source.headers)
      if (!(fault === 'cut' || fault === 'stalled') || !path.includes('/blobs/'))
        return void source.pipe(response)
      let sent = 0
      source.on('data', (data) => {
        if (sent >= BYTES_BEFORE_FAULT) return
        sent += data.length
        response.write(data)
        if (sent < BYTES_BEFORE_FAULT) return
        if (fault === 'cut') response.destroy()
        source.destroy()
      })
      source.on('end', () => response.end())
      source.on('error', () => {})
    },
  )
  forwarded.on('error', () => response.destroy())
  forwarded.end()
}).listen(Number(port), '127.0.0.1')

function respond(response, status) {
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(status === 401 && { 'www-authenticate': 'Basic realm="test"' }),
  })
  const code = status === 401 ? 'UNAUTHORIZED' : 'UNKNOWN'
  response.end(status === 200 ? '{}' : JSON.stringify({ errors: [{ code, message: code.toLowerCase() }] }))
}
