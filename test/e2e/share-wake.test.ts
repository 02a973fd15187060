// A member wakes the box of a link on the main origin. The app on the box, whose origin has the viewer session, cannot.
import { request as sendRequest } from 'node:http'
import t, { type Test } from 'tap'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { NO_BROWSER, startBrowser } from '../support/browser.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

const NAVIGATION = {
  accept: 'text/html',
  'sec-fetch-site': 'cross-site',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}
const FORM = {
  ...{ accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' },
  'sec-fetch-site': 'same-origin',
}

async function startSuspendedBox(t: Test) {
  const coordinator = await startTestCoordinator(t)
  const { api, url } = coordinator
  const { box } = (await api('POST', '/boxes', { name: 'fig' })).json
  const share = async (port: number, access: string) =>
    (await api('POST', `/boxes/${box.id}/port-shares`, { port, access })).json.share
  const readDesired = async () => (await api('GET', `/boxes/${box.id}`)).json.box.desiredState
  const suspend = async () => {
    await api('POST', `/boxes/${box.id}/suspend`)
    await waitUntil('the box is suspended', async () => {
      const { json } = await api('GET', `/boxes/${box.id}`)
      return json.box.observedState === 'suspended'
    })
  }
  await waitUntil('the box runs', async () => {
    const { json } = await api('GET', `/boxes/${box.id}`)
    return json.box.observedState === 'running'
  })
  await suspend()
  /** Not with fetch(), which sets headers of browsers itself. @param origin of the Host */
  async function send(method: string, path: string, headers: Record<string, string>, origin = url) {
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number
      headers: Record<string, string | undefined>
      text: string
    }>()
    const { host } = new URL(origin)
    const request = sendRequest(url + path, { method, headers: { host, ...headers } }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      const found = response.headers as Record<string, string | undefined>
      resolve({ status: response.statusCode ?? 0, headers: found, text })
    })
    request.on('error', reject).end()
    return promise
  }
  const members = await share(3000, 'members')
  const anyone = await share(3001, 'anyone')
  return { coordinator, box, members, anyone, readDesired, suspend, send }
}

t.test('the page that wakes the box of a link', async (t) => {
  const { coordinator, members, anyone, readDesired, suspend, send } = await startSuspendedBox(t)
  const { url } = coordinator
  const { origin, slug } = members
  const toPath = (query: Record<string, string> = {}) =>
    `/share/wake?${new URLSearchParams({ slug, path: '/a?b', ...query })}`
  const session = (await createTestSession(coordinator, 'member')).headers ?? {}

  await t.test('has a button, which only its own origin can press', async (t) => {
    const page = await send('GET', toPath(), { ...NAVIGATION, ...session })
    t.equal(page.status, 200)
    t.match(page.text, 'Box fig is suspended')
    t.match(page.headers['content-security-policy'], "frame-ancestors 'none'")
    t.match(page.headers['content-security-policy'], `form-action 'self' ${origin};`)
    t.match(page.headers, { 'cache-control': 'no-store', 'clear-site-data': undefined })
    const action = /action="([^"]+)"/.exec(page.text)?.[1]?.replaceAll('&#38;', '&') ?? ''
    t.equal(action, toPath())
    t.equal(await readDesired(), 'suspended', 'the page itself wakes nothing')

    for (const headers of [
      { ...FORM, 'sec-fetch-site': 'same-site', origin },
      { ...FORM, 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' },
    ])
      t.equal((await send('POST', action, { ...headers, ...session })).status, 403)
    const { 'sec-fetch-site': _site, ...old } = FORM
    t.equal((await send('POST', action, { ...old, origin, ...session })).status, 403, 'an old browser')
    t.equal(await readDesired(), 'suspended')

    const woken = await send('POST', action, { ...FORM, ...session })
    t.match(woken, { status: 303, headers: { location: `${origin}/a?b` } })
    t.equal(await readDesired(), 'running')
    const again = await send('GET', toPath(), { ...NAVIGATION, ...session })
    t.match(again, { status: 303, headers: { location: `${origin}/a?b` } }, 'a box that runs is opened')
    await suspend()
  })

  await t.test('needs a session of a member who sees the box', async (t) => {
    for (const method of ['GET', 'POST']) {
      const headers = method === 'GET' ? NAVIGATION : FORM
      const none = await send(method, toPath(), headers)
      t.equal(none.status, 302)
      const location = new URL(none.headers.location ?? '', url)
      t.equal(location.pathname, '/sign-in')
      t.equal(location.searchParams.get('next'), toPath())
      const contractor = (await createTestSession(coordinator, 'contractor')).headers
      for (const [name, path, credential] of [
        ['a contractor', toPath(), contractor],
        ['a link with a secret', toPath({ slug: anyone.slug }), session],
        ['an unknown link', toPath({ slug: 'fig-3000-2222222222' }), session],
        ['another origin', toPath({ path: '//evil.test' }), session],
        ['no link', '/share/wake', session],
      ] as const) {
        const response = await send(method, path, { ...headers, ...credential })
        t.match(response, { status: 404, text: 'This link does not exist' }, `${method}: ${name}`)
        t.equal(response.headers.location, undefined)
      }
    }
    t.equal(await readDesired(), 'suspended')
  })

  await t.test('a refusal of the wake is shown', async (t) => {
    const { db } = coordinator.instance.context
    await db.updateTable('workspaces').set({ closing_at: Date.now() }).execute()
    const response = await send('POST', toPath(), { ...FORM, ...session })
    t.equal(response.status, 409)
    t.match(response.text, 'The request was refused')
    await db.updateTable('workspaces').set({ closing_at: null }).execute()
    t.equal(await readDesired(), 'suspended')
  })

  await t.test('no request to the origin of the link wakes the box', async (t) => {
    const { shareViewers, portShares } = coordinator.instance.context
    const found = await portShares.find(slug)
    const owner = coordinator.instance.owner
    if (found === undefined || !owner) throw new Error('the link is not served')
    const { code } = await shareViewers.createCode(owner, found.share, 'a'.repeat(64))
    const viewer = await shareViewers.exchange(found.share, code, 'a'.repeat(64))
    const cookie = `boxwood_viewer=${viewer?.token}`
    const own = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', origin }
    t.equal((await send('GET', '/', { ...own, cookie }, origin)).status, 503, 'the session is valid')
    for (const path of ['/.boxwood/wake', '/.boxwood/wake?path=%2F', toPath()])
      for (const method of ['GET', 'POST']) await send(method, path, { ...own, cookie }, origin)
    t.equal(await readDesired(), 'suspended')
  })
})

t.test('a member wakes a box with a click', { skip: NO_BROWSER }, async (t) => {
  const { coordinator, members, readDesired } = await startSuspendedBox(t)
  const { headers: { cookie = '' } = {} } = await createTestSession(coordinator, 'member')
  const context = await (await startBrowser(t)).newContext()
  await context.addCookies([
    {
      ...{ name: SESSION_COOKIE, value: cookie.slice(SESSION_COOKIE.length + 1), secure: true },
      ...{ url: coordinator.pageUrl.replace('http:', 'https:'), httpOnly: true, sameSite: 'Lax' },
    },
  ])
  const page = await context.newPage()
  await page.goto(`${members.origin}/a?b`)
  t.equal(page.url(), `${members.origin}/a?b`)
  t.equal(await readDesired(), 'suspended')
  await page.getByRole('link', { name: 'Wake the box' }).click()
  await page.getByRole('button', { name: 'Wake the box' }).click()
  await page.waitForURL(`${members.origin}/a?b`)
  t.equal(await readDesired(), 'running')
})
