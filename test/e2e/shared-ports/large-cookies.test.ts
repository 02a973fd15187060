// A page of a link fills the cookies of the whole site, in Chromium. The dashboard, the API and the other links still work in this
// browser, and the sign-in is kept.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { startTlsFront } from '../../support/tls-front.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startSharingBox } from './shared-app.ts'

const BROWSER_ARGS = [
  '--host-resolver-rules=MAP boxes.example 127.0.0.1, MAP *.boxes.example 127.0.0.1',
  '--ignore-certificate-errors',
]
const LOCAL = { waitUntil: 'load' } as const

/** The attributes of the cookies of each attack. The browser keeps at most 180 of them for a site. */
const ATTACKS: Record<string, { count: number; attributes: string; name?: string }> = {
  'more than common servers accept': { count: 20, attributes: 'Path=/; Secure' },
  'as many as the browser stores': { count: 170, attributes: 'Path=/; Secure' },
  'for requests of the API only': { count: 40, attributes: 'Path=/api; Secure' },
  'for a page and its parents': { count: 40, attributes: 'Path=/boxes/; Secure' },
  'for the files of the dashboard': { count: 40, attributes: 'Path=/dashboard; Secure' },
  'with a prefix': { count: 40, attributes: 'Path=/; Secure', name: '__Secure-bomb' },
}

t.test('a page that fills the cookies of the site', { skip: NO_BROWSER }, async (t) => {
  const front = await startTlsFront(t)
  const publicUrl = `https://boxes.example:${front.port}`
  const coordinator = await startSharingBox(t, {
    env: { BOXWOOD_PUBLIC_URL: publicUrl, BOXWOOD_SHARE_BASE: publicUrl },
  })
  front.forwardTo(Number(new URL(coordinator.url).port))
  const { box } = coordinator
  const share = async (dir: string) =>
    coordinator.share({ port: await coordinator.startApp(dir), access: 'members' })
  const [hostile, other] = [await share('hostile'), await share('other')]
  const browser = await startBrowser(t, BROWSER_ARGS)
  const page = await coordinator.openPage(browser, hostile)
  const victim = await page.context().newPage()
  const debug = await page.context().newCDPSession(victim)
  await debug.send('Network.setCacheDisabled', { cacheDisabled: true })

  const fill = (name: string, { count, attributes }: { count: number; attributes: string }) =>
    page.evaluate(`for (let i = 0; i < ${count}; i += 1)
      document.cookie = \`${name}\${i}=\${'x'.repeat(3900)}; Domain=boxes.example; Max-Age=31536000; ${attributes}\``)
  const countLarge = async () =>
    (await page.context().cookies()).filter(({ value }) => value.length > 1000).length
  const showsBox = (shown: Page) => shown.getByRole('heading', { name: box.hostname }).first().waitFor()

  for (const [attack, { name = 'bomb', ...cookies }] of Object.entries(ATTACKS))
    await t.test(attack, async (t) => {
      await fill(name, cookies)
      await waitUntil('the browser has stored them', async () => (await countLarge()) > 15)
      await victim.goto('about:blank')
      await victim.goto(`${publicUrl}/boxes/${box.hostname}`, LOCAL).catch(() => undefined)
      await showsBox(victim)
      t.equal(new URL(victim.url()).pathname, `/boxes/${box.hostname}`)
      // A page whose files were refused loads itself again.
      const readSession = () => victim.evaluate("fetch('/api/v1/session').then(({ status }) => status)")
      await waitUntil('the victim is signed in', async () => (await readSession().catch(() => 0)) === 200)
      await victim.goto(other.url, LOCAL).catch(() => undefined)
      await waitUntil('the other link works', async () => {
        const title = await victim.title().catch(() => '')
        return title === 'An application in the box'
      })
      await page.context().clearCookies({ name: new RegExp(`^${name}`) })
    })
})
