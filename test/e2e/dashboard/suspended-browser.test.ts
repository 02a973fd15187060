// A browser that was suspended for ten minutes, while boxes changed and its connections were cut without a notice: what a page
// shows is right, or marked with its age until it is, and becomes right without a reload.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard, waitForExpression } from '../../support/dashboard.ts'
import { startTunnelProxy } from '../../support/tunnel-proxy.ts'

const TEN_MINUTES_MS = 600_000
/** The streams of a tab are closed when it has been hidden for less than this. */
const HIDDEN_MS = 6_000

type View = { state: string; banner: string }

/** Records what the page shows after each change. */
const RECORD = `{
  window.views = []
  const record = () => {
    const read = (selector) => document.querySelector(selector)?.textContent ?? ''
    const view = { state: read('.state'), banner: read('.banner') }
    if (JSON.stringify(view) !== JSON.stringify(views.at(-1))) views.push(view)
  }
  record()
  new MutationObserver(record).observe(document.body, { subtree: true, childList: true, characterData: true })
}`

/** Runs in the page. A headless browser shows all its tabs. */
const show = (page: Page, state: 'hidden' | 'visible') =>
  page.evaluate(`{
    Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }`)

/** Of the box: the events below it have states, too. */
const waitForFirstState = (page: Page, state: string) =>
  waitForExpression(page, `document.querySelector('.state')?.textContent === '${state}'`)

t.test('a browser that was suspended', { skip: NO_BROWSER }, async (t) => {
  const { page, box, api, url, waitForState } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}`,
    { machines: 'fake' },
  )
  const proxy = await startTunnelProxy(Number(new URL(url).port))
  t.teardown(() => proxy.close())
  const cdp = await page.context().newCDPSession(page)
  await page.clock.install()
  const setLifecycle = (state: 'frozen' | 'active') => cdp.send('Page.setWebLifecycleState', { state })

  const suspend = async () => {
    proxy.blackhole()
    await setLifecycle('frozen')
  }
  const resume = async () => {
    await setLifecycle('active')
    await page.clock.fastForward(TEN_MINUTES_MS)
  }
  const hide = async () => {
    await show(page, 'hidden')
    await page.clock.fastForward(HIDDEN_MS)
    await page.clock.fastForward(TEN_MINUTES_MS)
  }
  const cases: [name: string, begin: () => Promise<void>, end: () => Promise<unknown>][] = [
    ['a device that was asleep', suspend, resume],
    ['a tab that was hidden', hide, () => show(page, 'visible')],
  ]
  const paths = ['/', `/boxes/${box.hostname}`]
  for (const [name, begin, end] of cases)
    for (const path of paths) {
      await api('POST', `/boxes/${box.id}/wake`)
      await waitForState(box.id, 'running')
      await page.goto(proxy.url + path)
      await waitForFirstState(page, 'running')
      await begin()
      await api('POST', `/boxes/${box.id}/suspend`)
      await waitForState(box.id, 'suspended')
      await page.evaluate(RECORD)
      await end()
      await waitForFirstState(page, 'suspended')
      await page.locator('.banner').waitFor({ state: 'detached' })
      const [before, ...views] = (await page.evaluate('views')) as View[]
      t.match(before, { state: 'running' }, `${name}, ${path}: the page was not notified`)
      t.match(views[0], { state: 'running', banner: /^What is shown is 10 min old\./ })
      t.same(
        views.filter(({ state, banner }) => state !== 'suspended' && banner === ''),
        [],
        'nothing that is old is shown without its age',
      )
      t.same(views.at(-1), { state: 'suspended', banner: '' })
      proxy.reset()
    }
})
