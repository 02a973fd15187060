// Twenty tabs in one browser, over HTTP/1.1: a browser has six connections to a host, and each event stream takes one of them.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { collectProblems, openDashboard } from '../../support/dashboard.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PROGRAM =
  'echo begin; until [ -e go ]; do sleep 0.1; done; echo after; until [ -e go2 ]; do sleep 0.1; done; echo end; sleep 1000'
const HIDDEN_MS = 6_000
const OUTPUT = '[role=log], .xterm-rows'

/** Runs in the page. A headless browser shows all its tabs. */
const show = (page: Page, state: 'hidden' | 'visible') =>
  page.evaluate(`{
    Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }`)

t.test('twenty tabs', { skip: NO_BROWSER }, async (t) => {
  const { page, box, api, edge, url, problems } = await openDashboard(t, () => '/boxes/')
  const exec = (body: object) => edge(box.id, 'POST', '/exec', body)
  const commands: string[] = []
  for (let i = 0; i < 8; i++) commands.push((await exec({ command: PROGRAM, detached: true })).json.processId)
  for (const session of ['one', 'two', 'three'])
    await edge(box.id, 'POST', '/terminal/sessions', { session, command: PROGRAM })

  const follows = [
    ...['one', 'two', 'three'].map((name) => `/terminals?session=${name}`),
    ...commands.map((id) => `/commands?command=${id}`),
  ]
  /** With a text of the page while the box runs, and while it is suspended. */
  const texts: [path: string, running: string, suspended: string][] = [
    ['', 'running', 'suspended'],
    [`/boxes/${box.hostname}`, 'Suspend', 'Wake'],
    [`/boxes/${box.hostname}/timeline`, 'until [ -e go ]', 'suspended'],
    [`/boxes/${box.hostname}/terminals`, 'three', 'The box does not run, and has no sessions.'],
    [`/boxes/${box.hostname}/commands`, 'until [ -e go ]', 'The box is suspended.'],
    [
      `/boxes/${box.hostname}/conversations`,
      'Give a coding agent a task',
      'Conversations need a running box.',
    ],
    [`/boxes/${box.hostname}/files`, 'Name', 'Files need a running box.'],
    [`/boxes/${box.hostname}/processes`, 'Kill', 'The box is suspended'],
  ]
  const open = async (path: string, isFirst = false) => {
    const tab = isFirst ? page : await page.context().newPage()
    await tab.clock.install()
    if (!isFirst) collectProblems(tab, problems)
    await tab.goto(url + path)
    return tab
  }
  const waitForText = (tab: Page, text: string, selector = 'main') =>
    waitUntil(`${text}: ${tab.url()}`, async () =>
      (await tab.locator(selector).allInnerTexts()).some((shown) => shown.includes(text)),
    )
  const others = await Promise.all(texts.map(([path], index) => open(path, index === 0)))
  const followers = await Promise.all(follows.map((path) => open(`/boxes/${box.hostname}${path}`)))
  followers.push(await open(`/boxes/${box.hostname}${follows[3]}`))
  const [first = page, ...hidden] = [...followers.slice(3), ...followers.slice(0, 3), ...others]
  t.equal(hidden.length, 19)
  const waitForOutput = (text: string) => Promise.all(followers.map((tab) => waitForText(tab, text, OUTPUT)))

  await t.test('all are visible: all are loaded, and live', async () => {
    for (const [index, tab] of others.entries()) await waitForText(tab, texts[index]?.[1] ?? '')
    await waitForOutput('begin')
    await exec({ command: 'touch go' })
    await waitForOutput('after')
  })

  await t.test('hidden tabs close their streams, and catch up when they are shown', async (t) => {
    for (const tab of hidden) await show(tab, 'hidden')
    for (const tab of hidden) await tab.clock.fastForward(HIDDEN_MS)
    await waitUntil('the terminals are disconnected', async () => {
      const { sessions } = (await edge(box.id, 'GET', '/terminal/sessions')).json
      return sessions.every(({ clients }: { clients: number }) => clients === 0)
    })
    await exec({ command: 'touch go2' })
    await waitForText(first, 'end', OUTPUT)
    for (const tab of followers.filter((tab) => tab !== first))
      t.notMatch(await tab.locator(OUTPUT).innerText(), 'end')
    for (const tab of hidden) await show(tab, 'visible')
    await waitForOutput('end')
  })

  t.same(problems, [], 'no violation of the policy and no error')

  await t.test('a change of the box is shown in all tabs', async () => {
    await api('POST', `/boxes/${box.id}/suspend`)
    for (const [index, tab] of others.entries()) await waitForText(tab, texts[index]?.[2] ?? '')
  })
})
