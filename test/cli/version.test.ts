// box version, box open and box docs.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readServerInfo } from '../../cli/local/server-info.ts'
import { VERSION } from '../../shared/version.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { DEADLINE_MS } from '../support/wait-until.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, [])
const serve = (body: object) => coordinator.respondNext('GET /', 200, body)

t.test('--version, -v and -V print the version of box', async (t) => {
  for (const option of ['--version', '-v', '-V'])
    t.same(await runBox(null, [option]), { code: 0, stdout: `${VERSION}\n`, stderr: '' }, option)
})

t.test('version shows box and the coordinator', async (t) => {
  serve({ name: 'boxwood', version: VERSION, apiVersion: '1' })
  const { code, stdout, stderr } = await runBox(coordinator, ['version'])
  t.match({ code, stderr }, { code: 0, stderr: /^$/ })
  t.match(
    stdout,
    new RegExp(`^box +${VERSION} .*^coordinator +${VERSION} \\(API 1\\)$.*${coordinator.url}`, 'ms'),
  )
  serve({ name: 'boxwood', version: VERSION, apiVersion: '1' })
  t.match(JSON.parse((await runBox(coordinator, ['version', '--json'])).stdout), {
    client: { version: VERSION },
    server: { version: VERSION, apiVersion: '1', url: coordinator.url },
    dataDirectory: null,
  })
})

t.test('version warns when the versions differ', async (t) => {
  serve({ name: 'boxwood', version: '9.9.9\u001b[2J' })
  const result = await runBox(coordinator, ['version'])
  t.match(result, {
    code: 0,
    stderr: /^box: box has version .*, the coordinator 9\.9\.9.*Update the older one/,
  })
  t.notMatch(result.stdout + result.stderr, '\u001b')
})

t.test('version without a coordinator exits with 3', async (t) => {
  const dataDir = createTempDir(t, 'version')
  const result = await runBox(null, ['version'], { env: { BOXWOOD_DATA: dataDir } })
  t.match(result, { code: 3, stdout: `${dataDir}\n`, stderr: /no coordinator responds. See `box status`/ })
  // Another server.
  serve({ hello: 'world' })
  t.match(await runBox(coordinator, ['version', '--json']), { code: 3, stdout: /"server": null/ })
})

t.test('a coordinator reports its version', async (t) => {
  t.match(await readServerInfo(coordinator.url, AbortSignal.timeout(DEADLINE_MS)), {
    version: VERSION,
    apiVersion: '1',
  })
})

t.test('open prints the URL, and opens it where there is a display', async (t) => {
  const noDisplay = { DISPLAY: '', WAYLAND_DISPLAY: '' }
  t.same(await runBox(coordinator, ['open'], { env: noDisplay }), {
    code: 0,
    stdout: `${coordinator.url}/\n`,
    stderr: '',
  })
  const page = `${coordinator.url}/boxes/fig`
  const { id } = await coordinator.addBox('fig')
  for (const name of ['fig', id, id.slice(0, 8)])
    t.same(await runBox(coordinator, ['open', name], { env: noDisplay }), {
      code: 0,
      stdout: `${page}\n`,
      stderr: '',
    })
  t.same(JSON.parse((await runBox(coordinator, ['open', 'fig', '--json'])).stdout), { url: page })
  t.match(await runBox(coordinator, ['open', 'plum']), { code: 5, stdout: '', stderr: /plum/ })
  const dir = createTempDir(t, 'open')
  const opened = join(dir, 'opened')
  writeFileSync(join(dir, 'xdg-open'), `#!/bin/sh\necho "$1" >${opened}\n`, { mode: 0o755 })
  const env = { DISPLAY: ':0', PATH: `${dir}:/usr/bin:/bin` }
  t.match(await runBox(coordinator, ['open'], { env }), {
    code: 0,
    stdout: `${coordinator.url}/\n`,
    stderr: /^$/,
  })
  t.equal(readFileSync(opened, 'utf8'), `${coordinator.url}/\n`)
  writeFileSync(join(dir, 'xdg-open'), '#!/bin/sh\nexit 3\n', { mode: 0o755 })
  t.match(await runBox(coordinator, ['open'], { env }), { code: 0, stderr: /xdg-open failed/ })
  writeFileSync(join(dir, 'xdg-open'), '#!/bin/sh\nexec sleep 5\n', { mode: 0o755 })
  t.match(
    await runBox(coordinator, ['open'], { env }),
    { code: 0, stderr: /^$/ },
    'a browser in the foreground',
  )
  t.same(JSON.parse((await runBox(coordinator, ['open', '--json'])).stdout), { url: `${coordinator.url}/` })
})

t.test('docs lists the topics, and prints one', async (t) => {
  const list = await runBox(coordinator, ['docs'])
  t.match(list, { code: 0, stdout: /^box docs cli +The box command$/m })
  t.match(list.stdout, `API reference: ${coordinator.url}/docs\n`)
  t.match(await runBox(null, ['docs', 'cli']), { code: 0, stdout: /^# The box command\n/ })
  t.match(await runBox(null, ['docs', '../README']), {
    code: 2,
    stderr: /^box: No such topic: '..\/README'\. `box docs` lists the topics\.\n$/,
  })
  t.match(await runBox(null, ['docs', 'share']), {
    code: 2,
    stderr: /Did you mean share-domain or share-elsewhere\? `box docs`/,
  })
  t.match(await runBox(null, ['docs', 'sercets']), { code: 2, stderr: /Did you mean secrets\?/ })
})
