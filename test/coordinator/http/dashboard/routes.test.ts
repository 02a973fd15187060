// The dashboard over HTTP: the document, its headers and files, a build that fails, and BOXWOOD_DASHBOARD=off.
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { pino } from 'pino'
import t from 'tap'
import { buildDashboard, DESIGN_START } from '../../../../coordinator/http/dashboard/build.ts'
import { createDashboard, PREBUILT_DIR } from '../../../../coordinator/http/dashboard/files.ts'
import { dashboardRoutes } from '../../../../coordinator/http/dashboard/routes.ts'
import { getBase } from '../../../../coordinator/http/dashboard/shell.ts'
import { OPEN_REFUSED_URL } from '../../../../coordinator/http/large-requests.ts'
import { registerPublicRoutes } from '../../../../coordinator/http/public-routes.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { PROJECT_DIR } from '../../../support/project.ts'
import { createTestSession } from '../../../support/session.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const log = pino({ level: 'silent' })

const getExtension = (file: string) => file.slice(file.lastIndexOf('.') + 1) as 'css' | 'js' | 'woff2'

t.test('the dashboard of a coordinator', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { send, url } = coordinator
  const session = await createTestSession(coordinator)
  const open = (path: string, headers: Record<string, string> = {}) =>
    send('GET', path, undefined, { key: null, headers: { ...HTML, ...headers } })

  await t.test('every page is the same document, with a base for its depth', async (t) => {
    for (const [path, base] of [
      ['/boxes/fig', '../'],
      ['/boxes/fig?x=/a/b', '../'],
      ['/boxes/fig/timeline', '../../'],
      ['/boxes/', '../'],
      ['/workspace/keys', '../'],
    ] as const) {
      const { status, headers, text } = await open(path)
      t.equal(status, 200, path)
      t.match(text, `<base href="${base}">`)
      t.match(text, /<noscript>.*needs JavaScript/)
      t.equal(headers.get('vary'), 'accept, accept-encoding')
    }
    t.match((await open('/', session.headers)).text, '<base href="./">')
    t.match((await open('/')).text, 'box login', 'a visitor sees how to sign in')
    t.equal(getBase('/boxes/a/b/c/d/e/f/g'), null)
    t.equal((await open(`/boxes/${'a/'.repeat(9)}`)).status, 404)
  })

  await t.test('an address that was cut off by hand leads to a page', async (t) => {
    for (const [path, target] of [
      ['/boxes', '/'],
      ['/workspace', '/workspace/settings'],
      ['/workspace/', '/workspace/settings'],
    ] as const) {
      const response = await fetch(coordinator.url + path, { headers: HTML, redirect: 'manual' })
      t.equal(response.status, 302, path)
      t.equal(new URL(response.headers.get('location') ?? '', coordinator.url + path).pathname, target)
    }
  })

  await t.test('other clients and methods get 404 as for any unknown path', async (t) => {
    for (const [method, path, headers] of [
      ['GET', '/boxes/fig', { accept: 'application/json' }],
      ['GET', '/boxes/fig', {}],
      ['POST', '/boxes/fig', HTML],
      ['GET', '/boxes', {}],
      ['GET', '/workspace', {}],
      ['GET', '/dashboard/app.js', HTML],
      ['GET', '/dashboard/..%2fapp.tsx', HTML],
      ['GET', '/dashboard/style-AAAAAAAA.css', HTML],
    ] as const) {
      const { status, json } = await send(method, path, undefined, { key: null, headers })
      t.equal(status, 404, `${method} ${path}`)
      t.equal(json.error, 'not_found')
    }
  })

  await t.test('the policy allows one inline script, and the nonce differs in each response', async (t) => {
    const [first, second] = [await open('/boxes/fig'), await open('/boxes/fig')]
    const [, nonce = ''] = /name="boxwood-nonce" content="([\w-]{22})"/.exec(first.text) ?? []
    t.equal(
      first.headers.get('content-security-policy'),
      `default-src 'none'; script-src 'self' ${OPEN_REFUSED_URL.source}; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'`,
    )
    t.not(first.headers.get('content-security-policy'), second.headers.get('content-security-policy'))
    t.notMatch(
      first.text.replace(OPEN_REFUSED_URL.element, ''),
      /<style|<script(?![^>]* src=)| style=| on\w+=/,
    )
    t.equal(first.headers.get('cache-control'), 'no-cache')

    const etag = first.headers.get('etag') ?? ''
    t.equal(second.headers.get('etag'), etag)
    const known = await open('/boxes/fig', { 'if-none-match': etag, 'cache-control': 'max-age=0' })
    t.equal(known.status, 304)
    t.equal(known.headers.get('content-security-policy'), null, 'the stored policy has the stored nonce')
  })

  await t.test('its files are immutable and compressed, and their URLs are relative', async (t) => {
    const { text } = await open('/boxes/fig')
    const urls = [...text.matchAll(/ (?:href|src)="(dashboard\/[^"]+)"/g)].map(([, file = '']) => file)
    const types = { css: 'text/css', js: 'text/javascript', woff2: 'font/woff2' }
    t.same(urls.map(getExtension).sort(), Object.keys(types))
    for (const file of urls) {
      const fetchAs = async (encoding: string) => {
        const response = await fetch(`${url}/${file}`, { headers: { 'accept-encoding': encoding } })
        t.equal(response.status, 200)
        t.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
        t.equal(response.headers.get('vary'), 'accept-encoding')
        t.equal(response.headers.get('x-content-type-options'), 'nosniff')
        t.match(response.headers.get('content-type'), types[getExtension(file)])
        return { encoding: response.headers.get('content-encoding'), text: await response.text() }
      }
      const plain = await fetchAs('identity')
      t.equal(plain.encoding, null)
      for (const encoding of ['br', 'gzip'])
        t.same(await fetchAs(encoding), { encoding, text: plain.text }, encoding)
    }
    const [, buildId = ''] = /name="boxwood-build" content="([^"]+)"/.exec(text) ?? []
    t.same((await send('GET', '/dashboard/build.json', undefined, { key: null })).json, { buildId })
  })

  await t.test('each page and file has all headers that isolate it from other origins', async (t) => {
    const isolation = {
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'access-control-allow-origin': null,
    }
    const page = {
      ...isolation,
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'content-type': 'text/html; charset=utf-8',
    }
    const assertHeaders = (path: string, headers: Headers, expected: Record<string, string | null>) => {
      for (const [name, value] of Object.entries(expected))
        t.equal(headers.get(name), value, `${path} ${name}`)
      t.match(headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/, path)
    }
    for (const path of [
      '/',
      '/boxes/fig',
      '/boxes/fig/files',
      '/workspace/keys',
      '/design',
      '/sign-in',
      '/desktop',
      '/docs',
    ])
      for (const options of [{}, session.headers])
        assertHeaders(path, (await open(path, options)).headers, page)
    const files = (await buildDashboard(PROJECT_DIR, [])).map(({ name }) => name)
    const paths = files.filter((name) => /\.(js|css)$/.test(name)).map((name) => `/dashboard/${name}`)
    t.ok(paths.length > 5)
    for (const path of [...paths, '/dashboard/build.json', '/docs/guides/cli.md']) {
      const { status, headers } = await open(path)
      t.equal(status, 200, path)
      assertHeaders(path, headers, isolation)
    }
  })

  await t.test('a response to the session is not for other origins, also a refusal', async (t) => {
    for (const [headers, status] of [
      [session.headers, 200],
      [{ ...session.headers, 'sec-fetch-site': 'cross-site' }, 403],
      [{ ...session.headers, 'sec-fetch-site': 'same-site' }, 403],
      [{}, 401],
    ] as const) {
      const response = await send('GET', '/api/v1/session', undefined, { key: null, headers: { ...headers } })
      t.equal(response.status, status)
      for (const [name, value] of [
        ['cache-control', 'no-store'],
        ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
        ['cross-origin-resource-policy', 'same-origin'],
        ['x-content-type-options', 'nosniff'],
      ] as const)
        t.equal(response.headers.get(name), value, `${status} ${name}`)
    }
  })
})

