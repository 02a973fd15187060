// Members and holders of links in Chromium: the sign-in at the main origin and back, and what pages of other links can do with
// the cookies of a viewer. The server of the test responds instead of the box.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { createViewerAuthorizer } from '../../coordinator/edge/shared-ports/viewers/authorize.ts'
import type { Context } from '../../coordinator/server/modules.ts'
import { startSignInCoordinator } from '../coordinator/identity/sessions/support.ts'
import { NO_BROWSER, startBrowser } from '../support/browser.ts'

/** Serves links by the decisions about their viewers. The body is the URL, the cookies and the user that the box would get. */
async function startShareServer(t: Test) {
  let context: Context | undefined
  const requests: string[] = []
  let isInterrupted = false

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request
    const slug = context?.portShares.base.parseHost(headers.host)
    const found = slug === undefined ? undefined : await context?.portShares.find(slug)
    if (!found || !context?.authorizeViewer) return void response.writeHead(404).end('no such link')
    requests.push(url)
    if (isInterrupted && url.startsWith('/.boxwood/viewer'))
      return void response.writeHead(503).end('interrupted')
    const decision = await context.authorizeViewer(found.share, { method, url, headers, isUpgrade: false })
    if (decision.type === 'redirect')
      response.writeHead(decision.status, {
        location: decision.location,
        'set-cookie': [...decision.setCookies],
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      })
    else if (decision.type === 'refuse') response.writeHead(403, { 'content-type': 'text/html' })
    else response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'app=1' })
    const { actor, cookie } = decision.type === 'serve' ? decision : {}
    response.end(
      decision.type === 'serve'
        ? JSON.stringify({ url: decision.url, cookie: cookie ?? null, userId: actor?.userId ?? null })
        : decision.type === 'refuse'
          ? `refused: ${decision.reason}`
          : '',
    )
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    // Below localhost, each name is a site of its own. These links are on one site, as those of a domain are.
    base: `http://boxes.localhost:${(server.address() as AddressInfo).port}`,
    requests,
    interruptSignIns(value: boolean) {
      isInterrupted = value
    },
    setContext(value: Context) {
      context = value
    },
  }
}

