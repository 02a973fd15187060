// Terminals of a real box in a browser, over a connection that is cut.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { collectProblems, openDashboard, waitForExpression } from '../../support/dashboard.ts'
import { startTunnelProxy } from '../../support/tunnel-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Counts at most to what the window shows. */
const COUNTER =
  'i=0; while [ ! -e stop ] && [ $i -lt 95 ]; do i=$((i+1)); echo "line $i"; sleep 0.1; done; exit 3'
const QUERIES = String.raw`read start; printf '\033[31mred\033[0m \033[c\033[6n\033[>q\033]11;?\007\033]52;c;ZXZpbA==\007\033]8;;https://example.com/x\007link\033]8;;\007\n'; exec cat -v`

const readLines = async (page: Page): Promise<string[]> => {
  const rows = await page.locator('.xterm-rows > div').allTextContents()
  return rows.map((row) => row.replaceAll('\u00a0', ' ').trimEnd()).filter((row) => row !== '')
}

t.test('the page of the terminals', { skip: NO_BROWSER }, async (t) => {
  const { page, box, edge, url, problems } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/terminals`,
  )
  const proxy = await startTunnelProxy(Number(new URL(url).port))
  t.teardown(() => proxy.close())
  await page.setViewportSize({ width: 1000, height: 3200 })
  const path = `/boxes/${box.hostname}/terminals`
  const listSessions = async () => (await edge(box.id, 'GET', '/terminal/sessions')).json.sessions
  const waitForLine = (wanted: string, shown: Page = page) =>
    waitUntil(wanted, async () => (await readLines(shown)).includes(wanted))

  await t.test('a counter survives a reload and cut connections: no line is missing or double', async (t) => {
    await page.goto(url.replace(new URL(url).host, new URL(proxy.url).host) + path)
    await page.getByLabel('Name').fill('count')
    await page.getByLabel('Program').fill(COUNTER)
    await page.keyboard.press('Enter')
    await waitForLine('line 5')
    t.match(await listSessions(), [{ session: 'count', clients: 1 }])
    await page.reload()
    await waitForLine('line 15')
    proxy.reset()
    await waitForLine('line 30')
    proxy.blackhole()
    await page.evaluate("window.dispatchEvent(new Event('online'))")
    await waitForLine('line 45')
    await edge(box.id, 'POST', '/exec', { command: 'touch stop' })
    await page.getByText('The session has ended with exit status 3.').waitFor()
    const lines = await readLines(page)
    t.same(
      lines,
      lines.map((_, index) => `line ${index + 1}`),
      'the text stays',
    )
    t.ok(lines.length >= 45)
  })
  // The proxy has cut the requests of the page.
  problems.splice(0)

  await t.test('colours, queries without answers, input of two viewers', async (t) => {
    await page.goto(url + path)
    await page.getByLabel('Name').fill('cat')
    await page.getByLabel('Program').fill(QUERIES)
    await page.keyboard.press('Enter')
    await page.getByText('Connected.').waitFor()
    await page.keyboard.press('Enter')
    await waitForLine('red link')
    t.same(
      await page.evaluate(
        "[...document.querySelectorAll('.xterm-rows span')].flatMap((span) => span.textContent === 'red' ? [getComputedStyle(span).color] : [])",
      ),
      ['rgb(255, 143, 134)'],
    )
    await page.keyboard.type('first\n')
    await waitUntil('it is echoed and printed', async () => (await readLines(page))[2] === 'first')
    const second = await page.context().newPage()
    collectProblems(second, problems)
    await second.goto(page.url())
    await waitForLine('red link', second)
    await second.locator('.xterm-helper-textarea').focus()
    await second.keyboard.type('second\n')
    for (const shown of [page, second])
      await waitUntil('both viewers show it', async () => (await readLines(shown))[4] === 'second')
    const expected = ['red link', 'first', 'first', 'second', 'second']
    t.same(await readLines(page), expected, 'no answer to a query was typed')
    t.same(await readLines(second), expected)
    t.match(await listSessions(), [{ session: 'cat', clients: 2 }])
    await second.close()
  })

  await t.test('a paste of several lines asks, a link asks', async (t) => {
    await page.bringToFront()
    const paste = (text: string) =>
      page.evaluate(`{
        const clipboardData = new DataTransfer()
        clipboardData.setData('text/plain', ${JSON.stringify(text)})
        const event = { clipboardData, bubbles: true, cancelable: true }
        document.querySelector('.xterm-helper-textarea').dispatchEvent(new ClipboardEvent('paste', event))
      }`)
    await paste('one')
    await waitForLine('one')
    await page.keyboard.press('Enter')
    await paste('x\ny\n')
    const dialog = page.getByRole('dialog', { name: 'Paste 2 lines?' })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await paste('x\ny\n')
    await dialog.getByRole('button', { name: 'Paste' }).click()
    await waitForLine('y')
    t.same((await readLines(page)).slice(-4).sort(), ['x', 'x', 'y', 'y'])

    await page.locator('.xterm-rows').getByText('link').hover({ force: true })
    await page.locator('.xterm-cursor-pointer').waitFor()
    await page.mouse.down()
    await page.mouse.up()
    const question = page.getByRole('dialog', { name: 'Open this link?' })
    const link = question.getByRole('link', { name: 'Open' })
    t.equal(await link.getAttribute('href'), 'https://example.com/x')
    t.equal(await link.getAttribute('rel'), 'noopener noreferrer')
    await page.keyboard.press('Escape')
    await question.waitFor({ state: 'detached' })
  })

  await t.test('leave with the keyboard, full screen, and end', async (t) => {
    await page.locator('.xterm-helper-textarea').focus()
    await page.keyboard.press('Control+Shift+L')
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Detach')
    const readSize = async () => {
      const [{ rows, cols }] = await listSessions()
      return `${cols} ${rows}`
    }
    const cells = async () => (await listSessions())?.[0]?.cols as number
    const [before, size] = [await cells(), await readSize()]
    await page.getByRole('button', { name: 'Full screen' }).click()
    await waitUntil(
      'the session has the size of the window',
      async () => (await listSessions())?.[0]?.rows > 150,
    )
    await page.getByRole('button', { name: 'Full screen' }).click()
    await waitUntil('the session has its size again', async () => (await readSize()) === size)
    for (let count = 0; count < 4; count += 1) await page.getByRole('button', { name: 'Larger text' }).click()
    await waitUntil('fewer characters in a line', async () => (await cells()) < before)
    await page.reload()
    await page.getByText('Connected.').waitFor()
    for (let count = 0; count < 4; count += 1)
      await page.getByRole('button', { name: 'Smaller text' }).click()
    await waitUntil('the size is kept, and set again', async () => (await cells()) === before)
    await page.getByRole('button', { name: 'Start another session' }).click()
    await waitUntil('two sessions', async () => (await listSessions()).length === 2)
    const tabs = page.getByRole('navigation', { name: 'Sessions' })
    await tabs.getByRole('link', { name: 'cat' }).click()
    await waitForLine('red link')
    t.equal(await tabs.locator('[aria-current]').textContent(), 'cat')
    const other = (await listSessions()).find(({ session }: { session: string }) => session !== 'cat')
    await edge(box.id, 'DELETE', `/terminal/sessions/${other.session}`)
    await page.getByRole('link', { name: 'Detach' }).click()
    await page.getByRole('row', { name: 'cat' }).waitFor()
    t.match(await listSessions(), [{ session: 'cat' }], 'the session continues')
    await page.getByRole('button', { name: 'End the session cat' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End the session' }).click()
    await page.getByText('There is no session.').waitFor()
    t.same(await listSessions(), [])
    await waitForExpression(page, "document.activeElement.tagName === 'H1'")
  })

  await t.test('the keys of a phone, and the size of a session with two viewers', async (t) => {
    const context = await page
      .context()
      .browser()
      ?.newContext({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 800 } })
    if (context === undefined) throw new Error('there is no browser')
    await context.addCookies(await page.context().cookies())
    const phone = await context.newPage()
    collectProblems(phone, problems)
    await edge(box.id, 'POST', '/terminal/sessions', { session: 'phone', command: 'cat -v' })
    await phone.goto(`${url}${path}?session=phone`)
    await phone.getByText('Connected.').waitFor()
    for (const key of ['Escape', 'Up']) await phone.getByRole('button', { name: key, exact: true }).tap()
    await waitUntil('the keys arrive', async () =>
      (await readLines(phone)).some((line) => line.includes('^[^[[A')),
    )
    const cells = async () => (await listSessions())?.[0]?.cols as number
    const narrow = await cells()
    await page.goto(`${url}${path}?session=phone`)
    await waitUntil('the session has the size of the other viewer', async () => (await cells()) > narrow)
    await phone.getByRole('button', { name: 'Escape', exact: true }).tap()
    await waitUntil('the session is narrow again', async () => (await cells()) === narrow)
    // The terminal has had the focus since it was opened.
    await page.keyboard.type('a')
    await waitUntil('typing gives it the size of the viewer', async () => (await cells()) > narrow)
    await phone.getByRole('button', { name: 'Ctrl', exact: true }).tap()
    await phone.keyboard.type('c')
    await phone.getByText('The session was killed by INT.').waitFor()
    t.equal(await phone.evaluate('document.documentElement.scrollWidth'), 390)
    await context.close()
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