t.test('BOXWOOD_DASHBOARD=off leaves a short text', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_DASHBOARD: 'off' } })
  const session = await createTestSession(coordinator)
  const open = (path: string) =>
    coordinator.send('GET', path, undefined, { key: null, headers: { ...HTML, ...session.headers } })
  const home = await open('/')
  t.equal(home.headers.get('content-type'), 'text/plain; charset=utf-8')
  t.match(home.text, `Its dashboard is turned off.\n\nAPI reference:  ${coordinator.url}/docs\n`)
  for (const path of ['/boxes/fig', '/workspace/keys', '/dashboard/build.json'])
    t.equal((await open(path)).json?.error, 'not_found', path)
})

/** Serves the dashboard of a project directory. */
function serve(projectRoot: string, dataDir: string) {
  const app = Fastify({ exposeHeadRoutes: false })
  registerPublicRoutes(app, dashboardRoutes(createDashboard({ projectRoot, dataDir, log })))
  return (url: string) => app.inject({ url, headers: HTML })
}

t.test('a failed build is a page with the reason', async (t) => {
  const dir = createTempDir(t, 'project')
  mkdirSync(join(dir, 'dashboard/design'), { recursive: true })
  writeFileSync(join(dir, 'dashboard/design/style.css'), '')
  writeFileSync(join(dir, 'dashboard/app.tsx'), "import '<missing>'\n")
  const get = serve(dir, dir)
  const { statusCode, headers, body } = await get('/boxes/fig')
  t.equal(statusCode, 500)
  t.match(body, 'Could not resolve &#34;&#60;missing&#62;&#34;')
  t.match(body, '<base href="../">')
  t.equal(headers['cache-control'], 'no-store')
  t.match(headers['content-security-policy'], "default-src 'none'")
  t.equal((await get('/dashboard/build.json')).statusCode, 500)
})

