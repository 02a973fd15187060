// The program on the box: sends requests with a secret, directly to the host and through the proxy of the box, and prints the
// durations as JSON. Arguments: the host, its port, the file of its authority. JavaScript, because the Node of the box runs it.
import { readFileSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'

const [host, port, caFile] = process.argv.slice(2)
const ROUNDS = 5
const KEPT_REQUESTS = 200
const NEW_CONNECTIONS = 40
const SMALL_BYTES = 1024
const DOWNLOADS = 3
const DOWNLOAD_BYTES = 256 * 1024 ** 2

const direct = {
  target: { host: '127.0.0.1', port, servername: host, ca: readFileSync(caFile) },
  createAgent: (keepAlive) => new Agent({ keepAlive }),
}
const brokered = {
  target: { host },
  createAgent: (keepAlive) => new Agent({ keepAlive, proxyEnv: { HTTPS_PROXY: process.env.HTTPS_PROXY } }),
}

/** Reads the whole response. Resolves to the milliseconds that it took. */
function get({ target }, agent, bytes) {
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const headers = { host, authorization: `Bearer ${process.env.TOKEN}` }
    const request = httpsRequest({ ...target, path: `/bytes/${bytes}`, headers, agent })
    request.on('error', reject)
    request.on('response', (response) => {
      let received = 0
      response.on('data', (chunk) => {
        received += chunk.length
      })
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200 && received === bytes) resolve(performance.now() - startedAt)
        else reject(new Error(`status ${response.statusCode}, ${received} bytes`))
      })
    })
    request.end()
  })
}

const candidates = { direct, brokered }
const results = {}
const kept = {}
for (const [name, candidate] of Object.entries(candidates)) {
  results[name] = { kept: [], new: [], download: [] }
  kept[name] = candidate.createAgent(true)
}
for (let round = 0; round <= ROUNDS; round++)
  for (const [name, candidate] of Object.entries(candidates)) {
    const measure = async (kind, count, agent, bytes) => {
      for (let i = 0; i < count; i++) {
        const ms = await get(candidate, agent, bytes)
        // The first round is for warm-up.
        if (round > 0) results[name][kind].push(ms)
      }
    }
    await measure('kept', KEPT_REQUESTS, kept[name], SMALL_BYTES)
    await measure('new', NEW_CONNECTIONS, candidate.createAgent(false), SMALL_BYTES)
    if (round <= DOWNLOADS) await measure('download', 1, kept[name], DOWNLOAD_BYTES)
  }
for (const agent of Object.values(kept)) agent.destroy()
console.log(JSON.stringify({ results, downloadBytes: DOWNLOAD_BYTES }))
