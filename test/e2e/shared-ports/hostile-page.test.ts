// A hostile page on a shared origin in Chromium. The victim is signed in, and views a link for members and a link for anyone.
// The page reaches neither the API nor the other links, and reads no credential. All origins are on one site, as under a
// share base with the coordinator: SameSite does not separate them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { startTlsFront } from '../../support/tls-front.ts'
import { type OpenShare, startSharingBox } from './shared-app.ts'

const FIXTURES = join(PROJECT_DIR, 'test/fixtures/web-apps')
const readFixture = (name: string) => readFileSync(join(FIXTURES, name), 'utf8')
const BROWSER_ARGS = [
  '--host-resolver-rules=MAP boxes.example 127.0.0.1, MAP *.boxes.example 127.0.0.1',
  '--ignore-certificate-errors',
]

t.test('a hostile page', { skip: NO_BROWSER }, async (t) => {
  const front = await startTlsFront(t)
  const publicUrl = `https://boxes.example:${front.port}`
  const coordinator = await startSharingBox(t, {
    env: { BOXWOOD_PUBLIC_URL: publicUrl, BOXWOOD_SHARE_BASE: publicUrl },
  })
  front.forwardTo(Number(new URL(coordinator.url).port))
  const { api, box } = coordinator
  const share = async (dir: string, access: OpenShare['access']) =>
    coordinator.share({ port: await coordinator.startApp(dir), access })
  const hostile = await share('hostile', 'members')
  const members = await share('members', 'members')
  const anyone = await share('anyone', 'anyone')
  await coordinator.run('mkdir -p hostile/public/sub')
  await coordinator.writeFile('hostile/public/sub/page.html', '<title>A page of the directory</title>')
  for (const path of ['worker.js', 'sub/worker.js'])
    await coordinator.writeFile(`hostile/public/${path}`, readFixture('hostile-worker.js'))

  const browser = await startBrowser(t, BROWSER_ARGS)
  const page = await coordinator.openPage(browser, hostile)
  const context = page.context()
  for (const { url } of [members, anyone]) {
    const other = await context.newPage()
    await other.goto(url)
    t.equal(await other.title(), 'An application in the box', 'the victim views the link')
    await other.close()
  }
  await page.addScriptTag({ content: readFixture('hostile.js') })

  /** Requests that the other links have received, and what the API could have changed. */
  const readState = async () => {
    const lists = ['/boxes', '/port-shares', '/snapshots', '/me'].map(async (path) => {
      const { json } = await api('GET', path)
      return (json.boxes ?? json.shares ?? json.snapshots).map(({ id }: { id: string }) => id)
    })
    const requests = ['members', 'anyone'].map((dir) => coordinator.readRequests(dir))
    return Promise.all([...lists, ...requests])
  }
  /** @param attack resolves with what the page has learned @param expected a pattern for the results */
  async function assertNothing(t: Test, attack: () => Promise<Record<string, unknown>>, expected: RegExp) {
    const before = await readState()
    const results = await attack()
    for (const [name, result] of Object.entries(results)) t.match(String(result), expected, name)
    t.same(await readState(), before, 'the API and the other links have accepted nothing')
  }
  const call = (name: string, ...args: unknown[]): Promise<unknown> =>
    page.evaluate(`window.attacks.${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`)
  const others = { members, anyone }
  const forOthers = async (attack: (link: OpenShare) => Promise<unknown>) => {
    const results: Record<string, unknown> = {}
    for (const [name, link] of Object.entries(others)) results[name] = await attack(link)
    return results
  }

  await t.test('reads no cookie, and replaces none', async (t) => {
    const readOwn = async () =>
      (await context.cookies([publicUrl, members.origin, anyone.origin]))
        .filter(({ name }) => name.startsWith('__Host-boxwood'))
        .map(({ name, value, domain }) => `${domain} ${name}=${value}`)
        .sort()
    const before = await readOwn()
    t.equal(before.length, 3, 'a session, a viewer session and a secret')
    t.notMatch(await page.evaluate('document.cookie'), /boxwood/)
    const forged = [
      '__Host-boxwood_session',
      '__Host-boxwood_viewer',
      '__Host-boxwood_link',
      'boxwood_viewer',
      'boxwood_link',
    ].flatMap((name) => [
      `${name}=evil; Domain=boxes.example; Path=/; Secure`,
      `${name}=evil; Path=/; Secure`,
    ])
    for (const cookie of forged) await page.evaluate(`document.cookie = ${JSON.stringify(cookie)}`)
    const query = forged.map((value) => `value=${encodeURIComponent(value)}`).join('&')
    await call(
      'request',
      `/set-cookie?${query}&value=${encodeURIComponent('toss=evil; Domain=boxes.example; Path=/')}`,
    )
    t.same(await readOwn(), before)
    const other = await context.newPage()
    await other.goto(`${members.origin}/whoami`)
    t.notMatch(await other.textContent('body'), /boxwood|toss/, 'the other box gets none of them')
    await other.close()
  })

  await t.test('cannot use the API with the session of the victim', async (t) => {
    const body = JSON.stringify({ name: 'stolen' })
    const sharesUrl = `${publicUrl}/api/v1/boxes/${box.id}/port-shares`
    const shareBody = JSON.stringify({ port: 1, access: 'public' })
    await assertNothing(
      t,
      async () => ({
        'GET with CORS': await call('request', `${publicUrl}/api/v1/me`),
        'GET without CORS': await call('request', `${publicUrl}/api/v1/me`, { mode: 'no-cors' }),
        'POST with CORS': await call('request', `${publicUrl}/api/v1/boxes`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        }),
        'POST without CORS': await call('request', `${publicUrl}/api/v1/boxes`, {
          method: 'POST',
          mode: 'no-cors',
          body,
        }),
        'POST of a link': await call('request', sharesUrl, {
          method: 'POST',
          mode: 'no-cors',
          body: shareBody,
        }),
        'DELETE of a link': await call('request', `${publicUrl}/api/v1/port-shares/${members.id}`, {
          method: 'DELETE',
        }),
        'sign-out': await call('request', `${publicUrl}/api/v1/session`, { method: 'DELETE' }),
        edge: await call('request', `${publicUrl}/v1/box/${box.hostname}/exec`, {
          method: 'POST',
          mode: 'no-cors',
          body: JSON.stringify({ command: 'touch stolen' }),
        }),
        'sign-in of a link': await call(
          'request',
          `${publicUrl}/share/sign-in?${new URLSearchParams({ slug: members.slug, path: '/', state: 'x' })}`,
          { mode: 'no-cors' },
        ),
        WebSocket: await call(
          'webSocket',
          `wss://boxes.example:${front.port}/v1/box/${box.hostname}/ports/22`,
        ),
      }),
      /^(TypeError|opaque 0 |closed)$/,
    )
    for (const [path, fields] of [
      ['/api/v1/boxes', { '{"name":"stolen","x":"': '"}' }],
      ['/api/v1/session/workspace', { '{"workspaceId":"': '"}' }],
    ] as const) {
      const popup = page.waitForEvent('popup')
      await call('submit', `${publicUrl}${path}`, 'post', fields, '_blank')
      await (await popup).waitForLoadState()
      await (await popup).close()
    }
    t.notMatch(await coordinator.run('ls'), /stolen/)
    const { json } = await api('GET', '/boxes')
    t.equal(json.boxes.length, 1, 'a form has created no box')
  })

  await t.test('cannot send requests to another link with the cookies of the victim', async (t) => {
    await assertNothing(
      t,
      () => forOthers(({ origin }) => call('request', `${origin}/headers`)),
      /^TypeError$/,
    )
    const noCors = { mode: 'no-cors' }
    await assertNothing(
      t,
      () => forOthers(({ origin }) => call('request', `${origin}/headers`, noCors)),
      /^opaque 0 $/,
    )
    await assertNothing(
      t,
      () =>
        forOthers(({ origin }) =>
          call('request', `${origin}/publish?text=evil`, { ...noCors, method: 'POST' }),
        ),
      /^opaque 0 $/,
    )
    await assertNothing(
      t,
      () => forOthers(({ origin }) => call('beacon', `${origin}/publish?text=evil`, 'x')),
      /^true$/,
    )
    const toWs = (origin: string) => `${origin.replace('https', 'wss')}/chat`
    await assertNothing(t, () => forOthers(({ origin }) => call('webSocket', toWs(origin))), /^closed$/)
    await assertNothing(t, () => forOthers(({ origin }) => call('eventSource', `${origin}/feed`)), /^error$/)
    for (const name of ['script', 'img'])
      await assertNothing(
        t,
        () => forOthers(({ origin }) => call('load', name, { src: `${origin}/` })),
        /^error$/,
      )
    for (const name of ['iframe', 'embed'])
      await assertNothing(
        t,
        () => forOthers(({ origin }) => call('load', name, { src: `${origin}/` })),
        /^(loaded|error|no answer)$/,
      )
    await assertNothing(
      t,
      () =>
        forOthers(async ({ origin }) => {
          const popup = page.waitForEvent('popup')
          await call('submit', `${origin}/publish?text=evil`, 'post', { text: 'evil' }, '_blank')
          await (await popup).waitForLoadState()
          await (await popup).close()
          return 'submitted'
        }),
      /^submitted$/,
    )
  })

  await t.test('cannot show pages of the coordinator in a frame', async (t) => {
    const signIn = `/share/sign-in?slug=${members.slug}&path=/&state=x`
    for (const path of ['/', '/sign-in', '/docs', signIn, '/api/v1/me']) {
      await call('load', 'iframe', { src: publicUrl + path, name: path })
      const frame = page.frames().find((candidate) => candidate.name() === path)
      t.match(frame?.url(), /^(chrome-error:|about:blank$)/, path)
    }
  })

  await t.test('cannot read a window that it has opened', async (t) => {
    for (const url of [
      `${publicUrl}/`,
      `${publicUrl}/sign-in`,
      `${publicUrl}/share/sign-in?${new URLSearchParams({ slug: members.slug, path: '/', state: 'x' })}`,
      `${members.origin}/`,
      `${anyone.origin}/`,
    ]) {
      const popup = page.waitForEvent('popup')
      await page.evaluate(`window.opened = window.open(${JSON.stringify(url)}); undefined`)
      const opened = await popup
      await opened.waitForLoadState()
      t.same(await page.evaluate('window.attacks.readWindow(window.opened)'), [], url)
      await opened.close()
    }
  })

  /** Registers a service worker, and waits until it controls the pages of its scope. Resolves with the name of the error. */
  const registerWorker = (script: string, scope: string): Promise<unknown> =>
    page.evaluate(`(async () => {
      try {
        const { installing, waiting, active } = await navigator.serviceWorker.register('${script}', { scope: '${scope}' })
        const worker = installing ?? waiting ?? active
        if (worker.state !== 'activated')
          await new Promise((resolve) => {
            worker.onstatechange = () => worker.state === 'activated' && resolve()
          })
        return 'registered'
      } catch (error) {
        return error.name
      }
    })()`)

  await t.test('a service worker gets no credential, and controls its own directory only', async (t) => {
    const ask = (message: object) =>
      page.evaluate(`new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = ({ data }) => resolve(data)
        navigator.serviceWorker.controller.postMessage(${JSON.stringify(message)}, [port2])
      })`)
    t.equal(await registerWorker('/worker.js', '/'), 'TypeError')
    t.equal(await registerWorker('/sub/worker.js', '/'), 'SecurityError')
    t.equal(await registerWorker('/sub/worker.js', '/.boxwood/'), 'SecurityError')
    t.equal(await registerWorker('/sub/worker.js', '/sub/'), 'registered')
    // Signs in by both ways, while a worker runs that sees what it can.
    await context.clearCookies({ name: '__Host-boxwood_viewer' })
    await page.goto(`${hostile.origin}/sub/page.html`)
    t.equal(page.url(), `${hostile.origin}/sub/page.html`)
    const { json } = await api('POST', `/port-shares/${hostile.id}/open`)
    await context.clearCookies({ name: '__Host-boxwood_viewer' })
    await page.goto(json.url)
    t.equal(page.url(), `${hostile.origin}/`)
    t.equal(
      (await context.cookies(hostile.origin)).filter(({ name }) => name === '__Host-boxwood_viewer').length,
      1,
    )
    await page.goto(`${hostile.origin}/sub/page.html`)
    await page.reload()
    const seen = (await ask({})) as string[]
    t.ok(
      seen.some((line) => line.includes('/sub/page.html')),
      'it sees the requests of its directory',
    )
    for (const line of seen) t.notMatch(line, /"(cookie|authorization)"|boxwood_secret|code=|\.boxwood/i)
    await page.addScriptTag({ content: readFixture('hostile.js') })
    await assertNothing(t, () => forOthers(({ origin }) => ask({ url: `${origin}/headers` })), /^TypeError$/)
    await assertNothing(
      t,
      async () => ({
        api: await ask({ url: `${publicUrl}/api/v1/me` }),
        noCors: await ask({ url: `${members.origin}/headers`, options: { mode: 'no-cors' } }),
      }),
      /^(TypeError|opaque 0 )$/,
    )
    const foreign = `navigator.serviceWorker.register(${JSON.stringify(`${members.origin}/worker.js`)}).then(() => 'registered', (error) => error.name)`
    t.equal(await page.evaluate(foreign), 'SecurityError')
    for (const url of [`${members.origin}/`, `${publicUrl}/`])
      t.equal(await readController(context, url), null)
  })

  await t.test('the code of a sign-in is not in the URL of a window that the page can read', async (t) => {
    const state = 'a'.repeat(64)
    const signIn = `${publicUrl}/share/sign-in?${new URLSearchParams({ slug: hostile.slug, path: '/', state })}`
    await page.goto(`${hostile.origin}/`)
    // As a page that makes the browser forget its viewer session.
    await context.clearCookies({ name: '__Host-boxwood_viewer' })
    const popup = page.waitForEvent('popup')
    await page.evaluate(`window.opened = window.open(${JSON.stringify(signIn)}); undefined`)
    const opened = await popup
    await opened.waitForURL(`${hostile.origin}/**`)
    t.equal(await page.evaluate('window.opened.location.href'), `${hostile.origin}/.boxwood/viewer`)
    await opened.close()
  })

  await t.test('responses of a link that needs a cookie are not stored by shared caches', async (t) => {
    for (const { origin } of [members, anyone]) {
      const other = await context.newPage()
      for (const [path, expected] of [
        ['/cached', /^(?!.*(public|s-maxage)).*private/],
        ['/', /private/],
      ] as const)
        t.match((await other.goto(origin + path))?.headers()['cache-control'], expected, origin + path)
      await other.close()
    }
  })

  await t.test('the victim can do all of this', async (t) => {
    const main = await context.newPage()
    await main.goto(`${publicUrl}/`)
    t.equal(await main.evaluate("fetch('/api/v1/me').then(({ status }) => status)"), 200, 'still signed in')
    await main.close()
    for (const { origin } of [members, anyone]) {
      const own = await context.newPage()
      await own.goto(`${origin}/`)
      await own.addScriptTag({ content: readFixture('hostile.js') })
      const run = (expression: string) => own.evaluate(`window.attacks.${expression}`)
      t.match(await run("request('/headers')"), /^basic 200 \[/)
      t.match(await run("request('/publish?text=x', { method: 'POST' })"), /^basic 200 /)
      t.match(await run("webSocket(location.origin.replace('https', 'wss') + '/chat')"), /^message hello/)
      t.match(await run("eventSource('/feed')"), /^message ready/)
      t.equal(await run("load('iframe', { src: '/' })"), 'loaded')
      t.ok(own.frames().length === 2 && own.frames().every((frame) => frame.url().startsWith(origin)))
      await own.close()
    }
  })

  await t.test('no box has got a credential', async (t) => {
    for (const dir of ['hostile', 'members', 'anyone']) {
      const requests = await coordinator.readRequests(dir)
      const received = requests.filter((line) => !line.startsWith('GET /set-cookie?'))
      t.notMatch(received.join('\n'), /boxwood|secret=|code=/)
    }
  })
})

async function readController(context: BrowserContext, url: string): Promise<unknown> {
  const page: Page = await context.newPage()
  await page.goto(url)
  const controller = await page.evaluate('navigator.serviceWorker.controller')
  await page.close()
  return controller
}
