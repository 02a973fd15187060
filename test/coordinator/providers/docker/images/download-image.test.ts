// Downloads of an engine that reports what a test wants.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { downloadImage } from '../../../../../coordinator/providers/docker/images/download-image.ts'
import { PullProgressReader } from '../../../../../coordinator/providers/docker/images/pull-progress.ts'
import { EngineHttp } from '../../../../../coordinator/providers/engine-http/client.ts'
import { ImageError } from '../../../../../coordinator/providers/provider.ts'
import { waitUntil } from '../../../../support/wait-until.ts'

const DOWNLOADING = { id: 'a', status: 'Downloading', progressDetail: { current: 1, total: 2 } }
const TRANSFERRED = { id: 'a', status: 'Download complete' }

/** @param respond sends the lines of the response, which does not end */
async function startDownload(t: Test, respond: (send: (line: object) => void) => void) {
  // The path of a socket has at most 107 bytes.
  const dir = mkdtempSync(join(tmpdir(), 'boxwood-engine-'))
  const path = join(dir, 'engine.sock')
  let open = 0
  const server = createServer((_, response) => {
    open += 1
    response.on('close', () => {
      open -= 1
    })
    respond((line) => response.write(`${JSON.stringify(line)}\n`))
  }).listen(path)
  await once(server, 'listening')
  const http = new EngineHttp('Docker', { kind: 'unix', path })
  t.teardown(async () => {
    await http.close()
    server.closeAllConnections()
    server.close()
    rmSync(dir, { recursive: true })
  })
  const result = downloadImage({ http }, 'docker.io/library/debian:12', {
    env: { DOCKER_CONFIG: dir },
    idleTimeoutMs: 20,
    onProgress: () => undefined,
    signal: new AbortController().signal,
  })
  return { result, countOpen: () => open }
}

for (const [name, lines] of [
  ['before the first report', []],
  ['in a layer', [DOWNLOADING]],
  ['in the second layer', [TRANSFERRED, { ...DOWNLOADING, id: 'b' }]],
] as const)
  t.test(`a download that stops ${name} ends, and may be retried`, async (t) => {
    const { result, countOpen } = await startDownload(t, (send) => lines.forEach(send))
    const error = await result.catch((error: unknown) => error)
    t.match(error, { message: 'The download of the image debian:12 made no progress for 0.02 s.' })
    t.notOk(error instanceof ImageError)
    // On a slow machine, the download may end before the engine has received the request.
    await waitUntil('the response is closed', async () => countOpen() === 0)
  })

t.test('the unpacking of layers has no limit', async (t) => {
  const progress = new PullProgressReader()
  t.equal(progress.isTransferred(), false)
  for (const [line, expected] of [
    [DOWNLOADING, false],
    [TRANSFERRED, true],
    [{ id: 'b', status: 'Pulling fs layer' }, false],
    [{ id: 'b', status: 'Already exists' }, true],
    [{ id: 'a', status: 'Extracting' }, true],
  ] as const) {
    progress.add(line)
    t.equal(progress.isTransferred(), expected, JSON.stringify(line))
  }
})
