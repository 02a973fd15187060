// Pages of other origins while the owner is signed in to the dashboard in the same browser: one of a shared port, one of another
// site, and servers on other ports and names of the machine. They reach nothing: what they see, and what the coordinator did.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { Tables } from '../../../coordinator/db/schema.ts'
import { DOWNLOAD_PATH_HEADER } from '../../../shared/download-headers.ts'
import { ApiError } from '../../../shared/errors.ts'
import { createFakeTransfers, startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { signIn } from '../../support/dashboard.ts'
import { respondError } from '../../support/fake-prompt-agent.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { startTlsFront } from '../../support/tls-front.ts'
import { HIGH_EDGE_LIMITS } from '../coordinator-with-box.ts'

const ATTACKS = readFileSync(join(PROJECT_DIR, 'test/fixtures/web-apps/hostile.js'), 'utf8')
const BROWSER_ARGS = [
  '--host-resolver-rules=MAP boxes.example 127.0.0.1, MAP *.boxes.example 127.0.0.1, MAP attacker.example 127.0.0.1',
  '--ignore-certificate-errors',
]
const HTML_FILE = '<script>window.hostileScriptRan = 1</script>'
const PAGES = [
  ...['', 'boxes/BOX', 'boxes/BOX/terminals', 'boxes/BOX/conversations', 'workspace/keys'],
  ...['sign-in', 'docs', 'desktop?box=BOX', 'api/v1/me', 'docs/guides/cli', 'dashboard/build.json'],
]
const WINDOWS = ['boxes/BOX', '', 'sign-in', 'docs', 'desktop?box=BOX']
const SOCKETS = [
  ...[
    'api/v1/feed',
    'v1/box/BOX/terminal?session=hostile',
    'v1/box/BOX/exec/p_000000000000000000000000/attach',
  ],
  ...['v1/box/BOX/ports/22', 'v1/box/BOX/desktop/stream'],
]

type Operation = { method: string; path: string }
type Result = Record<string, unknown>

/** Serves an empty page on another port, and collects the headers of its requests. */
async function startHostileServer(t: Test) {
  const received: string[] = []
  const server = createServer((request, response) => {
    received.push(JSON.stringify(request.headers))
    response.setHeader('content-type', 'text/html')
    response.end('<title>hostile</title>')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, received }
}

t.test('pages of other origins', { skip: NO_BROWSER }, async (t) => {
  const agentRequests: string[] = []
  const front = await startTlsFront(t)
  const publicUrl = `https://boxes.example:${front.port}`
  const coordinator = await startBoxWithFakeAgent(
    t,
    async ({ method, path }) => {
      agentRequests.push(`${method} ${path}`)
      if (!path.startsWith('/download?')) return respondError(new ApiError('not_found'))
      return { status: 200, body: Buffer.alloc(0) }
    },
    {
      env: { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_PUBLIC_URL: publicUrl, BOXWOOD_SHARE_BASE: publicUrl },
      transfers: createFakeTransfers(() => ({
        headers: { 'content-length': String(HTML_FILE.length), [DOWNLOAD_PATH_HEADER]: '/page.html' },
        text: HTML_FILE,
      })),
    },
  )
  const { api, box, dataDir } = coordinator
  const port = Number(new URL(coordinator.url).port)
  front.forwardTo(port)
  const localUrl = `http://boxwood.localhost:${port}`
  const server = await startHostileServer(t)
  const hostileFront = await startTlsFront(t)
  hostileFront.forwardTo(server.port)
  const browser = await startBrowser(t, BROWSER_ARGS)

  // Every route of the API.
  const response = await fetch(`${coordinator.url}/openapi.json`)
  const { paths } = (await response.json()) as { paths: Record<string, object> }
  const operations: Operation[] = Object.entries(paths).flatMap(([template, methods]) =>
    Object.keys(methods)
      .filter((method) => /^(get|post|put|patch|delete)$/.test(method))
      .map((method) => ({
        method: method.toUpperCase(),
        path: template.replace(/^\//, '').replace(/\{[^}]+\}/g, box.id),
      })),
  )
  t.ok(operations.length > 100)

  /** What an accepted request could have changed. */
  const readState = async () => {
    const { db } = coordinator.instance.context
    const count = async (table: keyof Tables) =>
      (
        await db
          .selectFrom(table)
          .select(({ fn }) => fn.countAll().as('count'))
          .executeTakeFirst()
      )?.count
    const tables = ['download_links', 'tickets', 'commands', 'sessions', 'api_keys', 'users', 'enrollments']
    const counts = tables.map((table) => count(table as keyof Tables))
    const lists = [
      '/boxes',
      '/snapshots',
      '/workspace',
      '/workspace/policies',
      `/boxes/${box.id}/port-shares`,
    ].map(async (path) => (await api('GET', path)).text.replaceAll(/"(updatedAt|at)":"[^"]*"/g, ''))
    const { json } = await api('GET', '/audit?limit=1000')
    const events = json.events.filter(({ kind }: { kind: string }) => kind !== 'access.denied')
    return [
      ...(await Promise.all(counts)),
      ...(await Promise.all(lists)),
      events.length,
      agentRequests.length,
    ]
  }

  async function openVictim(url: string): Promise<{ context: BrowserContext; victim: Page }> {
    const context = await browser.newContext()
    const victim = await context.newPage()
    await victim.goto(`${url}/boxes/${box.hostname}`)
    await signIn(victim, dataDir)
    await victim.getByRole('heading', { level: 2, name: 'Events' }).waitFor()
    return { context, victim }
  }

  const remote = await openVictim(publicUrl)
  const local = await openVictim(localUrl)
  for (const { name, url, origin, context, victim } of [
    {
      name: 'a shared port',
      url: publicUrl,
      origin: `https://slug.boxes.example:${hostileFront.port}`,
      ...remote,
    },
    {
      name: 'another site',
      url: publicUrl,
      origin: `https://attacker.example:${hostileFront.port}`,
      ...remote,
    },
    {
      name: 'another port of this host',
      url: localUrl,
      origin: `http://boxwood.localhost:${server.port}`,
      ...local,
    },
    { name: 'another port of 127.0.0.1', url: localUrl, origin: `http://127.0.0.1:${server.port}`, ...local },
    {
      name: 'another host name',
      url: localUrl,
      origin: `http://attacker.localhost:${server.port}`,
      ...local,
    },
  ])
    await t.test(name, async (t) => {
      const own = (path: string) => `${url}/${path.replace('BOX', box.hostname)}`
      const page = await context.newPage()
      await page.goto(`${origin}/`)
      await page.addScriptTag({ content: ATTACKS })
      const call = (attack: string, ...args: unknown[]): Promise<unknown> =>
        page.evaluate(`window.attacks.${attack}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`)
      /** Responses of the API, by their status. */
      let statuses: number[] = []
      page.on('response', (response) => {
        if (/\/(api\/)?v1\//.test(response.url()) && response.request().method() !== 'OPTIONS')
          statuses.push(response.status())
      })
      /** Each attack is an assertion: what the page has seen, then what the coordinator has done. */
      async function attempt(attack: string, run: () => Promise<Result>, expected: RegExp): Promise<void> {
        const before = await readState()
        statuses = []
        for (const [target, result] of Object.entries(await run()))
          if (!expected.test(String(result))) t.fail(`${attack}: ${target}: ${result}`)
        t.same(await readState(), before, `${attack}: the coordinator has accepted nothing`)
        const accepted = statuses.filter((status) => status < 400)
        t.same(accepted, [], `${attack}: each request was refused`)
      }
      const each = async <Item>(items: readonly Item[], run: (item: Item) => Promise<[string, unknown]>) =>
        Object.fromEntries(await Promise.all(items.map(run)))

      t.match(
        await call('request', own('healthz'), { mode: 'no-cors' }),
        /^opaque 0 $/,
        'the page can send requests to the coordinator',
      )

      const send = (selected: readonly Operation[], options: object) => () =>
        each(selected, async ({ method, path }) => [
          `${method} ${path}`,
          await call('request', own(path), { method, ...options }),
        ])
      const json = { headers: { 'content-type': 'application/json' }, body: '{"name":"stolen"}' }
      const reads = operations.filter(({ method, path }) => method === 'GET' && /^(api\/)?v1\//.test(path))
      const writes = operations.filter(({ method }) => method !== 'GET')
      const posts = writes.filter(({ method }) => method === 'POST')
      await attempt('reads', send(reads, {}), /^TypeError$/)
      await attempt('reads without CORS', send(reads, { mode: 'no-cors' }), /^(opaque 0 |TypeError)$/)
      await attempt('writes', send(writes, json), /^TypeError$/)
      await attempt(
        'writes without CORS',
        send(posts, { mode: 'no-cors', body: '{"name":"stolen"}' }),
        /^(opaque 0 |TypeError)$/,
      )
      await attempt(
        'beacons of JSON',
        () => each(posts, async ({ path }) => [path, await call('beacon', own(path), '{"name":"stolen"}')]),
        /^(true|false)$/,
      )
      await attempt(
        'forms',
        () =>
          each(['api/v1/boxes', 'api/v1/keys', 'v1/box/BOX/exec'], async (path) => {
            const name = `form-${path}`
            await call('load', 'iframe', { name })
            await call('submit', own(path), 'post', { '{"name":"stolen","x":"': '"}' }, name)
            const frame = page.frames().find((candidate) => candidate.name() === name)
            await frame?.waitForLoadState().catch(() => undefined)
            return [path, 'submitted']
          }),
        /^submitted$/,
      )

      await attempt(
        'sockets',
        () => each(SOCKETS, async (path) => [path, await call('webSocket', own(path).replace('http', 'ws'))]),
        /^closed$/,
      )

      for (const element of ['iframe', 'embed', 'object']) {
        const attribute = element === 'object' ? 'data' : 'src'
        await attempt(
          `frames: ${element}`,
          () =>
            each(PAGES, async (path) => [
              path,
              await call('load', element, { [attribute]: own(path), name: `${element} ${path}` }),
            ]),
          /^(loaded|error|no answer)$/,
        )
      }
      const framed = page.frames().filter((frame) => frame.url().startsWith(url))
      t.same(
        framed.map((frame) => frame.url()),
        [],
        'no page of the coordinator is in a frame',
      )

      const included = [...PAGES, 'api/v1/boxes', 'api/v1/session', 'api/v1/audit?format=csv']
      for (const [element, attribute, more] of [
        ['script', 'src', {}],
        ['img', 'src', {}],
        ['link', 'href', { rel: 'stylesheet' }],
      ] as const)
        await attempt(
          `inclusion: ${element}`,
          () =>
            each(included, async (path) => [
              path,
              await call('load', element, { [attribute]: own(path), ...more }),
            ]),
          /^error$/,
        )

      await t.test('windows', async (t) => {
        for (const path of name === 'a shared port' ? WINDOWS : WINDOWS.slice(0, 1)) {
          const popup = page.waitForEvent('popup')
          await page.evaluate(`window.opened = window.open(${JSON.stringify(own(path))}); undefined`)
          const opened = await popup
          await opened.waitForLoadState()
          t.same(await page.evaluate('window.attacks.readWindow(window.opened)'), [], path)
          t.equal(await page.evaluate('window.opened.closed'), true, `${path}: no access to the window`)
          t.equal(await opened.evaluate('window.opener'), null, `${path}: no opener`)
          await page.evaluate(
            `{ window.opened.postMessage({ type: 'changed', kind: 'boxes', items: [], removed: [${JSON.stringify(box.id)}] }, '*'); try { window.opened.location = 'about:blank' } catch {} }`,
          )
          t.ok(opened.url().startsWith(url), `${path}: the page stays`)
          await opened.close()
        }
      })

      await t.test('cookies', async (t) => {
        const readCookies = async () =>
          (await context.cookies(url))
            .filter(({ name }) => name.includes('boxwood'))
            .map(({ value }) => value)
        const before = await readCookies()
        t.equal(before.length, 1)
        t.notMatch(await page.evaluate('document.cookie'), /boxwood/, 'no cookie can be read')
        const domain = new URL(url).hostname
        for (const cookie of ['__Host-boxwood_session', '__host-boxwood_session', 'boxwood_session'].flatMap(
          (cookieName) =>
            ['Path=/', 'Path=/api', `Path=/; Domain=${domain}`, `Path=/api/v1; Domain=${domain}`].map(
              (attributes) => `${cookieName}=evil; Secure; ${attributes}`,
            ),
        ))
          await page.evaluate(`document.cookie = ${JSON.stringify(cookie)}`)
        const after = await readCookies()
        t.ok(
          before.every((value) => after.includes(value)),
          'the cookie of the session stays',
        )
        t.equal(
          await victim.evaluate("fetch('/api/v1/session').then(({ status }) => status)"),
          200,
          'cookies of other names and domains change nothing',
        )
        await context.clearCookies({ name: /^(__host-)?boxwood_session$/ })
      })

      await t.test('a link to an HTML file of the box', async (t) => {
        const createLink = `fetch('/api/v1/boxes/${box.id}/download-links', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"path":"/page.html"}' }).then((response) => response.json()).then((body) => body.url)`
        const link = (await victim.evaluate<string>(createLink)).replace(/^\//, '')
        await attempt(
          'the link of the owner',
          async () => ({
            read: await call('request', own(link)),
            'without CORS': await call('request', own(link), { mode: 'no-cors' }),
            script: await call('load', 'script', { src: own(link) }),
            image: await call('load', 'img', { src: own(link) }),
          }),
          /^(TypeError|opaque 0 |error)$/,
        )
        await call('load', 'iframe', { src: own(link), name: 'file' })
        t.notOk(
          page.frames().some((frame) => frame.url().includes('/downloads/')),
          'no frame shows the file',
        )
        const popup = page.waitForEvent('popup')
        await page.evaluate(`void window.open(${JSON.stringify(own(link))})`)
        await (await popup).close()
        const response = await victim.evaluate<string[]>(
          `fetch(${JSON.stringify(`/${link}`)}).then(async (response) => [response.status, ...['content-disposition', 'x-content-type-options', 'content-security-policy', 'content-type'].map((header) => response.headers.get(header))])`,
        )
        t.match(response, [200, /^attachment; /, 'nosniff', 'sandbox', 'application/octet-stream'])
        const second = await victim.evaluate<string>(createLink)
        const download = victim.waitForEvent('download')
        await victim.evaluate(`location.href = ${JSON.stringify(second)}`)
        t.equal((await download).suggestedFilename(), 'page.html', 'the file is saved, not shown')
        t.ok(victim.url().startsWith(`${url}/boxes/`))
        t.equal(await victim.evaluate('window.hostileScriptRan'), undefined)
      })

      t.equal(
        await page.evaluate(
          `navigator.serviceWorker.register(${JSON.stringify(own('docs/docs.js'))}, { scope: ${JSON.stringify(own(''))} }).then(() => 'registered', ({ name }) => name)`,
        ),
        'SecurityError',
        'no service worker',
      )
      await page.close()
      await victim.reload()
      await victim.getByRole('heading', { level: 2, name: 'Events' }).waitFor()
      t.equal(await victim.evaluate('navigator.serviceWorker.controller'), null)
    })
  t.notMatch(
    server.received.filter((headers) => !headers.includes('boxwood.localhost')).join('\n'),
    /boxwood_session/,
    'servers of other hosts get no cookie',
  )
})