t.test('the build is cached, in the data directory when the project cannot be written to', async (t) => {
  const dir = createTempDir(t, 'project')
  for (const name of ['client', 'dashboard', 'shared', 'package-lock.json'])
    cpSync(join(PROJECT_DIR, name), join(dir, name), { recursive: true })
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(dir, 'node_modules'))
  const dataDir = join(dir, 'data')
  const cacheFiles = ['/dev/null/not-writable/dashboard', join(dataDir, 'dashboard-bundle')]
  const files = await buildDashboard(dir, cacheFiles)
  t.ok(files.find(({ name }) => /^app-\w+\.js\.br$/.test(name)))
  const names = (await buildDashboard(dir, cacheFiles)).map(({ name }) => name)
  writeFileSync(join(dir, 'dashboard/design/style.css'), 'a{color:red}')
  const changed = (await buildDashboard(dir, cacheFiles)).map(({ name }) => name)
  const find = (list: string[], pattern: RegExp) => list.find((name) => pattern.test(name))
  t.equal(find(changed, /^app-\w+\.js$/), find(names, /^app-\w+\.js$/))
  t.not(find(changed, /^style-\w+\.css$/), find(names, /^style-\w+\.css$/))
})

t.test('prebuilt files are served without the sources', async (t) => {
  const dir = createTempDir(t, 'package')
  const prebuilt = join(dir, PREBUILT_DIR)
  mkdirSync(prebuilt, { recursive: true })
  for (const { name, bytes } of await buildDashboard(PROJECT_DIR, []))
    if (!name.startsWith(DESIGN_START)) writeFileSync(join(prebuilt, name), bytes)
  const get = serve(dir, '/dev/null/not-writable')
  const { statusCode, body } = await get('/boxes/fig')
  t.equal(statusCode, 200)
  const [, script = ''] = / src="(dashboard\/app-\w+\.js)"/.exec(body) ?? []
  t.equal((await get(`/${script}`)).statusCode, 200)
  t.equal((await get('/design')).statusCode, 404, 'only a checkout has the page of the components')
  rmSync(prebuilt, { recursive: true })
  t.equal((await get(`/${script}`)).statusCode, 200, 'the files are in memory')
})

t.test('compressed files have the content of the plain ones', async (t) => {
  const files = new Map((await buildDashboard(PROJECT_DIR, [])).map(({ name, bytes }) => [name, bytes]))
  for (const [name, bytes] of files)
    if (/\.(js|css)$/.test(name)) {
      t.ok(brotliDecompressSync(files.get(`${name}.br`) ?? '').equals(bytes), name)
      t.ok(gunzipSync(files.get(`${name}.gz`) ?? '').equals(bytes), name)
    }
})
