// An application of a box in Chromium, through a link for each audience. Strangers, and browsers with an ended link, see
// nothing of it.
import type { BrowserContext } from 'playwright-core'
import t, { type Test } from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { AUDIENCES, type OpenShare, requestShare, startSharingBox } from './shared-app.ts'
import { call, testBasicAuth, testChat, testCookies, testFeed, testTransfers, waitFor } from './use-app.ts'

const CREDENTIALS = { username: 'ada', password: 'lovelace' }
const WEBSOCKET = {
  connection: 'upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

t.test('a shared application', { skip: NO_BROWSER }, async (t) => {
  const coordinator = await startSharingBox(t)
  const port = await coordinator.startApp()
  const browser = await startBrowser(t)

  const openPage = (share: OpenShare) =>
    coordinator.openPage(browser, share, { httpCredentials: { ...CREDENTIALS, origin: share.origin } })

  /** Browsers and programs get nothing of the box, and the box gets no request. */
  async function assertHidden(t: Test, { origin }: OpenShare, context: BrowserContext): Promise<void> {
    const requests = await coordinator.readRequests()
    const page = await context.newPage()
    const contents: string[] = []
    for (const path of ['/', '/headers', '/feed']) {
      await page.goto(origin + path)
      contents.push(await page.content())
    }
    for (const headers of [
      {},
      WEBSOCKET,
      { cookie: 'boxwood_viewer=x; boxwood_link=x' },
      { authorization: `Bearer ${coordinator.key}` },
    ]) {
      const { status, text } = await requestShare(coordinator.url, `${origin}/chat`, headers)
      t.ok([401, 403, 404].includes(status), `${Object.keys(headers)}: ${status}`)
      contents.push(text)
    }
    for (const content of contents) t.notMatch(content, /application in the box|hello from/i)
    t.same(await coordinator.readRequests(), requests, 'the box got no request')
    await page.close()
  }

  for (const access of AUDIENCES)
    await t.test(`for ${access}`, async (t) => {
      const share = await coordinator.share({ port, access })
      const page = await openPage(share)
      t.equal(page.url(), `${share.origin}/`, 'a secret or a code leaves the URL')
      t.equal(await page.title(), 'An application in the box')
      await testChat(t, page)
      await testFeed(t, page)
      await testTransfers(t, page, 8)
      await testBasicAuth(t, page)
      await testCookies(t, page)

      await t.test('a stranger', async (t) => {
        if (access === 'public') return t.pass('a public link has no strangers')
        const stranger = await browser.newContext()
        await assertHidden(t, share, stranger)
        await stranger.close()
      })
      await t.test('a revoked link', async (t) => {
        await page.goto(`${share.origin}/`)
        await Promise.all([call(page, 'openChat', '/chat'), call(page, 'openFeed')])
        await coordinator.unshare(share)
        await waitFor(page, 'app.isChatClosed && app.hasFeedFailed')
        t.pass('open connections are closed')
        await assertHidden(t, share, page.context())
      })
      await page.context().close()
    })

  await t.test('an expired link', async (t) => {
    const { db, clock } = coordinator.instance.context
    const share = await coordinator.share({ port, access: 'anyone' })
    const page = await openPage(share)
    t.equal(await page.title(), 'An application in the box')
    await db
      .updateTable('port_shares')
      .set({ expires_at: clock.now() - 1 })
      .where('id', '=', share.id)
      .execute()
    await assertHidden(t, share, page.context())
    await page.goto(share.url)
    t.notMatch(await page.content(), /application in the box/i, 'not with its secret either')
    await page.context().close()
  })
})