t.test('links in a browser', { skip: NO_BROWSER }, async (t) => {
  const server = await startShareServer(t)
  const coordinator = await startSignInCoordinator(t, { env: { BOXWOOD_SHARE_BASE: server.base } })
  const { url, api, addMember, readPrintedCode } = coordinator
  server.setContext(coordinator.instance.context)
  const ann = await addMember('ann@example.com')
  await addMember('carl@example.com', { role: 'contractor' })
  const { box } = (await api('POST', '/boxes', { name: 'fig' })).json
  const share = async (port: number, access: string) =>
    (await api('POST', `/boxes/${box.id}/port-shares`, { port, access })).json.share
  const members = await share(3000, 'members')
  const otherMembers = await share(3001, 'members')
  const anyone = await share(3002, 'anyone')
  const hostile = await share(3003, 'public')
  const browser = await startBrowser(t)
  const newPage = async () => (await browser.newContext()).newPage()

  async function signIn(page: Page, email = 'ann@example.com'): Promise<void> {
    await page.getByLabel('Email address').fill(email)
    await page.getByRole('button', { name: 'Send code' }).click()
    await page.getByLabel('Code').waitFor()
    await page.getByLabel('Code').fill(await readPrintedCode())
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }

  /** What the box gets, by the body of the page. */
  const readBox = async (page: Page) => JSON.parse(await page.locator('body').innerText())

  const signedIn = await newPage()
  await t.test('a member signs in on the way to a link, and only once', async (t) => {
    const page = signedIn
    await page.goto(`${members.origin}/a?b=c%26d#e`)
    t.equal(new URL(page.url()).origin, url)
    await signIn(page)
    await page.waitForURL(`${members.origin}/**`)
    t.equal(page.url(), `${members.origin}/a?b=c%26d`)
    t.same(await readBox(page), { url: '/a?b=c%26d', cookie: null, userId: ann.id })
    await page.reload()
    t.same(
      await readBox(page),
      { url: '/a?b=c%26d', cookie: 'app=1', userId: ann.id },
      'the cookie of the app',
    )
    const cookies = await page.context().cookies(members.origin)
    t.match(
      cookies.filter(({ name }) => name.startsWith('boxwood_')),
      [
        {
          name: 'boxwood_viewer',
          httpOnly: true,
          sameSite: 'Lax',
          path: '/',
          domain: /^fig-3000-\w+\.boxes\.localhost$/,
        },
      ],
    )

    await page.goto(`${otherMembers.origin}/other`)
    t.equal(page.url(), `${otherMembers.origin}/other`, 'the session of the main origin is used')
    t.match(await readBox(page), { userId: ann.id })
  })

  await t.test('localhost works as well', async (t) => {
    const page = await newPage()
    const { context } = coordinator.instance
    const publicUrl = url.replace('127.0.0.1', 'localhost')
    const { base } = context.portShares
    const viewers = context.shareViewers
    server.setContext({
      ...context,
      authorizeViewer: createViewerAuthorizer({ base, viewers, clock: context.clock, publicUrl }),
    })
    await page.goto(`${members.origin}/a`)
    t.equal(new URL(page.url()).origin, publicUrl)
    await signIn(page)
    await page.waitForURL(`${members.origin}/a`)
    t.match(await readBox(page), { url: '/a', userId: ann.id })
    server.setContext(context)
  })

  await t.test('a page of another link cannot use the access of the viewer', async (t) => {
    const page = signedIn
    await page.goto(`${hostile.origin}/`)
    const from = (path: string) =>
      page.evaluate(`Promise.all(['cors', 'no-cors'].map((mode) =>
        fetch('${members.origin}${path}', { credentials: 'include', mode }).then(
          (response) => response.text(), (error) => error.name)))`)
    t.same(await from('/stolen'), ['TypeError', ''], 'it cannot read a response')
    t.ok(server.requests.includes('/stolen'))

    const readFrame = async (target: string) => {
      await page.goto(`${hostile.origin}/`)
      await page.evaluate(`new Promise((resolve) => {
        const frame = document.createElement('iframe')
        frame.onload = resolve
        frame.src = '${target}'
        document.body.append(frame)
      })`)
      return page.frames()[1]?.evaluate('document.body.innerText')
    }
    t.equal(await readFrame(`${members.origin}/framed`), 'refused: cross-origin')
    t.equal(
      await readFrame(`${hostile.origin}/framed`),
      JSON.stringify({ url: '/framed', cookie: 'app=1', userId: null }),
    )

    await page.goto(`${hostile.origin}/`)
    await Promise.all([
      page.waitForURL(`${members.origin}/form`),
      page.evaluate(`{
        const form = document.createElement('form')
        Object.assign(form, { method: 'post', action: '${members.origin}/form' })
        document.body.append(form)
        form.submit()
      }`),
    ])
    t.equal(await page.locator('body').innerText(), 'refused: cross-origin')
    await page.goto(`${hostile.origin}/`)
    await Promise.all([
      page.waitForURL(`${members.origin}/link`),
      page.evaluate(`location.assign('${members.origin}/link')`),
    ])
    t.match(await readBox(page), { userId: ann.id }, 'it can link to it')
  })

  await t.test('the session of a viewer ends with the session of the user', async (t) => {
    const page = signedIn
    await page.goto(`${url}/sign-in`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Email address').waitFor()
    await page.goto(`${members.origin}/`)
    t.equal(new URL(page.url()).pathname, '/sign-in')
    await signIn(page, 'carl@example.com')
    await page.getByText('This link does not exist').waitFor()
    t.equal(new URL(page.url()).origin, url, 'a contractor does not see the box')
  })

  await t.test('the sign-in of another person cannot be given to a browser', async (t) => {
    const [attacker, victim] = [await newPage(), await newPage()]
    server.interruptSignIns(true)
    await attacker.goto(`${members.origin}/`)
    await signIn(attacker)
    await attacker.getByText('interrupted').waitFor()
    const callback = attacker.url()
    server.interruptSignIns(false)
    t.match(callback, /code=.*state=/)
    // The victim has a sign-in of its own in progress.
    await victim.goto(`${members.origin}/`)
    await victim.goto(callback)
    t.equal(await victim.locator('body').innerText(), 'refused: sign-in')
    t.equal(victim.url(), `${members.origin}/.boxwood/viewer`, 'the code is not in the URL of a page')
    await victim.goto(`${members.origin}/`)
    t.equal(new URL(victim.url()).pathname, '/sign-in')
  })

  await t.test('a URL of POST /port-shares/{id}/open opens a link once, without a sign-in', async (t) => {
    const { json } = await api('POST', `/port-shares/${members.id}/open`)
    const page = await newPage()
    server.requests.length = 0
    await page.goto(json.url)
    t.equal(page.url(), `${members.origin}/`)
    t.match(server.requests, ['/.boxwood/sign-in', /^\/\.boxwood\/viewer\?.*state=/, '/'])
    const { userId } = coordinator.instance.owner ?? {}
    t.match(await readBox(page), { url: '/', userId })
    await page.goto(json.url)
    t.equal(page.url(), `${members.origin}/`, 'the browser has a session')
    const other = await newPage()
    await other.goto(json.url)
    t.equal(new URL(other.url()).pathname, '/sign-in')
  })

  await t.test('the secret of a link leaves the URL', async (t) => {
    const page = await newPage()
    const secret = new URL(anyone.url).searchParams.get('boxwood_secret') ?? ''
    await page.goto(`${anyone.origin}/a?b&boxwood_secret=${secret}#c`)
    t.equal(page.url(), `${anyone.origin}/a?b#c`)
    t.same(await readBox(page), { url: '/a?b', cookie: null, userId: null })
    t.equal(await page.evaluate('document.cookie'), 'app=1', 'scripts do not see the secret')
    t.notOk(JSON.stringify(await page.evaluate('performance.getEntries()')).includes(secret))
    const fromApp = await page.evaluate(
      `fetch('/api', { method: 'POST' }).then((response) => response.json())`,
    )
    t.same(fromApp, { url: '/api', cookie: 'app=1', userId: null })
    await page.goto(`${members.origin}/`)
    t.equal(new URL(page.url()).pathname, '/sign-in', 'the secret opens no other link')

    await page.goto(`${anyone.origin}/`)
    server.requests.length = 0
    for (const [name, attribute] of [
      ['iframe', 'src'],
      ['embed', 'src'],
      ['object', 'data'],
    ])
      await page.evaluate(`new Promise((resolve) => {
        const element = document.createElement('${name}')
        element.onload = resolve
        element.${attribute} = '/in-${name}?boxwood_secret=${secret}'
        document.body.append(element)
      })`)
    const frames = page.frames().slice(1)
    t.equal(frames.length, 3)
    for (const frame of frames) t.notMatch(await frame.evaluate('location.href'), 'boxwood_secret')
    const ofFrames = server.requests.filter((url) => url.startsWith('/in-'))
    t.equal(ofFrames.length, 6, 'each is redirected')

    const stranger = await newPage()
    await stranger.goto(`${anyone.origin}/`)
    t.equal(await stranger.locator('body').innerText(), 'refused: secret')
    await stranger.goto(`${anyone.origin}/?boxwood_secret=${'x'.repeat(32)}`)
    t.equal(await stranger.locator('body').innerText(), 'refused: secret')
  })
})
